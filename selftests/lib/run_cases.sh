#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run_cases.sh [GLOBS]: runs the cases whose names match, in order, and prints one
# TAP stream: a line for each case, with the case's own TAP indented above it.
# Exits 0 if none failed. What a case's head says of the machine that it needs is in
# heads.sh; without CASE_MACHINE, those that need none in particular are run.

dir=$(cd "$(dirname "$0")/.." && pwd)
globs=${1:-*}
: "${CASE_TIMEOUT:=600}"
results=${TMPDIR:-/tmp}/umacct-case.$$
trap 'rm -f "$results" "$results".*' EXIT

# shellcheck source=/dev/null
. "$dir/lib/heads.sh"

set --
for path in "$dir"/cases/*/*.sh; do
	read_head "$path"
	# shellcheck disable=SC2154 # read_head sets these
	[ "$head_machine" = "${CASE_MACHINE-}" ] || continue
	is_one_of "${CASE_CELL-}" "${head_cell:-*}" || continue
	is_of_list "${CASE_LONG-}" || continue
	! is_case "$path" "$globs" || set -- "$@" "$path"
done

echo "TAP version 13"
echo "1..$#"

# What a case printed decides, and its exit code must agree: a case that dies
# half-way never printed its plan.
judge() { # CODE
	if [ "$1" -eq 4 ] && grep -q '^1\.\.0 # SKIP' "$results"; then
		echo skip
	elif [ "$1" -eq 0 ] && grep -q '^1\.\.[1-9]' "$results" && ! grep -q '^not ok' "$results"; then
		echo pass
	else
		echo fail
	fi
}

# What the kernel has said so far that no case may make it say.
trouble() {
	dmesg 2>/dev/null | grep -E 'WARNING:|BUG:|Oops|UBSAN:|detected stalls|blocked for more'
}

# Of what it says, in lines, all but what the case said; see expect_warning().
unexpected() {
	sed -n 's/^# expected: a warning of the kernel.s in //p' "$results" >"$results.expected"
	grep -v -F -f "$results.expected"
}

# The processes of the case: it is a session of its own.
session() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v session="$case_pid" '
	{
		pid = $1
		sub(/.*\) /, "")
		if ($4 == session && $1 != "Z")
			print pid
	}'
}

# What each of them runs, and what that waits for.
tell_of_session() {
	for session_pid in $(session); do
		echo "# $session_pid, in $(cat "/proc/$session_pid/wchan"):" \
			"$(tr '\0\n' '  ' <"/proc/$session_pid/cmdline" | cut -c 1-160)"
	done 2>/dev/null
}

kill_session() { # [ALL-BUT-THIS-PID]
	for session_pid in $(session); do
		[ "$session_pid" = "${1-}" ] || kill -KILL "$session_pid" 2>/dev/null
	done
}

ends_within() { # SECONDS
	timeout "$1" head -n 1 <&9 >"$results.end" 2>/dev/null
	[ -s "$results.end" ]
}

# Ends a case that takes longer than it may. Its shell heeds that when the command that it waits for is over. If
# that takes a tenth of the case's time, what the shell runs is killed, and the shell has as long again to clean up.
watch_case() {
	ends_within "$CASE_TIMEOUT" && return
	read -r case_pid <"$results.pid"
	{
		echo "not ok - the case ends within $CASE_TIMEOUT s"
		tell_of_session
	} >"$results.late"
	kill "$case_pid"
	ends_within "$grace" || {
		kill_session "$case_pid"
		ends_within "$grace"
	} || {
		echo "# it did not clean up within $grace s" >>"$results.late"
		kill_session
		ends_within "$grace"
	}
	kill_session
}
grace=$(((CASE_TIMEOUT + 9) / 10))

# run_case FILE: sets code.
run_case() {
	: >"$results.late"
	watch_case &
	# shellcheck disable=SC2016 # expands in the inner shell
	sh -c 'echo "$$" >"$1" && exec setsid sh "$0"' "$1" "$results.pid" >"$results" 2>&1 </dev/null 9>&-
	code=$?
	echo ended >&9
	wait
	cat "$results.late" >>"$results"
}

mkfifo "$results.fifo" || exit 1
exec 9<>"$results.fifo"

number=0
failed=0
for path in "$@"; do
	number=$((number + 1))
	name=${path#"$dir"/cases/}
	start=$(date +%s)
	trouble_before=$(trouble | wc -l)
	run_case "$path"
	trouble | tail -n "+$((trouble_before + 1))" | unexpected >"$results.trouble"
	sed 's/^/not ok - the kernel says: /' "$results.trouble" >>"$results"
	sed 's/^/    /' "$results"
	took="$(($(date +%s) - start)) s"
	case $(judge "$code") in
	pass) echo "ok $number - ${name%.sh} # $took" ;;
	skip) echo "ok $number - ${name%.sh} $(sed -n 's/^1\.\.0 //p' "$results")" ;;
	fail)
		failed=$((failed + 1))
		echo "not ok $number - ${name%.sh} # exit code $code, $took"
		;;
	esac
done

echo "# $((number - failed)) of $number cases passed or were skipped"
[ "$failed" -eq 0 ]
