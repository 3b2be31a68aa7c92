#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# With charging on, the kernel's own limits hold for the driver's memory: cleanly,
# without killing anybody.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills page cache and throttles"
needs_accounting

events() { # NAME KEY
	cgroup_event "$1" memory.events "$2"
}

# What the program itself needs, and what the driver's own objects round up to.
OWN=$((4 * MIB))

cgroup_make parent
cgroup_leaf parent/leaf
charge parent on
start_in parent/leaf holder
ask holder open

cgroup_write parent/leaf memory.max 64M
ask holder fill 4M
given=$(reply_field count)
is "at memory.max the driver's answer is NO_MEMORY" "$(reply_field status)" $NO_MEMORY
check "memory.max lets through as much as fits" [ $((given * 4 * MIB)) -ge $((64 * MIB - OWN - 4 * MIB)) ]
check "memory.max lets no more through than it says" [ "$(cgroup_read parent/leaf memory.current)" -le $((64 * MIB)) ]
check "memory.events counts that memory.max was reached" [ "$(events parent/leaf max)" -gt 0 ]
is "nobody is killed at memory.max" "$(events parent/leaf oom_kill)" 0
check "a smaller allocation succeeds at memory.max" ask holder alloc 4K
is "umacct knows what the cgroup at memory.max holds" "$(system_memory parent/leaf)" $((given * 4 * MIB + PAGE))
is "umacct counts one failure of the driver at memory.max" "$(account parent/leaf failures)" 1
check "memory.peak has what was taken up to memory.max" [ "$(cgroup_read parent/leaf memory.peak)" -ge $((given * 4 * MIB)) ]
ask holder free all

cgroup_write parent/leaf memory.max max
cgroup_write parent memory.max 32M
ask holder fill 4M
check "a parent's memory.max binds" [ "$(reply_field count)" -le 8 ]
check "a parent's memory.max lets through as much as fits" [ "$(reply_field count)" -ge 6 ]
is "nobody is killed at the parent's memory.max" "$(events parent oom_kill)" 0
ask holder free all
cgroup_write parent memory.max max

# Page cache goes before anybody is refused. A file in memory has none that could
# go; what is read from a block device has.
cgroup_write parent/leaf memory.max 96M
dd if=/dev/zero of="$TEST_DIR/image" bs=1M count=0 seek=64 2>/dev/null
device=$(losetup -f)
losetup "$device" "$TEST_DIR/image"
# With its last reader a block device loses its cache.
exec 7<"$device"
in_cgroup parent/leaf dd if="$device" of=/dev/null bs=1M 2>/dev/null
cache=$(cgroup_event parent/leaf memory.stat file)
check "the cgroup has 48 MiB and more of page cache" [ "$cache" -ge $((48 * MIB)) ]
check "an allocation that doesn't fit beside the page cache succeeds" ask holder alloc 4M 16
check "the allocation takes the page cache's place" \
	[ "$(cgroup_event parent/leaf memory.stat file)" -lt $((cache - 16 * MIB)) ]
is "nobody is killed for the page cache's place" "$(events parent/leaf oom_kill)" 0
ask holder free all
exec 7<&-
losetup -d "$device"
cgroup_write parent/leaf memory.max max

# Near memory.high the driver's pages are taken without reclaim, and yet not from what the kernel
# keeps for those that can't wait.
cgroup_write parent/leaf memory.high 16M
before=$(events parent/leaf high)
page_events=/sys/kernel/tracing/events/kmem/mm_page_alloc
echo >/sys/kernel/tracing/trace
echo 1 >$page_events/enable
start=$(now_ms)
ask holder alloc 1M 20
slow=$(($(now_ms) - start))
echo 0 >$page_events/enable
check "near memory.high nothing comes from the kernel's emergency reserve" \
	grep -q "rmtool.*__GFP_NOMEMALLOC.*__GFP_ACCOUNT" /sys/kernel/tracing/trace
echo >/sys/kernel/tracing/trace
check "memory.high refuses nothing" [ "${reply%% *}" = ok ]
check "memory.high is reached" [ "$(events parent/leaf high)" -gt "$before" ]
diag "20 MiB with memory.high = 16 MiB took $slow ms"
check "memory.high slows who goes above it" [ $slow -ge 100 ]
cgroup_write parent/leaf memory.high max
ask holder free all

done_testing
