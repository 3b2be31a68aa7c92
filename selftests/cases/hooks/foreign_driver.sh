#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A driver of a version that umacct doesn't know, and one without a function that
# it needs, are left alone, and it says so; of one without the function that charging
# needs, who is to be charged gets nothing. Each is the real driver, with some letters of
# its file changed: of its version, of that function's name.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads altered drivers"
needs_accounting

REQUIRED=nv_free_contig_pages
MASK=nv_compute_gfp_mask

# The places of what is to be changed: "version OFFSET" and "symbol OFFSET" lines.
places() { # MODULE SYMBOL
	strings -t d "$MODULES/$1.ko" | awk -v symbol="$2" '
	$2 ~ /^version=/ { print "version", $1 + length("version=") }
	$2 == symbol || $2 == "__pfx_" symbol || $2 == "__cfi_" symbol {
		print "symbol", $1 + length($2) - 1
	}'
}

# altered_driver WHAT TEXT [MODULE]: writes TEXT over each place of that kind.
altered_driver() {
	altered=${3:-nvidia}.ko
	cp "$MODULES/$altered" "$TEST_DIR/$altered"
	grep "^$1 " "$TEST_DIR/places" | while read -r _ at; do
		printf %s "$2" | dd of="$TEST_DIR/$altered" bs=1 seek="$at" conv=notrunc 2>/dev/null
	done
}

# Whatever can't be accounted must work as if umacct weren't there.
is_left_alone() { # DESCRIPTION
	start_in leaf holder
	check "$1: the driver allocates" ask holder alloc 1M 8
	is "$1: nothing is counted" "$(status_field system)" 0
	is "$1: no limit binds" "$(account leaf refusals)" 0
	tell holder exit
	gone "$pid"
	is "$1: no record is made" "$(status_field records)" 0
}

known=$(driver_major)
places nvidia $REQUIRED >"$TEST_DIR/places"
cgroup_leaf leaf
cgroup_leaf other
hard=$(with_metadata $((2 * MIB)) 2 1)
limit leaf --hard "$hard"
unload_driver

altered_driver version 999
dmesg -c >/dev/null
check "a driver of an unknown version loads" insmod "$TEST_DIR/nvidia.ko"
version=$(cat /sys/module/nvidia/version)
is "the version of the driver is changed to 999" "${version%%.*}" 999
is "the state of a driver of an unknown version is unknown" "$(status_field driver_state)" unknown
is "the status has the version of a driver of an unknown version" "$(status_field driver_version)" "$version"
check "the status says why a driver of an unknown version isn't followed" sh -c "umacct --json | grep -q '$version is not a version'"
check "the log says why a driver of an unknown version isn't followed" sh -c "dmesg | grep -q 'umacct: .*$version is not a version'"
is "a driver of an unknown version has no hook on it" "$(hooked_functions)" ""
is_left_alone unknown
is "metadata of a driver of an unknown version isn't counted" "$(account leaf metadata)" 0
umacct >"$TEST_DIR/out"
is "the tool works with a driver of an unknown version" $? 0
check "the tool warns of a driver of an unknown version" grep -q "^warning: .*$version" "$TEST_DIR/out"
umacct doctor >"$TEST_DIR/out"
is "the doctor fails with a driver of an unknown version" $? 1
check "the doctor's line for the driver has the unknown version" grep -q "^fail  driver: .*$version" "$TEST_DIR/out"

