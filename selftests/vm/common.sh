# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the rig's scripts share; they source this first.

set -euo pipefail

# shellcheck disable=SC2034 # used by those who source this
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034
clone=$(cd "$vm/../.." && pwd)
cache=${UMACCT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/umacct}
mkdir -p "$cache"

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

note() {
	echo "# $*" >&2
}

# with_lock NAME COMMAND...: while no other script of the rig does so for NAME.
with_lock() {
	local lock
	exec {lock}>"$cache/$1.lock"
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
