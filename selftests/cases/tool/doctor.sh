#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The doctor finds a machine healthy when it is, and finds what was broken here on
# purpose when it isn't: the driver, the module, kprobes.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it unloads the driver and the module, and switches kprobes off"
needs_accounting

doctor() {
	umacct doctor --json >"$TEST_DIR/doctor"
}

# A field of the first check of that name.
check_field() { # CHECK KEY
	tr '{' '\n' <"$TEST_DIR/doctor" | grep "^\"check\":\"$1\"" | head -n 1 | json_field "$2"
}

hook_lines() {
	grep -o '"check":"hook [^"]*"' "$TEST_DIR/doctor" | wc -l
}

# What other cases had the module count as gone wrong, it counts until it is loaded anew.
rmmod umacct
load umacct

doctor
is "on a healthy machine the doctor's exit code is 0" $? 0
is "on a healthy machine nothing failed" "$(json_field failed <"$TEST_DIR/doctor")" 0
is "on a healthy machine the module is loaded" "$(check_field module state)" ok
is "on a healthy machine probes fire" "$(check_field probes state)" ok
is "on a healthy machine the memory controller is delegated" "$(check_field 'memory controller' state)" ok
is "on a healthy machine the driver is accounted" "$(check_field driver state)" ok
check "the doctor has the driver's version" grep -q "\"text\":\"$(cat /sys/module/nvidia/version)" "$TEST_DIR/doctor"
is "each hook has a line of the doctor's" "$(hook_lines)" "$(umacct --json | grep -o '"symbol":' | wc -l)"
is "the doctor does not warn of the blind spot alone" "$(check_field 'blind spot' state)" ok
is "the doctor's first line is of the machine's memory" "$(umacct doctor | head -n 1 | cut -c 1-14)" "ok    memory: "
umacct doctor >"$TEST_DIR/text"
is "the doctor's text ends with the result" "$(tail -n 1 "$TEST_DIR/text" | cut -d: -f1)" healthy
check "the doctor's text of a healthy machine fits on a screen of 24 lines" [ "$(wc -l <"$TEST_DIR/text")" -lt 24 ]
is "with -v the doctor's text has a line for each check" "$(umacct doctor -v | grep -cE '^(ok  |warn|fail)  ')" \
	"$(grep -o '"check":' "$TEST_DIR/doctor" | wc -l)"

cgroup_leaf contained
echo $((16 * MIB)) >"$CGROUPS$TEST_CGROUP/contained/memory.max"
start_in contained holder
ask holder alloc 4M 8
doctor
is "the doctor warns of a memory.max that does not hold" "$(check_field memory.max state)" warn
check "the doctor names the cgroup whose memory.max does not hold" grep -q \
	"memory.max of $TEST_CGROUP/contained does not hold" "$TEST_DIR/doctor"
tell holder exit

echo 0 >/sys/kernel/debug/kprobes/enabled
doctor
is "with kprobes switched off the doctor's exit code is 1" $? 1
is "with kprobes switched off the doctor's probe does not fire" "$(check_field probes state)" fail
check "with kprobes switched off the doctor says how to fix it" sh -c \
	"$(umacct doctor | sed -n 's/.*kprobes are switched off: \(echo 1 > .*\)/\1/p')"
doctor
is "what the doctor says fixes it" $? 0

unload_driver
doctor
is "without a driver the doctor's exit code is 1" $? 1
is "without a driver the doctor misses it" "$(check_field driver state)" fail
rmmod umacct
doctor
is "without the module the doctor's exit code is 3" $? 3
is "without the module the doctor misses it" "$(check_field module state)" fail
is "without the module the doctor checks the rest" "$(check_field cgroups state)" ok
load umacct
load_driver
doctor
is "with module and driver back all is well again" $? 0

done_testing
