#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the driver takes for itself, in a kernel thread, is shown apart and is on
# nobody's account.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "umacct_test_alloc is for virtual machines only"
needs_accounting
needs_kernel_alloc

cgroup_leaf leaf
start_in leaf holder
before=$(status_field driver_usage)
ask holder kernel alloc $((MIB / PAGE)) $PAGE 0
check "16 MiB from a kernel thread" ask holder kernel thread alloc $((4 * MIB / PAGE)) $PAGE 1 4
is "the driver has them" $(($(status_field driver_usage) - before)) $((16 * MIB))
is "the cgroup that made the thread has what it took itself" "$(system_memory leaf)" $MIB
check "freed by the process" ask holder kernel free
is "the driver has no more than before" "$(status_field driver_usage)" "$before"
is "nor has the cgroup" "$(system_memory leaf)" 0

ask holder kernel alloc $((MIB / PAGE)) $PAGE 0
check "what a process took is freed by a kernel thread" ask holder kernel thread free
is "and goes from the process's cgroup" "$(system_memory leaf)" 0
is "not from the driver's" "$(status_field driver_usage)" "$before"

done_testing
