#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A program that does as CUDA does (a client of the driver's, pinned host memory, managed
# memory that belongs to its address space and is touched by the CPU) gets what it got without
# umacct, and its cgroup is charged the same, but for metadata; under limits that it keeps, and with
# charging on, too.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it unloads umacct"
needs_accounting
needs_uvm

MANAGED=$((64 * MIB))
PINNED=$((128 * 64 * KIB + 8 * 2 * MIB))

cgroup_leaf honest

rises_by() { # H COMMAND...
	current=$(cgroup_current honest)
	ask "$@" || failed="$failed $*: $reply"
	rise=$(cgroup_current_since honest "$current")
}

# The program runs, from its start to its end. Sets touched, pinned and ended: by what
# memory.current rose for managed memory, for pinned memory, and for all when it is gone;
# failed: what it was refused; taken: what is missing from free memory, and is not in the
# kernel's own counters.
run_it() {
	failed=
	at_first=$(cgroup_current honest)
	start_in honest managed runas "$UNPRIVILEGED" uvmtool
	managed_pid=$pid
	start_in honest context runas "$UNPRIVILEGED" rmtool
	context_pid=$pid
	ask context alloc 64K
	ask context map 0
	ask managed open
	ask managed mm
	ask managed map $MANAGED
	quiesce
	before=$(unowned)
	rises_by managed touch
	touched=$rise
	rises_by context alloc 64K 128
	pinned=$rise
	rises_by context alloc 2M 8
	pinned=$((pinned + rise))
	settle_at $((MANAGED + PINNED)) $((256 * KIB)) unowned_since "$before"
	taken=$settles_got
	ask context map 1 || failed="$failed map: $reply"
	ask managed unmap || failed="$failed unmap: $reply"
	ask context free all || failed="$failed free: $reply"
	tell managed close
	tell context exit
	kill -KILL "$managed_pid"
	{ wait "$managed_pid" "$context_pid"; } 2>/dev/null
	settle_at 0 $((2 * PAGE)) cgroup_current_since honest "$at_first"
	ended=$settles_got
}

# In the first run the kernel makes for the cgroup what it keeps.
run_it
rmmod umacct
run_it
diag "without umacct: $touched bytes for managed memory, $pinned for pinned, $taken missing"
is "without umacct the program is refused nothing" "$failed" ""
touched_alone=$touched
pinned_alone=$pinned
within "without umacct the program takes what it asks for" "$taken" $((MANAGED + PINNED)) $((256 * KIB))

# Besides, the cgroup is charged for umacct's records and, with charging on, for the drivers' metadata.
as_before() { # HOW PINNED BESIDE
	diag "$1 $touched bytes for managed memory, $pinned for pinned, $taken missing, $ended left"
	is "$1 the program is refused nothing" "$failed" ""
	within "$1 the program is charged the same for managed memory" "$touched" "$touched_alone" "$3"
	within "$1 the program is charged for pinned memory as it is to be" "$pinned" "$2" "$3"
	within "$1 the program takes the same memory of the machine" "$taken" $((MANAGED + PINNED)) \
		$((256 * KIB))
	within "$1 the program's cgroup is charged for nothing afterwards" "$ended" 0 $((2 * PAGE))
}

load umacct
run_it
as_before "observed," "$pinned_alone" $((64 * KIB))

umacct reserve 64M >/dev/null
limit honest --hard 256M
cgroup_write honest memory.max 512M
run_it
as_before "under limits that it keeps," "$pinned_alone" $((64 * KIB))

charge honest on >/dev/null
run_it
as_before "with charging on," $((pinned_alone + PINNED)) $((MIB))
umacct reserve off >/dev/null

done_testing
