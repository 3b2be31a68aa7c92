#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Managed memory (nvidia-uvm) is charged by the kernel already: umacct shows it
# apart, byte for byte, and never adds it to the usage.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting
needs_uvm

managed() { account "$1" managed; }

cgroup_make top
cgroup_leaf top/leaf
start_in top/leaf holder uvmtool
holder_pid=$pid
ask holder open
ask holder map 64M
is "managed memory that is mapped but untouched takes nothing" "$(managed top/leaf)" 0
before=$(cgroup_read top/leaf memory.current)
ask holder touch 32M
is "32 MiB of managed memory that were touched are counted" "$(managed top/leaf)" $((32 * MIB))
ask holder touch
is "64 MiB of managed memory that were touched are counted" "$(managed top/leaf)" $((64 * MIB))
is "the parent has the managed memory of its child" "$(managed top)" $((64 * MIB))
is "managed memory is no usage" "$(system_memory top/leaf)" 0
check "managed memory is listed under the process's name" \
	sh -c "umacct ps --json | grep -Eq '\"comm\" *: *\"uvmtool\"'"
within "the kernel has charged as much as umacct counts of managed memory" \
	$(($(cgroup_read top/leaf memory.current) - before)) $((64 * MIB)) $((2 * MIB + CHARGED_AHEAD))

start_in top/leaf second uvmtool
second_pid=$pid
ask second open
ask second map 16M
ask second touch
is "a second process adds its own managed memory" "$(managed top/leaf)" $((80 * MIB))
ask holder unmap
check "unmapping takes the first process's managed memory away" eventually account_is top/leaf managed $((16 * MIB))
kill -KILL "$second_pid"
gone "$second_pid"
check "death takes the second process's managed memory away" eventually account_is top/leaf managed 0

# For a program that only grows, its owner is found out once, not with each page.
events=/sys/kernel/tracing
if echo 'p:umacct_made umacct:umacct_attribution_make' 2>/dev/null >>$events/kprobe_events; then
	start_in top/leaf grower uvmtool
	grower_pid=$pid
	ask grower open
	ask grower map 8M
	echo 1 >$events/events/kprobes/umacct_made/enable
	ask grower touch
	echo 0 >$events/events/kprobes/umacct_made/enable
	made=$(awk '$1 == "umacct_made" { print $2 }' $events/kprobe_profile)
	echo '-:umacct_made' >>$events/kprobe_events
	diag "of $((8 * MIB / PAGE)) pages, for $made it was found out anew"
	check "of 8 MiB of managed memory, page by page, the owner is found out for a few at most" \
		[ "$made" -le 8 ]
	kill -KILL "$grower_pid"
	gone "$grower_pid"
	check "death takes the growing process's managed memory away" \
		eventually account_is top/leaf managed 0
else
	skip "how often the owner of managed memory is found out" "this kernel has no kprobe events"
fi

# A length that the driver refuses only when it has tried, and that would wrap every sum above.
# Without the module the kernel of some versions logs it with a trace of the call.
if [ -z "${OBSERVED:-}" ]; then
	cgroup_leaf top/vain
	start_in top/vain vain uvmtool
	vain_pid=$pid
	ask vain open
	before=$(account top peak)
	for _ in 1 2 3 4 5; do
		ask vain pool_at 0x1000 0xfffc000000000000
	done
	# The driver's heap counts in lots, which are given back one by one.
	within "a pool of nearly 2^64 bytes isn't in the peak" "$(account top/vain peak)" \
		"$(account top/vain usage)" $((64 * KIB))
	is "a pool of nearly 2^64 bytes isn't in the parent's peak" "$(account top peak)" "$before"
	limit top/vain --hard 16M
	refusals=$(account top/vain refusals)
	ask vain pool_at 0x1000 0xfffc000000000000
	is "where there is a limit, it is refused for that, and counted" \
		"$(account top/vain refusals)" $((refusals + 1))
	kill -KILL "$vain_pid"
	gone "$vain_pid"
fi

# A mapping of 8 MiB takes a block of nvidia-uvm's heap that lies between two powers of two.
cgroup_leaf top/heap
start_in top/heap keeper uvmtool
keeper_pid=$pid
ask keeper open
ask keeper pool 4K 16
kept=$(account top/heap metadata)
rounds=0
while [ $rounds -lt 4 ] && ask keeper map 8M 800 && ask keeper unmap; do
	rounds=$((rounds + 1))
done
is "mappings come and go four times" $rounds 4
check "a block of the heap gives back as much as it took: what stays is still counted" \
	[ "$(account top/heap metadata)" -ge "$kept" ]
within "and nothing more of what went, but a lot" "$(account top/heap metadata)" "$kept" $((36 * KIB))
kill -KILL "$keeper_pid"
gone "$keeper_pid"

cgroup_leaf top/gone
start_in top/gone third uvmtool
third_pid=$pid
ask third open
ask third map 16M
ask third touch
cgroup_add top/leaf "$pid"
rmdir "$(cgroup_dir top/gone)"
is "a removed cgroup's managed memory is its parent's" "$(managed top)" $((16 * MIB))
ask third unmap
check "a removed cgroup's managed memory goes from the parent when it is unmapped" eventually account_is top managed 0

start_in top/leaf native
check "a process opens the driver before nvidia-uvm goes" ask native open
check "a process takes 8 MiB of the driver before nvidia-uvm goes" ask native alloc 1M 8
kill -KILL "$holder_pid" "$third_pid"
check "nvidia-uvm is unloaded" eventually rmmod nvidia_uvm
is "what the driver holds counts on without nvidia-uvm" "$(system_memory top/leaf)" $((8 * MIB))
ask native free all
is "what the driver held is freed without nvidia-uvm" "$(system_memory top/leaf)" 0
check "nvidia-uvm comes back" load_uvm

done_testing
