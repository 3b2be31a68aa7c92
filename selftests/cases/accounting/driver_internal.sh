#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the driver takes for itself, in a kernel thread, is shown apart and is on
# nobody's account.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "umacct_test_alloc is for virtual machines only"
needs_accounting
needs_kernel_alloc

cgroup_leaf leaf
start_in leaf holder
before=$(status_field driver_usage)
ask holder kernel alloc $((MIB / PAGE)) $PAGE 0
check "a kernel thread takes 16 MiB of the driver" ask holder kernel thread alloc $((4 * MIB / PAGE)) $PAGE 1 4
is "what a kernel thread takes is the driver's own" $(($(status_field driver_usage) - before)) $((16 * MIB))
is "the cgroup that made the thread has what it took itself" "$(system_memory leaf)" $MIB
check "the process frees what the kernel thread took" ask holder kernel free
is "the driver has no more of its own than before" "$(status_field driver_usage)" "$before"
is "the cgroup that made the thread holds nothing after its free" "$(system_memory leaf)" 0

ask holder kernel alloc $((MIB / PAGE)) $PAGE 0
check "what a process took is freed by a kernel thread" ask holder kernel thread free
is "what a kernel thread frees goes from the cgroup that took it" "$(system_memory leaf)" 0
is "what a kernel thread frees for a process doesn't go from the driver's own" "$(status_field driver_usage)" "$before"

done_testing
