#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The reason for all this: the driver takes memory that the cgroup's own counters
# and limits don't see, and umacct does.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting

SIZE=$((128 * MIB))

# What the program itself needs while it allocates: page tables, its own table of
# objects, the file: never the memory.
NOISE=$((2 * MIB))

cgroup_leaf blind
cgroup_write blind memory.max 16M
start_in blind holder
ask holder open

current_before=$(cgroup_read blind memory.current)
quiesce
unowned_before=$(unowned)
check "128 MiB are allocated in a cgroup with memory.max = 16 MiB" ask holder alloc 4M 32
within "memory.current didn't move" "$(cgroup_read blind memory.current)" \
	"$current_before" $NOISE
is "memory.max was never reached" "$(cgroup_event blind memory.events max)" 0
settles "128 MiB went from the machine's memory all the same" $SIZE $MIB unowned_since "$unowned_before"
is "umacct has every byte" "$(system_memory blind)" $SIZE
is "none of the 128 MiB is charged" "$(account blind charged)" 0

tell holder exit
check "the process that held them exits" gone "$pid"
check "umacct's figure is back to zero after the exit" eventually system_is blind 0
settles "the machine's memory is as before after the exit" 0 $MIB unowned_since "$unowned_before"

done_testing
