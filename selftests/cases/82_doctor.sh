#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The doctor finds a machine healthy when it is, and finds what was broken here on
# purpose when it isn't: the driver, the module, kprobes.

. "$(dirname "$0")/../lib/helpers.sh"
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

doctor
is "a healthy machine: exit code" $? 0
is "nothing failed" "$(json_field failed <"$TEST_DIR/doctor")" 0
is "the module is loaded" "$(check_field module state)" ok
is "probes fire" "$(check_field probes state)" ok
is "the memory controller is delegated" "$(check_field 'memory controller' state)" ok
is "the driver is accounted" "$(check_field driver state)" ok
check "by its version" grep -q "\"text\":\"$(cat /sys/module/nvidia/version)" "$TEST_DIR/doctor"
is "each hook has a line" "$(hook_lines)" "$(umacct --json | grep -o '"symbol":' | wc -l)"
is "the blind spot is pointed at" "$(check_field 'blind spot' state)" warn
umacct charge on
doctor
is "and gone where charging is the default" "$(check_field 'blind spot' state)" ok
umacct charge off
umacct doctor >"$TEST_DIR/text"
is "as text, it ends with the result" "$(tail -n 1 "$TEST_DIR/text" | cut -d: -f1)" healthy
is "and has a line for each check" "$(grep -cE '^(ok  |warn|fail)  ' "$TEST_DIR/text")" \
	"$(grep -o '"check":' "$TEST_DIR/doctor" | wc -l)"

echo 0 >/sys/kernel/debug/kprobes/enabled
doctor
is "kprobes are switched off: exit code" $? 1
is "the probe does not fire" "$(check_field probes state)" fail
check "it says how to fix it" sh -c \
	"$(umacct doctor | sed -n 's/.*kprobes are switched off: \(echo 1 > .*\)/\1/p')"
doctor
is "which fixes it" $? 0

unload_driver
doctor
is "no driver: exit code" $? 1
is "it is missed" "$(check_field driver state)" fail
rmmod umacct
doctor
is "no module: exit code" $? 3
is "it is missed" "$(check_field module state)" fail
is "the rest is checked all the same" "$(check_field cgroups state)" ok
load umacct
load_driver
doctor
is "all is well again" $? 0

done_testing
