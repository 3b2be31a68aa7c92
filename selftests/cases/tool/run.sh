#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# "umacct run" puts a command into a cgroup of its own under a limit, ends as the
# command does, says what it took at most, and leaves no cgroup behind.

. "$(dirname "$0")/../../lib/helpers.sh"
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

needed() { # KEY
	sed 's/.*"needed"://' "$TEST_DIR/err" | json_field "$1"
}

hard=$(with_metadata $((4 * MIB)) 4 1)
run --hard "$hard" -- rmtool "fill 1M"
is "the peak of a program that asks for everything under --hard is the limit" "$(field peak)" "$hard"
is "a program that asks for everything under --hard was refused once" "$(field refusals)" 1
is "the report has the program's own hard limit" "$(field hard)" "$hard"
check "no cgroup is left of a program under --hard" fails left_behind

run --soft 2M -- rmtool "alloc 1M 3"
is "a program under --soft 2M gets what it asks for" "$(field peak)" "$(with_metadata $((3 * MIB)) 3 1)"
is "a program under --soft 2M crosses the limit once" "$(field local_soft_count)" 1
is "the report has the exit code of a program under --soft" "$(field exit_code)" 0

run --charge -- true
is "with --charge what the command takes is to be charged" "$(field charge)" on
run -- true
is "without --charge the command is charged as everywhere" "$(field charge)" inherit

# The driver asks last, and is refused; nothing is killed.
run --total 96M -- rmtool "touch 32M" "fill 2M" "sleep 1"
check "under --total a program whose driver requests come last is not killed" \
	[ "$(field exit_code)" -lt 128 ]
check "under --total the driver is refused" [ "$(field failures)" -gt 0 ]
within "under --total all memory of a program comes up to it, and no further" "$(needed total)" \
	$((94 * MIB)) $((3 * MIB))
needed_alone=$(run -- rmtool "alloc 2M 16" "touch 16M" "sleep 1"; needed total)
run --total $((needed_alone + 3 * MIB)) -- rmtool "alloc 2M 16" "touch 16M" "sleep 1"
is "a program goes on under the total that it needed" "$(field exit_code) $(field failures)" "0 0"
run --total $((needed_alone - 6 * MIB)) -- rmtool "touch 16M" "alloc 2M 16" "sleep 1"
check "a program is refused under less than the total that it needed" [ "$(field failures)" -gt 0 ]

run -- sh -c 'exit 7'
is "the command's exit code is run's" $? 7
is "the report has the command's exit code" "$(field exit_code)" 7
run -- sh -c 'kill -TERM $$'
is "a command that is killed by a signal ends as a shell says it" $? 143
run -- /no/such/command
is "a command that isn't there ends with 127" $? 127
check "no cgroup is left of a command that isn't there" fails left_behind

umacct run --name "run-test-$$" --hard 1M -- sh -c 'echo out; cat; exit 3' \
	<"$SELFTESTS/lib/helpers.sh" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
is "the command's standard input and output are its own" "$(head -n 1 "$TEST_DIR/out")" out
is "the command's input comes out to the last byte" "$(tail -n +2 "$TEST_DIR/out" | md5sum)" "$(md5sum <"$SELFTESTS/lib/helpers.sh")"
check "the summary is for people" grep -q '^umacct: peak 0 B, 0 allocations, 0 refused' "$TEST_DIR/err"
check "the last line says what the command needed" \
	grep -q '^umacct: needed .* at most (driver 0 B, programs ' "$TEST_DIR/err"

# The driver's first, which goes again; then both at once; then the program's alone.
run -- rmtool "alloc 2M 40" "free all" "alloc 2M 32" "touch 64M" "sleep 1" "free all" "touch 8M" "sleep 1"
within "what a command needed is its most at one moment, not a sum of peaks" "$(needed total)" \
	$((128 * MIB)) $((4 * MIB))
within "what a command needed of the driver is what it had at that moment" "$(needed driver)" \
	$((64 * MIB)) $((2 * MIB))
