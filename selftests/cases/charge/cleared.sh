#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: init_on_alloc=0
#
# Nobody gets memory that was not cleared. Where the driver has page pools, it is told
# not to clear what is charged: whatever happens to our probes then, what they would
# have had cleared is not handed out. The driver here is taken for one with pools.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a kernel booted for it"
needs_accounting
needs_kernel_alloc

GFP=nvidia:nv_compute_gfp_mask

reload() { # PARAMETER=VALUE...
	rmmod umacct
	load umacct like_series=590 "$@"
	charge charged on
}

# inspect DESCRIPTION ROUNDS: by a process that is charged.
inspect() {
	ask inspector inspect 64K "$2"
	is "$1: no page that was given was dirty" "$(reply_field dirty)" 0
}

cgroup_leaf charged
cgroup_leaf other
start_in charged inspector
start_in other other

reload
if [ "$(driver_major)" -lt 545 ]; then
	check "a driver that is known to be called otherwise is not taken for one with pools" \
		status_is page_pools false
	check "the status says that a driver called otherwise is not followed" sh -c 'umacct --json | grep -q "like_series is not followed"'
	ask inspector inspect 64K 50
	is "a driver that isn't taken for one with pools charges, and gives all" "$(reply_field given)" 50
	is "a driver that isn't taken for one with pools gives nothing dirty" "$(reply_field dirty)" 0
	rmmod umacct
	load umacct
	done_testing
fi
check "the status says that the driver has pools" status_is page_pools true
check "the status says that the driver is taken for another" sh -c 'umacct --json | grep -q like_series'
inspect "charged" 50
is "charged: all was given" "$(reply_field given)" 50
echo 0 >/sys/kernel/debug/kprobes/enabled
inspect "kprobes off" 50
echo 1 >/sys/kernel/debug/kprobes/enabled

reload direct_calls=0
inspect "by kprobes" 50
is "by kprobes: all was given" "$(reply_field given)" 50
before=$(cgroup_current charged)
check "a probe hides the driver's mask from ours" ask other kernel hide $GFP
inspect "hidden" 50
is "hidden: all was refused" "$(reply_field refused)" 50
is "hidden: nothing is held" "$(system_memory charged)" 0
settles "hidden: nothing is charged" 0 $((16 * PAGE)) cgroup_current_since charged "$before"
ask other inspect 64K 20
is "beside the hidden mask who isn't charged is given all" "$(reply_field given)" 20
is "beside the hidden mask who isn't charged is given nothing dirty" "$(reply_field dirty)" 0
check "the probe that hides the mask is gone" ask other kernel unhide
inspect "seen again" 50
is "seen again: all is given" "$(reply_field given)" 50

# Off and on at any moment.
tell inspector inspect 64K 3000
for _ in $(seq 40); do
	echo 0 >/sys/kernel/debug/kprobes/enabled
	echo 1 >/sys/kernel/debug/kprobes/enabled
done
charge charged off
charge charged on
answer inspector
is "kprobes off and on: nothing was dirty" "$(reply_field dirty)" 0
tell inspector inspect 64K 3000
for _ in 1 2 3; do
	reload
	reload direct_calls=0
done
answer inspector
is "loaded and unloaded: nothing was dirty" "$(reply_field dirty)" 0
is "loaded and unloaded: nothing was refused" "$(reply_field refused)" 0
is "nothing is held after the module came and went" "$(system_memory charged)" 0

rmmod umacct
load umacct

done_testing
