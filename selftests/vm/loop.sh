# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# How fast a machine is: loop_ms prints how long it takes for something that is the same
# on each.

loop_ms() {
	local from=${EPOCHREALTIME/./} i
	for ((i = 0; i < 200000; i++)); do :; done
	echo $(((${EPOCHREALTIME/./} - from) / 1000 + 1))
}
