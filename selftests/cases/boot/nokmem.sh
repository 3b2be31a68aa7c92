#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: cgroup.memory=nokmem
#
# A kernel that accounts none of its own memory can't charge the driver's: umacct says
# so and refuses to switch it on; everything else works.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a kernel booted for it"
needs_accounting

cgroup_leaf leaf
is "charging is not ready" "$(umacct charge --json | json_field charge_ready)" false
check "the list of charging says why it is not ready" sh -c "umacct charge | grep -q 'cgroup.memory=nokmem'"
umacct charge on 2>"$TEST_DIR/error"
is "charging can't be made the default: exit code 1" $? 1
check "the refusal of charging as the default says why" grep -q nokmem "$TEST_DIR/error"
check "charging can't be switched on for a cgroup" fails charge leaf on 2>/dev/null
check "charging can be switched off for a cgroup" charge leaf off
check "the doctor says why charging is not ready" sh -c "umacct doctor | grep -A 1 '^warn  kernel memory' | grep -q nokmem"
rmmod umacct
check "the module loads with charge=1 all the same" load umacct charge=1
is "the module loaded with charge=1 does not charge" "$(status_field charge_default)" off

limit leaf --hard "$(with_metadata $((2 * MIB)) 2 1)"
start_in leaf holder
check "a limit binds where nothing can be charged" fails ask holder alloc 1M 8
is "the limit holds to the block where nothing can be charged" "$(system_memory leaf)" $((2 * MIB))
is "nothing is charged where nothing can be" "$(account leaf charged)" 0

done_testing
