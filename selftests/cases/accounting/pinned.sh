#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# PINNED: a program's own memory that it registers with the driver, per account and process, for as
# long as it is registered. Without a GPU the driver gives it up at once, so that the end of the
# call is held up here.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting
needs_kernel_alloc

cgroup_make top
cgroup_leaf top/leaf
start guard rmtool
start_in top/leaf holder rmtool
holder_pid=$pid
ask holder open

pinned() {
	target "$(cgroup_path "$1")" pinned
}
pinned_is() {
	[ "$(pinned "$1")" = "$2" ]
}
of_process() {
	umacct ps --json "$(cgroup_path top/leaf)" | json_field pinned
}
vmstat() { # KEY
	awk -v key="$1" '$1 == key { print $2 }' /proc/vmstat
}
# What all devices have pinned, as the kernel counts it. Each processor has a part of these counters.
in_kernel() {
	cat /proc/sys/vm/stat_refresh >/dev/null
	echo $((($(vmstat nr_foll_pin_acquired) - $(vmstat nr_foll_pin_released)) * PAGE))
}

is "nothing is pinned before" "$(pinned top/leaf)" 0
kernel_before=$(in_kernel)
usage_before=$(account top/leaf usage)
check "memory stays registered for now" ask guard kernel hold unpin_user_page
tell holder describe 64K
check "an account has the memory that a program in it registered" \
	eventually pinned_is top/leaf $((64 * KIB))
is "so has the account above it" "$(pinned top)" $((64 * KIB))
is "and the process" "$(of_process)" $((64 * KIB))
is "it is what the kernel has pinned" $(($(in_kernel) - kernel_before)) $((64 * KIB))
check "it is no part of usage" [ $(($(account top/leaf usage) - usage_before)) -lt $((64 * KIB)) ]
check "ls has it in a column" sh -c "umacct ls -o pinned | grep -q '64.00 KiB'"
ask guard kernel release
answer holder
is "memory that isn't registered any more isn't pinned" "$(pinned top/leaf)" 0
is "neither of the process" "$(of_process)" 0
ask holder describe 900G
is "memory that there isn't is never pinned" "$(pinned top)" 0
tell holder exit
gone "$holder_pid"
is "nothing is pinned after" "$(pinned top)" 0

done_testing
