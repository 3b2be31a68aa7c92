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

number=0
failed=0
for path in "$@"; do
	number=$((number + 1))
	name=${path#"$dir"/cases/}
	start=$(date +%s)
	trouble_before=$(trouble | wc -l)
	timeout "$CASE_TIMEOUT" sh "$path" >"$results" 2>&1 </dev/null
	code=$?
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
