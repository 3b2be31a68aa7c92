# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the rig's scripts share; they source this first.

set -euo pipefail

# shellcheck disable=SC2034 # used by those who source this
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034
clone=$(cd "$vm/../.." && pwd)
# As Debian calls it.
# shellcheck disable=SC2034
host_arch=$(dpkg --print-architecture)
cache=${UMACCT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/umacct}
mkdir -p "$cache"

# How many processors a build may use; fewer where parts run side by side.
# shellcheck disable=SC2034
jobs=${UMACCT_JOBS:-$(nproc)}

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

note() {
	echo "# $*" >&2
}

# with_lock NAME COMMAND...: while no other script of the rig does so for NAME, which is
# a path for what is the clone's own.
with_lock() {
	local lock file=$cache/$1.lock
	[[ $1 != /* ]] || file=$1.lock
	exec {lock}>"$file"
	flock "$lock"
	shift
	"$@"
	exec {lock}>&-
}

# once PATH COMMAND...: makes PATH by the command if it isn't there.
once() {
	[[ -e $1 ]] || with_lock "${1##*/}" unless_there "$@"
}

unless_there() {
	[[ -e $1 ]] || "${@:2}"
}

# Runs a command whose output matters only if it fails.
quietly() { # LOG COMMAND...
	local log=$1
	shift
	if ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		die "failed: $* (all of its output: $log)"
	fi
}

# As quietly, but a command that takes long says how far it is: on a terminal in one
# line that changes, elsewhere in a line a minute. COUNTER prints "DONE of TO-DO"; it is
# given the log.
with_progress() { # WHAT COUNTER LOG COMMAND...
	local what=$1 counter=$2 log=$3 pid code=0
	: >"$log"
	watch_progress "$what" "$counter" "$log" &
	pid=$!
	(quietly "${@:3}") || code=$?
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	[[ ! -t 2 ]] || printf '\r\033[K' >&2
	return "$code"
}

watch_progress() { # WHAT COUNTER LOG
	local seconds=10 began=$SECONDS files
	trap 'kill "$nap" 2>/dev/null; exit' TERM
	while :; do
		sleep "$seconds" &
		nap=$!
		wait "$nap" || true
		files=$("$2" "$3")
		if [[ -t 2 ]]; then
			printf '\r\033[K# %s: %s files%s' "$1" "$files" "$(minutes_left "$files")" >&2
		else
			note "$1: $files files$(minutes_left "$files")"
			seconds=60
		fi
	done
}

# minutes_left "DONE of TO-DO": by how long those that are done took since began.
minutes_left() {
	[[ $1 =~ ^([0-9]+)\ of\ ([0-9]+)$ && ${BASH_REMATCH[1]} -gt 0 ]] || return 0
	echo ", about $((((BASH_REMATCH[2] - BASH_REMATCH[1]) * (SECONDS - began) / BASH_REMATCH[1] + 59) / 60)) min left"
}

# forget_old DIRECTORY GLOB KEEP: what was used longest ago goes, all but KEEP.
forget_old() {
	find "$1" -mindepth 1 -maxdepth 1 -name "$2" ! -name '*.[0-9]*' -printf '%T@ %p\n' |
		sort -rn | tail -n "+$(($3 + 1))" | cut -d ' ' -f 2- | xargs -r rm -rf
}
