#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: cgroup.memory=nokmem
#
# A kernel that accounts none of its own memory can't charge the driver's: umacct says
# so and refuses to switch it on; everything else works.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it has a kernel booted for it"
needs_accounting

cgroup_leaf leaf
is "charging is not ready" "$(umacct charge --json | json_field charge_ready)" false
check "the list says why" sh -c "umacct charge | grep -q 'cgroup.memory=nokmem'"
umacct charge on 2>"$TEST_DIR/error"
is "it can't be made the default: exit code" $? 1
check "and why" grep -q nokmem "$TEST_DIR/error"
check "nor switched on for a cgroup" fails charge leaf on 2>/dev/null
check "off and inherit are accepted" charge leaf off
check "the doctor says it too" sh -c "umacct doctor | grep -A 1 '^warn  kernel memory' | grep -q nokmem"
rmmod umacct
check "the module loads with charge=1 all the same" load umacct charge=1
is "and does not charge" "$(status_field charge_default)" off

limit leaf --hard "$(with_metadata $((2 * MIB)) 2 1)"
start_in leaf holder
check "a limit binds" fails ask holder alloc 1M 8
is "to the block" "$(system_memory leaf)" $((2 * MIB))
is "nothing is charged" "$(account leaf charged)" 0

done_testing
