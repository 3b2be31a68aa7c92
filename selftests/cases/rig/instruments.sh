#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tests' own instruments work on this driver: what they ask for happens, seen
# in MemFree alone. Nothing here asks umacct; if this case fails, no other means
# anything.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_root
needs_driver
needs_cgroups

TOLERANCE=$((256 * KIB))

moved() { # BEFORE BYTES DESCRIPTION
	settles "$3" "$2" $TOLERANCE unowned_since "$1"
}

cgroup_leaf leaf
start_in leaf holder runas $UNPRIVILEGED rmtool
check "an unprivileged process opens a client" ask holder open
ask holder alloc 4M 8
ask holder free all
quiesce
before=$(unowned)

check "32 MiB are allocated by ioctl" ask holder alloc 4M 8
moved "$before" $((32 * MIB)) "they are gone from free memory"
check "an allocation is mapped, written and read back" ask holder map 0
check "an allocation is freed while it is mapped" ask holder free 0
check "the rest of the allocations is freed" ask holder free all
moved "$before" $((4 * MIB)) "the mapped one is still held by the driver"
check "the mapping is undone" ask holder unmap 0
moved "$before" $((4 * MIB)) "and is still held by the driver"
check "the file of the mapping is closed" ask holder unmapclose 0
moved "$before" 0 "and now it is free"

ask holder alloc 64M
is "more than the page allocator gives in one block is refused" \
	"$(echo "$reply" | cut -d' ' -f1-3)" "refused alloc status=$NO_MEMORY"
check "the process goes on after the refusal" ask holder alloc 64K
check "the allocations of the process are freed" ask holder free all

needs_kernel_alloc
check "16 MiB come in blocks of 64 KiB through the driver's allocator" \
	ask holder kernel alloc $((16 * MIB / PAGE)) 65536 0
moved "$before" $((16 * MIB)) "they are gone from free memory"
check "16 MiB more come through a kernel thread" ask holder kernel thread alloc $((4 * MIB / PAGE)) $PAGE 1 4
moved "$before" $((32 * MIB)) "they are gone from free memory"
check "what came through the driver's allocator is freed" ask holder kernel free
moved "$before" 0 "and came back"
ask holder kernel alloc 17 65536 0
is "a shape that the driver can't walk is not tried" "${reply%% *}" \
	"$([ "$(driver_major)" -ge 545 ] && echo error || echo ok)"
ask holder kernel free
check "a benchmark runs" ask holder kernel bench 1 $PAGE 1 100
diag "$reply"

if [ -c /dev/nvidia-uvm ]; then
	start_in leaf managed runas $UNPRIVILEGED uvmtool
	check "an unprivileged process opens nvidia-uvm" ask managed open
	check "64 MiB of managed memory are mapped" ask managed map 64M
	before=$(unowned)
	check "the managed memory is touched" ask managed touch
	moved "$before" $((64 * MIB)) "they are gone from free memory"
	check "the managed memory is unmapped" ask managed unmap
	moved "$before" 0 "and came back"
else
	skip "managed memory" "nvidia-uvm is not loaded"
fi

done_testing
