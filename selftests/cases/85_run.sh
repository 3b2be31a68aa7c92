#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "umacct run" puts a command into a cgroup of its own under a limit, ends as the
# command does, says what it took at most, and leaves no cgroup behind.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it makes cgroups beside everybody's"
needs_accounting

left_behind() {
	find "$CGROUPS" -type d -name "*run-test-$$*" | grep -q .
}

run() { # OPTION... -- COMMAND...
	umacct run --json --name "run-test-$$" "$@" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
}

field() { # KEY
	json_field "$1" <"$TEST_DIR/err"
}

run --hard 4M -- rmtool "fill 1M"
is "a program that asks for everything under --hard 4M: its peak" "$(field peak)" $((4 * MIB))
is "it was refused once" "$(field refusals)" 1
is "by its own limit" "$(field hard)" $((4 * MIB))
check "no cgroup is left" fails left_behind

run --soft 2M -- rmtool "alloc 1M 3"
is "under --soft 2M it gets what it asks for" "$(field peak)" $((3 * MIB))
is "and crosses the limit once" "$(field local_soft_count)" 1
is "its exit code" "$(field exit_code)" 0

run -- sh -c 'exit 7'
is "the command's exit code is run's" $? 7
is "and in the summary" "$(field exit_code)" 7
run -- sh -c 'kill -TERM $$'
is "killed by a signal: as a shell says it" $? 143
run -- /no/such/command
is "a command that isn't there" $? 127
check "no cgroup is left" fails left_behind

umacct run --name "run-test-$$" --hard 1M -- sh -c 'echo out; cat; exit 3' \
	<"$SELFTESTS/lib/helpers.sh" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
is "its standard input and output are its own" "$(head -n 1 "$TEST_DIR/out")" out
is "to the last byte" "$(tail -n +2 "$TEST_DIR/out" | md5sum)" "$(md5sum <"$SELFTESTS/lib/helpers.sh")"
check "the summary is for people" grep -q '^umacct: peak 0 B, 0 allocations, 0 refused' "$TEST_DIR/err"

umacct run --name "run-test-$$" -- sh -c 'sleep 100' 2>/dev/null &
runner=$!
check "a long command has its cgroup" eventually left_behind
kill -TERM $runner
wait $runner
is "a signal to run is one to the command" $? 143
check "and no cgroup is left" eventually fails left_behind

runas $UNPRIVILEGED umacct run -- true 2>/dev/null
is "an unprivileged user may not" $? 4
umacct run --hard lots -- true 2>"$TEST_DIR/err"
is "a size that doesn't parse" $? 2
check "is named" grep -q -- '--hard' "$TEST_DIR/err"
umacct run --hard 1M --soft 2M -- true 2>/dev/null
is "soft above hard" $? 1
umacct run 2>/dev/null
is "no command" $? 2

done_testing
