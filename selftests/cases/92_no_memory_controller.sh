#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: cgroup_disable=memory
#
# Without a memory controller umacct is the only one that can limit the driver's
# memory, and does.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it has a kernel booted for it"
needs_root
needs_driver
needs_umacct

cgroup_leaf leaf
umacct charge on 2>"$TEST_DIR/error"
is "charging can't be switched on: exit code" $? 1
check "and why" grep -q 'cgroup_disable=memory' "$TEST_DIR/error"
check "the doctor says it too" sh -c "umacct doctor | grep -q '^warn  memory controller'"
check "there is no memory.current to show" fails test -e "$(cgroup_dir leaf)/memory.current"
check "which the list survives" umacct ls

limit leaf --hard "$(with_metadata $((2 * MIB)) 2 1)"
start_in leaf holder
check "a limit binds" fails ask holder alloc 1M 8
is "to the block" "$(system_memory leaf)" $((2 * MIB))
ask holder free all
is "and all is given back" "$(system_memory leaf)" 0

done_testing
