#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# long: also
#
# umacct and the driver may come and go in any order; from the moment both are
# there every allocation is counted, and a count never survives its reason.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting

complaints=$(kernel_complaints)

counts() { # DESCRIPTION
	start_in leaf holder
	ask holder alloc 1M 4
	is "$1: 4 MiB are counted" "$(system_memory leaf)" $((4 * MIB))
	tell holder exit
	gone "$pid"
	check "$1: nothing is counted after the exit" eventually system_is leaf 0
}

cgroup_leaf leaf
counts "loaded after the driver"
is "the driver is known" "$(status_field driver_state)" hooked
is "the status has the version of the driver" "$(status_field driver_version)" "$(cat /sys/module/nvidia/version)"

check "the driver is unloaded" unload_driver
is "the status says that the driver is absent" "$(status_field driver_state)" absent
check "the driver is loaded again" load_driver
is "the status says that the driver is back" "$(status_field driver_state)" hooked
is "what loading the driver took is not on the account of the program that loaded it" \
	"$(umacct ps --json | grep -c '"comm":"insmod"')" 0
counts "the driver loaded after umacct"

rmmod umacct
unload_driver
check "umacct is loaded without a driver" load umacct
is "umacct without a driver says that there is none" "$(status_field driver_state)" absent
is "umacct without a driver counts nothing" "$(status_field system)" 0
check "the driver is loaded after umacct" load_driver
counts "umacct loaded before the driver"

# Memory from before umacct belongs to nobody; freeing it must take from nobody.
rmmod umacct
start_in leaf old
old_pid=$pid
ask old alloc 4M 4
check "umacct is loaded while memory is held" load umacct
is "what was allocated before umacct was loaded is not counted" "$(system_memory leaf)" 0
ask old alloc 1M
is "what is allocated after umacct was loaded is counted" "$(system_memory leaf)" $MIB
ask old free 0
is "a free of what was not counted takes nothing away" "$(system_memory leaf)" $MIB
check "umacct is unloaded while memory is held" rmmod umacct
ask old alloc 1M
check "umacct is loaded again while memory is held" load umacct
is "umacct that is loaded again starts from nothing" "$(system_memory leaf)" 0
ask old free all
is "the frees of what was not counted leave nothing below nothing" "$(system_memory leaf)" 0
tell old exit
gone "$old_pid"

many=3
[ -z "${CASE_LONG-}" ] || many=10
cycles=0
while [ $cycles -lt $many ] && rmmod umacct && load umacct; do
	cycles=$((cycles + 1))
done
is "$many times unloaded and loaded" $cycles $many
counts "after $many cycles"

many=2
[ -z "${CASE_LONG-}" ] || many=5
cycles=0
while [ $cycles -lt $many ] && unload_driver && load_driver; do
	cycles=$((cycles + 1))
done
is "the driver $many times unloaded and reloaded" $cycles $many
counts "after $many cycles of the driver"
# What a driver takes for itself is recorded for as long as it is there.
unload_driver
is "no record outlived its driver" "$(status_field records)" 0
load_driver
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
