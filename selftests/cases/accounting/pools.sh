#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the driver frees and keeps in its pools has a name: it is in the status and in the
# audit, the reserve counts it as available, and it can be given back. What can't be asked
# is unknown, and no figure. Most drivers here have no pools: a module that is nothing but
# pools, made as the driver's are, stands in for one that has.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it takes another module for the driver"
needs_accounting

BLOCKS=1000,0,0,0,20,0,0,0,0,40
HELD=$(((1000 + 20 * 16 + 40 * 512) * PAGE))

audited() { # PART
	umacct audit --json | json_field "$1"
}

# The driver's own pools, where it has any.
if [ "$(driver_major)" -lt 590 ]; then
	is "a driver without pools keeps nothing" "$(status_field pools)" 0
	is "JSON says that a driver without pools keeps nothing" "$(umacct --json | json_field pools)" 0
	is "with a driver without pools there is nothing to give back" "$(umacct preflight --fix --json | json_field reclaimed)" 0
	skip "this driver's own pools" "it has none"
else
	give_back_pools
	unexplained=$(audited unexplained)
	cgroup_leaf leaf
	start_in leaf holder
	ask holder open
	ask holder alloc 64K 100
	ask holder alloc 2M 16
	held=$(system_memory leaf)
	tell holder exit
	gone "$pid"
	eventually system_is leaf 0
	pools=$(status_field pools)
	is "this driver's pools hold what everybody who has gone held" "$pools" "$held"
	within "the audit has the driver's pools as a part" "$(audited driver_pools)" "$pools" $((2 * MIB))
	within "the audit doesn't have the driver's pools as unexplained" "$(audited unexplained)" "${unexplained:-0}" $((8 * MIB))
	free=$(free_at_once)
	umacct preflight --fix
	check "what the driver's pools hold is given back" eventually status_is pools 0
	within "what the driver's pools held is free for the kernel" $(($(free_at_once) - free)) "$pools" $((8 * MIB))
fi

ask_for() { # MIB
	{ echo $(($1 * MIB / PAGE)) >/sys/module/nvidia/parameters/ask; } 2>/dev/null
}

refused_for() { # MIB
	! ask_for "$1"
}

in_use() {
	[ "$(cat /sys/module/nvidia/refcnt)" -gt 0 ]
}

unload_driver
stand_in_without nothing
unexplained=$(audited unexplained)
check "the stand-in loads" insmod "$TEST_DIR/nvidia.ko" blocks=$BLOCKS
is "the stand-in with pools is followed" "$(status_field driver_state)" hooked
is "what the stand-in's pools hold is known" "$(status_field pools)" $HELD
is "JSON has what the stand-in's pools hold" "$(umacct --json | json_field pools)" $HELD
is "the audit has the stand-in's pools as a part" "$(audited driver_pools)" $HELD
within "the audit leaves nothing of the stand-in's pools unexplained" "$(audited unexplained)" "${unexplained:-0}" $((8 * MIB))
check "the summary has a line for the pools" sh -c 'umacct | grep -q "in its pools"'
is "who may not see the machine isn't told what the pools hold" \
	"$(runas $UNPRIVILEGED umacct --json | json_field pools)" null
check "who may not see the machine may not give the pools back" fails runas $UNPRIVILEGED umacct preflight --fix 2>/dev/null

umacct reserve $(($(available) - 40 * MIB)) >/dev/null
check "the reserve counts what is in the pools as available" ask_for $((HELD / MIB - 5))
check "the reserve counts what is in the pools once" refused_for $((HELD / MIB + 115))
umacct reserve off >/dev/null

rmmod umacct
load umacct
is "what the pools hold is known to a module that is loaded later" "$(status_field pools)" $HELD
free=$(free_at_once)
is "reclaim says how much of the pools was given back" "$(umacct preflight --fix --json | json_field reclaimed)" $HELD
is "after reclaim the pools are empty" "$(status_field pools)" 0
within "after reclaim the pools' memory is free for the kernel" $(($(free_at_once) - free)) $HELD $((8 * MIB))
is "after reclaim the pools are no longer in the audit" "$(audited driver_pools)" 0

# Who asks keeps the driver from going.
echo 1 >/sys/module/nvidia/parameters/hold
while grep -q Y /sys/module/nvidia/parameters/hold; do
	cat "$DEBUGFS/status" >"$TEST_DIR/status"
done &
asking=$!
check "somebody asks for the pools, and is held there" eventually in_use
check "the driver doesn't go while somebody asks for its pools" fails rmmod nvidia 2>/dev/null
echo 0 >/sys/module/nvidia/parameters/hold
wait $asking
check "who asked for the pools has its answer" grep -qx "pools 0" "$TEST_DIR/status"
check "the driver goes when nobody asks for its pools" eventually rmmod nvidia 2>/dev/null
is "without a driver there are no pools" "$(status_field pools)" 0

# But nobody keeps a driver that isn't in use by reading /proc/meminfo all the time.
cgroup_leaf reading
umacct view on "$(cgroup_path reading)"
insmod "$TEST_DIR/nvidia.ko" blocks=$BLOCKS slow=1
for i in 1 2 3 4; do
	# shellcheck disable=SC2016 # expands in the inner shell
	in_cgroup reading sh -c 'while cat /proc/meminfo >/dev/null; do : >"$0"; done' "$TEST_DIR/reader$i" &
	holders="$holders $!"
done
all_read() {
	[ -e "$TEST_DIR/reader1" ] && [ -e "$TEST_DIR/reader2" ] && [ -e "$TEST_DIR/reader3" ] &&
		[ -e "$TEST_DIR/reader4" ]
}
check "four tasks with a view read" eventually all_read
tries=1
until rmmod nvidia 2>/dev/null || [ $tries -ge 8 ]; do
	tries=$((tries + 1))
	usleep 200000
done
diag "the driver went at the attempt number $tries"
check "while tasks with a view read all the time, a driver goes" [ ! -d /sys/module/nvidia ]
echo 1 >"$(cgroup_dir reading)/cgroup.kill"
umacct view off "$(cgroup_path reading)"
eventually sh -c '! [ -d /sys/module/nvidia ] || rmmod nvidia' 2>/dev/null

for symbol in sysmem_page_pools nv_mem_pool_shrinker_count; do
	stand_in_without $symbol
	insmod "$TEST_DIR/nvidia.ko" blocks=$BLOCKS
	is "without $symbol: the driver is followed" "$(status_field driver_state)" hooked
	is "without $symbol: what the pools hold is unknown" "$(status_field pools)" unknown
	is "without $symbol: what the pools hold is null in JSON" "$(umacct --json | json_field pools)" null
	is "without $symbol: what the pools hold is null in the audit" "$(audited driver_pools)" null
	check "without $symbol: the pools can't be given back" fails umacct preflight --fix
	umacct reserve $(($(available) - 40 * MIB)) >/dev/null
	check "without $symbol: the reserve doesn't count on the pools" refused_for 80
	umacct reserve off >/dev/null
	rmmod nvidia
done

check "the driver loads after the stand-ins" load_driver
is "the driver is followed after the stand-ins" "$(status_field driver_state)" hooked

done_testing
