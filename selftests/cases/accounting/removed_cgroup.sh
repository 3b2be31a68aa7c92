#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A cgroup that is removed while memory is held for it leaves its debt to its
# parent: nothing is lost, and it is paid when the memory is freed.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

cgroup_make parent
cgroup_leaf parent/leaf
cgroup_leaf elsewhere
start_in parent/leaf holder
ask holder alloc 4M 4
is "the leaf has the 16 MiB that were taken in it" "$(system_memory parent/leaf)" $((16 * MIB))
first_id=$(cgroup_id parent/leaf)

cgroup_add elsewhere "$pid"
check "the leaf is removed" rmdir "$(cgroup_dir parent/leaf)"
is "the parent still has the removed leaf's 16 MiB" "$(system_memory parent)" $((16 * MIB))
check "the removed leaf's 16 MiB are the parent's own" eventually account_is parent local "$(with_metadata $((16 * MIB)) 4 1)"
is "the place where the process went has nothing" "$(system_memory elsewhere)" 0

cgroup_leaf parent/leaf
check "a new cgroup of the same name is another one" [ "$(cgroup_id parent/leaf)" != "$first_id" ]
is "a new cgroup of the same name starts from nothing" "$(system_memory parent/leaf)" 0

ask holder free 0
is "a free of the removed leaf's memory goes from the parent" "$(system_memory parent)" $((12 * MIB))
rmdir "$(cgroup_dir parent/leaf)"
check "the parent is removed, too" rmdir "$(cgroup_dir parent)"
check "the removed parent's debt goes one up" eventually account_is "" local "$(with_metadata $((12 * MIB)) 3 1)"
ask holder free all
is "the last free pays the debt of the removed cgroups" "$(system_memory "")" 0
is "no free of a removed cgroup's was lost" "$(account "" frees)" "$(account "" allocs)"

# Many cgroups that come, take and go while one process holds it all.
before=$(status_field accounts)
for i in $(seq 50); do
	cgroup_leaf "crowd$i"
	cgroup_add "crowd$i" "$pid"
	ask holder alloc 64K
	cgroup_add elsewhere "$pid"
	rmdir "$(cgroup_dir "crowd$i")"
done
# Each has a lot for what the driver's heap has of its object.
crowd_is_left() {
	crowd_left=$(account "" local)
	[ "$crowd_left" -ge $((50 * 64 * KIB)) ] &&
		[ "$crowd_left" -le "$(with_metadata $((50 * 64 * KIB)) 50 51)" ]
}
check "50 removed cgroups leave 50 x 64 KiB" eventually crowd_is_left
diag "$crowd_left bytes are left"
ask holder free all
is "the last of 50 removed cgroups' memory is freed" "$(system_memory "")" 0
check "the accounts of 50 removed cgroups are gone" eventually status_is accounts "$before"

# What is hooked for a setting goes with the last cgroup that had it.
view_hook_is() { # STATE
	[ "$(awk '$2 == "si_meminfo" { print $3 }' /sys/kernel/debug/umacct/status)" = "$1" ]
}
if view_hook_is off; then
	cgroup_leaf viewing
	limit viewing --view
	check "a view has its hook armed" view_hook_is armed
	rmdir "$(cgroup_dir viewing)"
	check "a view's hook goes with its cgroup" eventually view_hook_is off
else
	skip "a view's hook goes with its cgroup" "somebody else needs that hook, or debugfs is not there"
fi

done_testing
