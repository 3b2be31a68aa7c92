#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# However many tasks are inside the driver, a task that is charged is: a crowd in the
# driver's ioctl, and a throttle somewhere, change nothing for others.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

CROWD=400

cgroup_leaf crowd
cgroup_leaf charged
cgroup_leaf throttled
check "somebody has a throttle" limit throttled --soft 1M --throttle 1ms
charge charged on
start_in charged holder
ask holder open

start_in crowd crowd sh -c "for i in \$(seq $CROWD); do rmtool 'churn 4K' >/dev/null & done; wait"
# The driver lets one of them in at a time: the others are in its ioctl and wait.
crowd_is_there() {
	[ "$(grep -c . "$(cgroup_dir crowd)/cgroup.procs")" -gt "$CROWD" ]
}
PATIENCE=300
check "$CROWD tasks are in the driver" eventually crowd_is_there
sleep 2

cgroup_write charged memory.max 32M
ask holder fill 4M
given=$(reply_field count)
diag "beside the crowd $given times 4 MiB fit into memory.max = 32 MiB"
is "at memory.max beside the crowd the driver's answer is NO_MEMORY" "$(reply_field status)" $NO_MEMORY
check "memory.max holds beside the crowd" [ "$given" -le 8 ]
check "who is charged gets as much as fits beside the crowd" [ "$given" -ge 6 ]
within "all that was given beside the crowd is charged, with its metadata" "$(account charged charged)" \
	$((given * 4 * MIB)) $((given * 4 * MIB / 50 + 64 * KIB))

echo 1 >"$(cgroup_dir crowd)/cgroup.kill"

done_testing
