#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A driver that has the kernel charge its pages by itself is known by what it does, not
# by its version: what it charges shows as charged, once, and umacct doesn't charge.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting
needs_kernel_alloc

native() {
	status_is native_charge true
}

cgroup_leaf leaf
start_in leaf holder
ask holder alloc 1M
check "this driver doesn't charge" fails native
is "nothing is charged with a driver that doesn't charge by itself" "$(account leaf charged)" 0
ask holder free all

# By kprobes both see the driver's own call.
rmmod umacct
check "the driver is made to charge by itself" ask holder kernel native 1
load umacct direct_calls=0
check "a driver that charges is not known as such before it has allocated" fails native
# Of the first one nobody knows whether it came out of a pool, where the driver has pools.
ask holder alloc 4K
check "a driver that charges is known as such when it has allocated" native
ask holder free all
before=$(cgroup_current leaf)
ask holder alloc 1M 8
is "what a driver charges by itself shows as charged" "$(account leaf charged)" $((8 * MIB))
settles "what a driver charges by itself is charged once" $((8 * MIB)) $CHARGED_AHEAD cgroup_current_since leaf "$before"
umacct charge on "$(cgroup_path leaf)" 2>"$TEST_DIR/error"
check "charging can't be switched on beside a driver that charges by itself" grep -q 'by itself' "$TEST_DIR/error"
ask holder free all
is "nothing stays charged after the free" "$(account leaf charged)" 0

rmmod umacct
ask holder kernel native 0
load umacct
ask holder alloc 1M
check "the driver as it was doesn't charge by itself" fails native
is "nothing is charged with the driver as it was" "$(account leaf charged)" 0
ask holder free all
check "charging can be switched on with the driver as it was" charge leaf on
ask holder alloc 1M
is "charging charges with the driver as it was" "$(account leaf charged)" $MIB

done_testing