within "what a command needed beside the driver is what its programs had" "$(needed programs)" \
	$((64 * MIB)) $((4 * MIB))

umacct run --name "run-test-$$" -- sh -c 'sleep 100' 2>/dev/null &
runner=$!
check "a long command has its cgroup" eventually left_behind
kill -TERM $runner
wait $runner
is "a signal to run is one to the command" $? 143
check "no cgroup is left of a command that was ended by a signal" eventually fails left_behind

# Every byte of the command's words is the command's.
umacct run -q printf '%s|' '[ -f /x ]' '[64,64]' '[]' '' -j 8 --hard -- '{a}' >"$TEST_DIR/out"
is "the command's words arrive as they are" "$(cat "$TEST_DIR/out")" \
	'[ -f /x ]|[64,64]|[]||-j|8|--hard|--|{a}|'
check "without --, the command's options are its own" umacct run -q sh -c '[ -f /proc/stat ]'

for signal in USR1 USR2 ALRM HUP; do
	: >"$TEST_DIR/out"
	umacct run -q --name "run-test-$$" sh -c "trap 'exit 9' $signal; echo up; while :; do sleep 0.1; done" \
		>"$TEST_DIR/out" &
	runner=$!
	eventually grep -q up "$TEST_DIR/out"
	kill -$signal $runner
	wait $runner
	is "SIG$signal is passed on to the command" $? 9
done

# A report that nobody can read changes nothing.
mkfifo "$TEST_DIR/fifo"
sh -c 'exec 3<"$1"; exec 3<&-' - "$TEST_DIR/fifo" &
(
	umacct run --name "run-test-$$" sh -c 'sleep 1; sleep 100 & exit 7' 2>"$TEST_DIR/fifo"
	echo $? >"$TEST_DIR/code"
)
is "the exit code is the command's when whoever read the report is gone" "$(cat "$TEST_DIR/code")" 7
check "no cgroup is left when whoever read the report is gone" fails left_behind
check "no child is left when whoever read the report is gone" fails sh -c "ps | grep -q '[s]leep 100'"
umacct run --name "run-test-$$" --report /dev/full sh -c 'exit 7' 2>"$TEST_DIR/err"
is "the exit code is the command's when the report can't be written" $? 7
check "it is said that the report can't be written" grep -q "no report: --report: cannot write '/dev/full'" "$TEST_DIR/err"

umacct run --json --report "$TEST_DIR/report" --hard "$hard" -- rmtool "fill 1M" \
	>/dev/null 2>"$TEST_DIR/err"
is "--report: the report is in the file" "$(json_field peak <"$TEST_DIR/report")" "$hard"
is "--report: nothing else is said" "$(cat "$TEST_DIR/err")" ""
umacct run -q --report "$TEST_DIR/report" --user nobody sh -c 'ls -l /proc/self/fd' >"$TEST_DIR/out"
check "the command of another user has no file of root's open" fails grep -q "$TEST_DIR/report" "$TEST_DIR/out"
is "--quiet says nothing" "$(umacct run -q true 2>&1)" ""
# shellcheck disable=SC2016 # expands in the command
is "--user: the command runs as that user" \
	"$(umacct run -q --user nobody sh -c 'echo $(id -u) $(id -g) $HOME $USER')" \
	"$UNPRIVILEGED $UNPRIVILEGED / nobody"
umacct run -q --throttle 5ms --soft 1M true
is "--throttle is taken" $? 0

runas $UNPRIVILEGED umacct run -- true 2>/dev/null
is "an unprivileged user may not run, as from every verb" $? 4
umacct run --hard lots -- true 2>"$TEST_DIR/err"
is "a size that doesn't parse ends with 125" $? 125
check "a size that doesn't parse is refused by its option's name" grep -q -- '--hard' "$TEST_DIR/err"
umacct run --hard 1M --soft 2M -- true 2>/dev/null
is "a soft limit above the hard one ends with 125" $? 125
umacct run 2>/dev/null
is "run without a command ends with 125" $? 125
umacct run /etc 2>/dev/null
is "a command that can't be run ends with 126" $? 126

done_testing
