#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# dumb.sh UMACCT: whether a terminal that knows no colours is sent none, nor any other
# escape sequence.

set -euo pipefail
umacct=$1
failed=0

escapes() { # VARIABLE=VALUE ...
	# The doctor needs no module.
	env -u NO_COLOR "$@" script -qc "'$umacct' doctor" /dev/null </dev/null | grep -c $'\033' || true
}

[[ $(escapes TERM=xterm) -gt 0 ]] || { echo "not ok - no colours where there may be some"; failed=1; }
for variables in TERM=dumb TERM= "TERM=xterm NO_COLOR=1"; do
	# shellcheck disable=SC2086 # several
	[[ $(escapes $variables) -eq 0 ]] || { echo "not ok - $variables"; failed=1; }
done
[[ $failed -ne 0 ]] || echo "ok - no escape sequences"
exit $failed
