#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a tenant can make the kernel keep: nothing of what he freed, and no more of cgroups
# that he nested and removed than one account for what he still holds. How deep he nests
# them is his to choose, but not how long others wait for it.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the machine's memory"
needs_accounting
needs_kernel_alloc

PAGES=$((390 * MIB / PAGE))
DEEPEST=64
# What the driver itself may keep of freed pages: from 590 on, 3.2 MB of lists for its pools.
KEPT_BY_DRIVER=$((2 * MIB))
[ "$(driver_major)" -lt 590 ] || KEPT_BY_DRIVER=$((4 * MIB))

# The kernel's own memory, in bytes, once what waits to be freed is.
slab() {
	awk '$1 == "SUnreclaim:" { print $2 * 1024 }' /proc/meminfo
}

slab_since() { # EARLIER
	echo $(($(slab) - $1))
}

# What of it is in use, in bytes: a page of the allocator's stays for a single object in it.
objects() {
	echo 2 >/proc/sys/vm/drop_caches
	for shrink in /sys/kernel/slab/*/shrink; do
		echo 1 >"$shrink"
	done
	awk 'NR > 2 { bytes += $2 * $4 } END { printf "%d\n", bytes }' /proc/slabinfo
}

objects_since() { # EARLIER
	echo $(($(objects) - $1))
}

# What other cases take for what the drivers keep of a client's pages.
cgroup_leaf sized
start_in sized sized rmtool
ask sized alloc "$PAGE"
before=$(slab)
ask sized alloc 4M 32
kept=$(slab_since "$before")
# The pages' and objects' part; the heap's of a client is counted in lots, by its largest sizes.
least=$(($(with_metadata $((128 * MIB)) 32 0) - 128 * MIB))
most=$(($(with_metadata $((128 * MIB)) 32 1) - 128 * MIB))
diag "of 32 blocks of 4 MiB $kept bytes are kept; cases count with $least, and $most with the client's heap"
check "no less is kept of 32 blocks of 4 MiB than cases count with, by the slab allocator" \
	[ "$kept" -ge $((least - least / 8)) ]
check "no more is kept of 32 blocks of 4 MiB than cases count with, by the slab allocator" \
	[ "$kept" -le $((most + most / 8)) ]
tell sized exit
gone "$pid"

# Nobody allocates afterwards, so nobody clears up for him.
cgroup_leaf tenant
start_in tenant many
ask many kernel alloc 1 "$PAGE" 0 1
ask many kernel free
before=$(slab)
ask many kernel alloc 1 "$PAGE" 0 $PAGES
is "$PAGES pages are held, each for itself" "$(system_memory tenant)" $((PAGES * PAGE))
diag "for which the kernel's memory rose by $(slab_since "$before") bytes"
tell many exit
gone "$pid"
is "so many pages are given back" "$(system_memory tenant)" 0
# 56 bytes for each, or 5.6 MB, if they stayed.
settles "all that was noted of the pages is given back with them" "$before" $KEPT_BY_DRIVER slab

# As deep as a cgroup has an account, and deeper.
nest() { # NAME LEVELS
	nest_at=$1
	for nest_level in $(seq "$2"); do
		nest_at=$nest_at/$nest_level
	done
	set_cgroup "$nest_at"
	mkdir -p "$CGROUPS$cgroup_at"
}

# Its own level is that of the path's components; the case's is at the first.
cgroup_leaf deep
nest deep $((DEEPEST + 10))
deepest=$nest_at
at=deep
for level in $(seq $((DEEPEST - 2))); do
	at=$at/$level
done
start_in "$deepest" diver
check "who is deeper than $DEEPEST levels gets memory" ask diver alloc 1M 2
kept=$(with_metadata $((2 * MIB)) 2 1)
is "the memory of a diver counts for the ancestor at level $DEEPEST" "$(account "$at" local)" "$kept"
check "the ancestor at level $DEEPEST can be limited" limit "$at" --hard "$kept"
check "the limit of the ancestor binds the diver" fails ask diver alloc 1M
limit "$at" --hard max
umacct limit "$(cgroup_path "$deepest")" --hard 2M 2>"$TEST_DIR/error"
is "a cgroup deeper than $DEEPEST levels can't be limited" $? 1
check "the refusal says that so deep a cgroup has no account" grep -q 'cgroups below level 64 have no account' "$TEST_DIR/error"
tell diver exit
gone "$pid"

# A chain of cgroups for each page: the first process takes it from single cgroups, the
# second from the lowest of forty.
ROUNDS=50
take_from() { # LEVELS
	start_in home chainer
	ask chainer alloc 4K
	before=$(objects)
	for round in $(seq $ROUNDS); do
		nest "chain$round" "$1"
		cgroup_add "$nest_at" "$pid"
		ask chainer alloc 4K
		cgroup_add home "$pid"
		find "$(cgroup_dir "chain$round")" -depth -type d -exec rmdir {} +
	done
	is "$ROUNDS chains of $(($1 + 1)) cgroups are gone, and a page of each is held" \
		"$(system_memory "")" $(((ROUNDS + 1) * PAGE))
}

no_more_than() { # BYTES
	[ "$(objects_since "$before")" -le "$1" ]
}

cgroup_leaf home
take_from 0
sleep 5
alone=$(objects_since "$before")
ask chainer free all
tell chainer exit
gone "$pid"
take_from 40
diag "the kernel's objects grew by $(objects_since "$before") bytes; for single cgroups by $alone"
# An account is a kilobyte: those of all would be 2 MiB.
check "no more is kept of chains of removed cgroups than of single ones" eventually no_more_than $((alone + MIB))
diag "then by $(objects_since "$before")"
ask chainer free all
is "all pages of the removed cgroups are given back" "$(system_memory "")" 0
tell chainer exit
gone "$pid"

done_testing
