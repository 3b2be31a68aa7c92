#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: cma=256M
#
# What is kept for devices (CMA) holds no pages for the driver, whose own can't be moved: the
# reserve doesn't count its free pages as available, nor the page cache that is there.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a machine booted for it"
needs_accounting

meminfo() { # KEY
	awk -v key="$1:" '$1 == key { print $2 * 1024 }' /proc/meminfo
}

cma=$(meminfo CmaFree)
[ "${cma:-0}" -gt $((128 * MIB)) ] || skip_all "this kernel sets no memory aside for CMA"
diag "$((cma / MIB)) MiB of CMA are free"

short_lists
cgroup_leaf leaf
start_in leaf holder
ask holder open
reserve=$(($(meminfo MemAvailable) - cma - 64 * MIB))
umacct reserve $reserve
ask holder fill 2M
is "an allocation is refused at last" "$(reply_field status)" $NO_MEMORY
diag "$(reply_field count) blocks of 2 MiB were had"
within "the reserve is what is left beside the free pages of the CMA area" $(($(meminfo MemAvailable) - cma)) $reserve $((8 * MIB))
umacct reserve off
ask holder free all

# Page cache goes there, too, and what is given back of it is nothing for the driver. That of
# a block device doesn't: a file on a file system it is, which takes no memory itself.
LOOP=/dev/loop0
truncate -s 8G "$TEST_DIR/disk"
losetup $LOOP "$TEST_DIR/disk"
mke2fs -q $LOOP >/dev/null 2>&1
mkdir "$TEST_DIR/mounted"
check "a file system is mounted for the page cache" mount -t ext4 $LOOP "$TEST_DIR/mounted"
truncate -s 2G "$TEST_DIR/mounted/zeros"
exec 5<"$TEST_DIR/mounted/zeros"
for _ in $(seq 64); do
	[ "$(meminfo CmaFree)" -gt $((cma / 2)) ] || break
	dd of=/dev/null bs=1M count=32 <&5 2>/dev/null
done
check "page cache takes more than half of the CMA area" [ "$(meminfo CmaFree)" -le $((cma / 2)) ]
diag "$(($(meminfo CmaFree) / MIB)) MiB of CMA are free"
reserve=$(($(meminfo MemAvailable) - cma - 64 * MIB))
umacct reserve $reserve
ask holder fill 2M
is "an allocation is refused beside the page cache of the CMA area, too" "$(reply_field status)" $NO_MEMORY
# Not by how many were had: memory may have come back meanwhile.
left=$(($(meminfo MemAvailable) - cma))
diag "$(reply_field count) were had; $((left / MIB)) MiB are left beside CMA, the reserve is $((reserve / MIB)) MiB"
check "the reserve is left beside the CMA area and its page cache" [ "$left" -ge $((reserve - 8 * MIB)) ]
umacct reserve off
ask holder free all
exec 5<&-
umount "$TEST_DIR/mounted"
losetup -d $LOOP

done_testing
