#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot:
#
# A module that is loaded with charge=1 before there is any memory cgroup, as at boot, charges
# from the first one on.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a machine booted for it"
needs_umacct

rmmod umacct
is "no cgroup exists before umacct is loaded" "$(find $CGROUPS -mindepth 1 -type d | wc -l)" 0
is "without a memory cgroup charging is not ready" "$(load umacct && status_field charge_ready)" false
rmmod umacct
check "umacct is loaded to charge from the start" load umacct charge=1
is "charging stays wanted until there is a memory cgroup" "$(status_field charge_default)" on

needs_accounting
cgroup_leaf leaf
is "with a memory cgroup charging is ready" "$(umacct charge --json | json_field charge_ready)" true
start_in leaf holder
before=$(cgroup_current leaf)
ask holder alloc 1M 16
is "what is allocated from the first memory cgroup on is charged" "$(account leaf charged)" $((16 * MIB))
settles "what is allocated from the first memory cgroup on is in memory.current" $((16 * MIB)) $MIB \
	cgroup_current_since leaf "$before"

done_testing
