#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: cgroup_disable=memory
#
# Without a memory controller umacct is the only one that can limit the driver's
# memory, and does.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a kernel booted for it"
needs_root
needs_driver
needs_umacct

cgroup_leaf leaf
umacct charge on 2>"$TEST_DIR/error"
is "charging can't be switched on: exit code 1" $? 1
check "the refusal names the kernel's parameter" grep -q 'cgroup_disable=memory' "$TEST_DIR/error"
check "the doctor warns of the memory controller" sh -c "umacct doctor | grep -q '^warn  memory controller'"
check "memory.current does not exist without a memory controller" fails test -e "$(cgroup_dir leaf)/memory.current"
check "the list does without memory.current" umacct ls

limit leaf --hard "$(with_metadata $((2 * MIB)) 2 1)"
start_in leaf holder
check "a limit binds without a memory controller" fails ask holder alloc 1M 8
is "the limit holds to the block without a memory controller" "$(system_memory leaf)" $((2 * MIB))
ask holder free all
is "all is given back without a memory controller" "$(system_memory leaf)" 0

done_testing
