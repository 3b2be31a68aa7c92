#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A process that holds nothing any more costs nothing for ever: it goes with its
# cgroup, and one cgroup can't pile up many.

. "$(dirname "$0")/../lib/helpers.sh"
needs_accounting

KEPT=64
TRIED=96

few_clients() { # LIMIT
	[ "$(status_field clients)" -le "$1" ]
}

cgroup_leaf home
start_in home holder
before=$(status_field clients)
for i in $(seq $TRIED); do
	cgroup_leaf "passed$i"
	cgroup_add "passed$i" "$pid"
	ask holder alloc 4K
	ask holder free all
	cgroup_add home "$pid"
	rmdir "$(cgroup_dir "passed$i")"
done
check "$TRIED cgroups that a process passed through leave no client" \
	few_clients $((before + 1))
tell holder exit
gone "$pid"

# Many processes in one cgroup, each with nothing any more, but alive.
cgroup_leaf crowd
for i in $(seq $TRIED); do
	start_in crowd "member$i"
	ask "member$i" alloc 4K
	ask "member$i" free all
done
check "of $TRIED idle processes in a cgroup, $KEPT are kept" few_clients $((before + KEPT))
check "and not fewer" [ "$(account crowd clients)" -ge $((KEPT / 2)) ]
ask member1 alloc 4K
is "one that was forgotten is known as soon as it takes something" "$(usage crowd)" $PAGE

done_testing