# An update of the driver, under the module that is loaded.
rmmod nvidia
altered_driver version "$known.999"
check "another version of a known series loads" insmod "$TEST_DIR/nvidia.ko"
version=$(cat /sys/module/nvidia/version)
# What is behind it, if anything, is the rest of the old one.
is "the version of the driver is changed within its series" "$(echo "$version" | cut -c "-$((${#known} + 4))")" "$known.999"
is "another version of a known series is followed" "$(status_field driver_state)" hooked
is "the status has another version of a known series" "$(status_field driver_version)" "$version"
start_in leaf holder
check "the limit from before binds with another version of the series" fails ask holder alloc 1M 8
is "the limit from before holds to the block with another version of the series" "$(system_memory leaf)" $((2 * MIB))
tell holder exit
gone "$pid"
rmmod nvidia
altered_driver version 999
insmod "$TEST_DIR/nvidia.ko"
version=$(cat /sys/module/nvidia/version)

# Until umacct knows it, an administrator can say which one it is like.
rmmod umacct
load umacct like_series="$known"
is "a driver that is taken for one that is known is followed" "$(status_field driver_state)" hooked
limit leaf --hard "$hard"
start_in leaf holder
check "a limit binds with a driver that is taken for one that is known" fails ask holder alloc 1M 8
is "a limit holds to the block with a driver that is taken for one that is known" "$(system_memory leaf)" $((2 * MIB))
umacct >"$TEST_DIR/out"
check "the tool warns of a driver that is treated as one that is known" grep -q "^warning: .*$version is treated as series $known" "$TEST_DIR/out"
umacct doctor >"$TEST_DIR/out"
check "the doctor warns of a driver that is taken for one that is known" grep -q "^warn  driver: .*$version is treated" "$TEST_DIR/out"
tell holder exit
gone "$pid"
rmmod nvidia
rmmod umacct
load umacct
limit leaf --hard "$hard"

altered_driver symbol _
dmesg -c >/dev/null
check "a driver without $REQUIRED loads" insmod "$TEST_DIR/nvidia.ko"
is "the state of a driver without $REQUIRED is broken" "$(status_field driver_state)" broken
check "the status names the function that the driver lacks" sh -c "umacct --json | grep -q 'no hook at nvidia:$REQUIRED'"
check "the log names the function that the driver lacks" sh -c "dmesg | grep -q 'umacct: .*nvidia:$REQUIRED'"
is_left_alone broken
rmmod nvidia

places nvidia $MASK >"$TEST_DIR/places"
limit leaf --hard max
charge leaf on
altered_driver symbol _
check "a driver without $MASK loads" insmod "$TEST_DIR/nvidia.ko"
is "a driver without $MASK is followed" "$(status_field driver_state)" hooked
start_in leaf holder
holder_pid=$pid
start_in other other
check "who can't be charged is refused for want of $MASK" fails ask holder alloc 1M
diag "$reply"
is "who can't be charged for want of $MASK holds nothing" "$(system_memory leaf)" 0
check "who isn't to be charged is given memory without $MASK" ask other alloc 1M
is "who isn't to be charged is counted without $MASK" "$(system_memory other)" $MIB
for name in holder other; do
	tell $name exit
done
gone "$holder_pid"
gone "$pid"
settles "nothing is left with a driver without $MASK" 0 0 status_field system
rmmod nvidia
charge leaf inherit
limit leaf --hard "$hard"

# The first nvidia-uvm took no memory that could be followed.
load nvidia
places nvidia-uvm $REQUIRED >"$TEST_DIR/places"
altered_driver version 525 nvidia-uvm
check "the nvidia-uvm of an old driver loads" insmod "$TEST_DIR/nvidia-uvm.ko"
is "the nvidia-uvm of an old driver isn't followed" "$(status_field uvm_state)" unknown
check "the log says that the nvidia-uvm of an old driver isn't followed" sh -c "dmesg | grep -q 'umacct: nvidia_uvm 525.* is not followed'"
is "the driver is followed beside an nvidia-uvm that isn't" "$(status_field driver_state)" hooked
unload_driver

check "the driver as it was loads" load_driver
is "the driver as it was is followed" "$(status_field driver_state)" hooked
start_in leaf holder
check "the limit from before binds with the driver as it was" fails ask holder alloc 1M 8
is "the limit from before holds to the block with the driver as it was" "$(system_memory leaf)" $((2 * MIB))

done_testing
