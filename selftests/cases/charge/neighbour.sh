#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who is above memory.high is slowed; nobody else is, though all share the driver's
# lock. The delay comes after the driver has returned.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

# The slowest of the times that 1 MiB is allocated and freed for five seconds, in milliseconds.
# The kernel's delays are up to two seconds: a shorter look may fall between two of them.
worst_pair() {
	worst=0
	worst_end=$(($(now_ms) + 5000))
	pair_start=0
	while [ "$pair_start" -lt "$worst_end" ]; do
		pair_start=$(now_ms)
		ask neighbour alloc 1M
		ask neighbour free all
		pair=$(($(now_ms) - pair_start))
		[ $pair -le $worst ] || worst=$pair
	done
	echo $worst
}

cgroup_leaf greedy
cgroup_leaf neighbour
charge greedy on
start_in greedy greedy
ask greedy open
start_in neighbour neighbour
ask neighbour alloc 1M
ask neighbour free all
alone=$(worst_pair)

cgroup_write greedy memory.high 8M
tell greedy alloc 1M 64
sleep 0.3
# Twice, and what a delay of the kernel's is at least. The machine's own hiccups aren't in
# each of eight rounds; who waits for the cgroup above its memory.high does so in all.
for _ in 1 2 3 4 5 6 7 8; do
	beside=$(worst_pair)
	diag "the slowest pair took $alone ms alone and $beside ms beside a cgroup above memory.high"
	[ "$beside" -gt $((2 * alone + 150)) ] || break
done
check "a neighbour doesn't wait for who is above memory.high" \
	[ "$beside" -le $((2 * alone + 150)) ]
check "who is above memory.high is slowed" [ "$(cgroup_event greedy memory.events high)" -gt 0 ]
cgroup_write greedy memory.high max
check "who is above memory.high gets what it asked for" answer greedy
within "all that was taken above memory.high is charged, with its metadata" "$(account greedy charged)" \
	$((64 * MIB)) $((2 * MIB))

done_testing
