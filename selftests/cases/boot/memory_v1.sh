#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: rig.memory=v1
#
# With the memory controller on cgroup v1 there is no memory.max to charge against:
# umacct says so; accounting and limits go by the v2 hierarchy.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a machine booted for it"
needs_root
needs_driver
needs_umacct
grep -q '^cgroup /mnt cgroup .*memory' /proc/mounts || skip_all "this kernel has no v1 memory controller"

cgroup_leaf leaf
is "charging is not ready" "$(umacct charge --json | json_field charge_ready)" false
umacct charge on 2>"$TEST_DIR/error"
is "charging can't be switched on: exit code 1" $? 1
check "the refusal says that the controller is not on cgroup v2" grep -q 'not on cgroup v2' "$TEST_DIR/error"
check "the doctor warns of the memory controller" sh -c "umacct doctor | grep -q '^warn  memory controller'"

limit leaf --hard "$(with_metadata $((2 * MIB)) 2 1)"
start_in leaf holder
check "a limit binds with the controller on cgroup v1" fails ask holder alloc 1M 8
is "the limit holds to the block with the controller on cgroup v1" "$(system_memory leaf)" $((2 * MIB))
is "nothing is charged with the controller on cgroup v1" "$(account leaf charged)" 0

done_testing
