#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A charge lives exactly as long as its page: through exit, through mappings, and in
# a cgroup that is removed, which it must not keep alive for ever.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

kernel_memory() {
	cgroup_event leaf memory.stat kernel
}

dying() {
	cgroup_event "" cgroup.stat nr_dying_descendants
}

# shellcheck disable=SC2317 # called through eventually()
dying_are() {
	[ "$(dying)" -eq "$1" ]
}

# shellcheck disable=SC2317 # called through eventually()
kernel_memory_falls_to() {
	[ "$(kernel_memory)" -le "$1" ]
}

cgroup_leaf leaf
charge leaf on
NOISE=$((128 * PAGE))

start_in leaf holder
ask holder open
base=$(kernel_memory)
ask holder alloc 4M 4
within "an allocation of 16 MiB is charged in the kernel's count" "$(($(kernel_memory) - base))" $((16 * MIB)) $NOISE
ask holder map 0
ask holder free all
within "freed but mapped, 4 MiB stay charged in the kernel's count" "$(($(kernel_memory) - base))" $((4 * MIB)) $NOISE
is "freed but mapped, 4 MiB stay charged by umacct" "$(account leaf charged)" $((4 * MIB))
ask holder unmap 0
ask holder unmapclose 0
within "closed, none stay charged" "$(($(kernel_memory) - base))" 0 $NOISE

ask holder alloc 4M 4
kill -KILL "$pid"
gone "$pid"
check "killed, none stay charged in the kernel's count" eventually kernel_memory_falls_to $((base + NOISE))
is "killed, none stay charged by umacct" "$(system_memory leaf) $(account leaf charged)" "0 0"

# Removed while it owes.
cgroup_leaf elsewhere
cgroup_leaf owing
charge owing on
before=$(dying)
start_in owing holder
ask holder alloc 4M 4
cgroup_add elsewhere "$pid"
rmdir "$(cgroup_dir owing)"
is "a cgroup removed while it owes hangs on" "$(dying)" $((before + 1))
ask holder free all
tell holder exit
gone "$pid"
check "a removed cgroup is gone once its memory is freed" eventually dying_are "$before"

done_testing
