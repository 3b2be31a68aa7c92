#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Somebody traces what happens to cgroups, as umacct does to see them go: neither keeps
# the other from it. The kernel tells of a cgroup under locks of its own, which our lock
# is taken within.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it traces the whole machine"
needs_accounting

complaints=$(kernel_complaints)
EVENTS=/sys/kernel/tracing/events/cgroup

echo >/sys/kernel/tracing/trace
echo 1 >$EVENTS/enable
for i in 1 2 3 4 5; do
	cgroup_leaf "going$i"
	in_cgroup "going$i" rmtool "alloc 64K 4" >/dev/null
	eventually rmdir "$(cgroup_dir "going$i")"
done
echo 0 >$EVENTS/enable

is "all five removals were traced" \
	"$(grep -c "cgroup_rmdir:.*$TEST_CGROUP/going" /sys/kernel/tracing/trace)" 5
check "a trace of cgroups has who came and went" grep -q cgroup_notify_populated /sys/kernel/tracing/trace
is "none of the removed cgroups has an account" "$(nltest accounts | grep -c "$TEST_CGROUP/going")" 0
check "the next cgroup's removal is seen as well" sh -c "mkdir $(cgroup_dir last) && rmdir $(cgroup_dir last)"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
