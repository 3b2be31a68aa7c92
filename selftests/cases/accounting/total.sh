#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# TOTAL of a cgroup and of a process is what comes back to the machine when the job is killed,
# whatever it took and whether charging is on: by MemFree.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory, and switches swap on"
needs_accounting
needs_kernel_alloc

LOOP=/dev/loop0
CACHED=/dev/loop1

freed_since() { # EARLIER
	echo $(($(free_memory) - $1))
}

of_process() {
	umacct ps --json "$(cgroup_path "$1")" | json_field total
}

# What the kernel's controller charges ahead for each processor: 64 pages, in memory.current and nobody's.
AHEAD=$(($(nproc) * 64 * PAGE))

# Kills the holder of a cgroup, and compares what comes back.
ends() { # NAME WHAT PID
	quiesce
	total=$(target "$(cgroup_path "$1")" total)
	process=$(of_process "$1")
	before=$(free_memory)
	kill -KILL "$3"
	gone "$3"
	{ wait "$3"; } 2>/dev/null
	settles "$2: TOTAL of the cgroup is what comes back" "$total" $((MIB + AHEAD)) freed_since "$before"
	diag "$2: TOTAL $((total / KIB)) KiB, of the process $((process / KIB)) KiB, came back $((settles_got / KIB)) KiB"
}

ends_alone() { # NAME WHAT PID
	ends "$@"
	settles "$2: TOTAL of the process is what comes back" "$process" $MIB freed_since "$before"
}

# One holder, with what each COMMAND takes; each has a client of the driver's.
one() { # NAME WHAT COMMAND...
	one_name=$1
	one_what=$2
	shift 2
	start_in "$one_name" "h_$one_name"
	one_pid=$pid
	ask "h_$one_name" open
	for one_command; do
		# shellcheck disable=SC2086 # words
		check "$one_what: '$one_command' is had" ask "h_$one_name" $one_command
	done
	ends_alone "$one_name" "$one_what" "$one_pid"
}

for mode in off on; do
	for kind in driver anonymous shared locked registered mixed managed; do
		cgroup_leaf "$kind$mode"
		charge "$kind$mode" $mode >/dev/null
	done
	one driver$mode "driver memory, charging $mode" "alloc 4M 12"
	one anonymous$mode "anonymous memory, charging $mode" "touch 96M"
	one shared$mode "shared memory, charging $mode" "share 96M"
	one locked$mode "locked memory, charging $mode" "lock 96M"
	one registered$mode "memory that is registered with the driver, charging $mode" \
		"kernel register $((96 * MIB / PAGE))"
	if [ -c /dev/nvidia-uvm ]; then
		start_in managed$mode h_managed$mode uvmtool
		for command in open mm "map 64M" touch; do
			# shellcheck disable=SC2086 # words
			ask h_managed$mode $command
		done
		ends_alone managed$mode "managed memory, charging $mode" "$pid"
	else
		skip "managed memory" "nvidia-uvm is not loaded"
	fi
done

# All of it at once, with page cache beside, and a part on swap, whose store is there before. What was
# on its way to swap may be in memory still, and no process's: so this is of the cgroup alone.
if ! [ -b $CACHED ]; then
	skip "page cache and swap beside TOTAL" "no loop devices"
	done_testing
fi
dd if=/dev/zero of="$TEST_DIR/swap" bs=1M count=64 2>/dev/null
losetup $LOOP "$TEST_DIR/swap"
mkswap $LOOP >/dev/null
# A file of zeros that takes no memory itself: what is read of it is page cache.
truncate -s 64M "$TEST_DIR/zeros"
losetup $CACHED "$TEST_DIR/zeros"
for mode in off on; do
	name=mixed$mode
	start_in $name h_$name
	mixed_pid=$pid
	check "mixed memory, charging $mode: all of it is had" ask h_$name alloc 2M 24
	ask h_$name touch 48M
	ask h_$name share 16M
	ask h_$name lock 16M
	swapon $LOOP
	{ echo "$((48 * MIB))" >"$(cgroup_dir $name)/memory.reclaim"; } 2>/dev/null
	swapped=$(cgroup_read $name memory.swap.current)
	check "mixed memory, charging $mode: a part of it is on swap" [ "$swapped" -ge $((8 * MIB)) ]
	is "mixed memory, charging $mode: SWAP is what the kernel has there" \
		"$(target "$(cgroup_path $name)" swap)" "$(cgroup_read $name memory.swap.current)"
	exec 5<$CACHED
	in_cgroup $name dd of=/dev/null bs=1M count=32 <&5 2>/dev/null
	within "mixed memory, charging $mode: page cache is beside TOTAL" \
		"$(target "$(cgroup_path $name)" cache)" $((32 * MIB)) $((2 * MIB))
	ends $name "mixed memory with a part on swap, charging $mode" "$mixed_pid"
	exec 5<&- # and the page cache goes
	swapoff $LOOP
done
losetup -d $LOOP
losetup -d $CACHED

done_testing
