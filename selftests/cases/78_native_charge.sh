#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A driver that has the kernel charge its pages by itself is known by what it does, not
# by its version: what it charges shows as charged, once, and umacct doesn't charge.

. "$(dirname "$0")/../lib/helpers.sh"
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
is "nor is anything charged" "$(account leaf charged)" 0
ask holder free all

# By kprobes both see the driver's own call.
rmmod umacct
check "now it does" ask holder kernel native 1
load umacct direct_calls=0
check "before it has allocated nothing is said" fails native
before=$(cgroup_current leaf)
ask holder alloc 1M 8
check "then it is known" native
is "what it charges shows" "$(account leaf charged)" $((8 * MIB))
settles "and is charged once" $((8 * MIB)) $CHARGED_AHEAD cgroup_current_since leaf "$before"
umacct charge on "$(cgroup_path leaf)" 2>"$TEST_DIR/error"
check "charging can't be switched on besides" grep -q 'by itself' "$TEST_DIR/error"
ask holder free all
is "nothing is charged any more" "$(account leaf charged)" 0

rmmod umacct
ask holder kernel native 0
load umacct
ask holder alloc 1M
check "as it was, it doesn't charge" fails native
is "and nothing is charged" "$(account leaf charged)" 0
ask holder free all
check "charging can be switched on" charge leaf on
ask holder alloc 1M
is "and charges" "$(account leaf charged)" $MIB

done_testing
