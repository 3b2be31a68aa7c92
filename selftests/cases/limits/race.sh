#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes that race for the last bytes never get more than the limit together,
# and none is refused while there is room.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it keeps every CPU busy"
needs_accounting
needs_kernel_alloc

RACERS="1 2 3 4 5 6 7 8"

cgroup_make team
for i in $RACERS; do
	cgroup_leaf "team/$i"
	start_in "team/$i" "racer$i"
	ask "racer$i" open
done

# all_answer KEY: waits for every racer; $together is the sum of what they say.
all_answer() {
	together=0
	for i in $RACERS; do
		answer "racer$i"
		together=$((together + $(reply_field "$1")))
	done
}

# The driver's own lock lets one ioctl in at a time. Its allocator takes several
# calls at once, and here it gets them.
hard=$(with_metadata $((8 * MIB)) 32 8)
limit team --hard "$hard"
for round in 1 2 3 4 5; do
	for i in $RACERS; do
		tell "racer$i" kernel alloc $((256 * KIB / PAGE)) $PAGE 0 100
	done
	all_answer count
	is "at once, round $round: 8 processes hold what they were given" "$(system_memory team)" \
		$((together * 256 * KIB))
	# One may have so many that they don't fit into its lot of the driver's heap.
	check "at once, round $round: the processes share 32 blocks, or one less" \
		[ $((together == 32 || together == 31)) = 1 ]
	check "at once, round $round: the peak was never above the limit" [ "$(account team peak)" -le "$hard" ]
	for i in $RACERS; do
		ask "racer$i" kernel free
	done
	is "at once, round $round: all is given back" "$(system_memory team)" 0
done

# The same through the driver's own lock.
hard=$(with_metadata $((8 * MIB)) 512 8)
limit team --hard "$hard"
for round in 1 2 3; do
	for i in $RACERS; do
		tell "racer$i" fill 16K
	done
	all_answer count
	is "round $round: 8 processes hold what they were given" "$(system_memory team)" $((together * 16 * KIB))
	check "round $round: the processes share 512 blocks, but for what their objects' lots leave" \
		[ $((together > 496 && together < 528)) = 1 ]
	check "round $round: 8 processes fill the limit to the block, or to a lot of the driver's heap" \
		[ $((hard - $(account team usage))) -lt $(($(with_metadata $((16 * KIB)) 1 1) + PAGE)) ]
	check "round $round: the peak was never above the limit" [ "$(account team peak)" -le "$hard" ]
	for i in $RACERS; do
		ask "racer$i" free all
	done
	is "round $round: all is given back" "$(system_memory team)" 0
done

# Room for exactly one block each: a reservation that another's failed attempt holds
# for a moment would refuse somebody who is in his right.
limit team --hard "$(with_metadata $((512 * KIB)) 8 8)"
refusals=$(account team refusals)
for i in $RACERS; do
	tell "racer$i" churn 64K 500
done
all_answer rounds
is "of 4,000 blocks that 8 processes take with room for 8, none is refused" $together 4000
for i in $RACERS; do
	tell "racer$i" kernel bench $((64 * KIB / PAGE)) $PAGE 0 1000
done
refused=0
for i in $RACERS; do
	answer "racer$i" || refused=$((refused + 1))
done
is "at once, 8 processes with room for 8 blocks are never refused" $refused 0
is "at once, 8 processes with room for 8 blocks have no refusal counted" "$(account team refusals)" "$refusals"

# The same with somebody beside them who always asks for too much.
start_in team/1 greedy
limit team --hard "$(with_metadata $((512 * KIB)) 8 9)"
tell greedy insist 1M
for i in $RACERS; do
	tell "racer$i" churn 64K 500
done
all_answer rounds
is "beside a process that is always refused, none of the others is" $together 4000
kill -KILL "$pid"
gone "$pid"
check "everything is given back after the races" eventually account_is team usage "$(with_metadata 0 0 8)"

# A limit is changed again and again, from one that is too low to another: never, between the two,
# is there none. No other cgroup has one.
limit team --hard max
cgroup_leaf alone
limit alone --hard 1M
for i in 1 2; do
	start_in alone "asker$i"
	tell "asker$i" load 4M 3000
done
check "a limit is changed 20,000 times" nltest toggle "$(cgroup_id alone)" $MIB $((2 * MIB)) 20000
for i in 1 2; do
	answer "asker$i"
	is "asker $i, of 4 MiB 3,000 times while the limit changes between 1 and 2, gets none" \
		"$(reply_field count)" 0
	tell "asker$i" exit
done
limit alone --hard max

# A bomb of clients: many short lives at a limit.
cgroup_leaf bomb
hard=$(with_metadata $((256 * KIB)) 8 64)
limit bomb --hard "$hard"
bombs=
for i in $(seq 64); do
	in_cgroup bomb rmtool "fill 32K" >/dev/null &
	bombs="$bombs $!"
done
for bomb in $bombs; do
	wait "$bomb"
done
check "64 clients fill the limit together and never go above it" [ "$(account bomb peak)" -le "$hard" ]
check "64 clients fill the limit to the last block that fits" \
	[ "$(account bomb peak)" -gt $((hard - $(with_metadata $((32 * KIB)) 1 0))) ]
check "each of 64 clients was refused" [ "$(account bomb refusals)" -ge 64 ]
check "nothing is left of 64 clients" eventually account_is bomb usage 0

done_testing
