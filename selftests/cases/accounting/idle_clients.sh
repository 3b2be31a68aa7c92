#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A process that holds nothing any more costs nothing for ever: it goes with its
# cgroup or when it ends, and one cgroup can't pile up many. One that holds something stays.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

KEPT=64
TRIED=96

few_clients() { # LIMIT
	[ "$(status_field clients)" -le "$1" ]
}

listed() { # PID
	umacct ps --json | grep -c "\"pid\":$1,"
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

# One that ends, in a cgroup that stays: having freed all, and before somebody else frees it.
start_in home passing
ask passing alloc 4K
ask passing free all
is "a process that holds nothing is listed while it lives" "$(listed "$pid")" 1
tell passing exit
gone "$pid"
is "a process that holds nothing is listed no more when it has ended" "$(listed "$pid")" 0
start_in home parent
ask parent alloc 4K
fifos child
ask parent fork "$TEST_DIR/child"
child=$(reply_field pid)
holders="$holders $child"
answer child
tell parent exit
gone "$pid"
is "one that ended is listed while there is memory of its" "$(listed "$pid")" 1
tell child exit
gone "$child"
is "a process that ended is listed no more when its memory is freed" "$(listed "$pid")" 0
check "neither of two processes that ended is kept" eventually few_clients "$before"

# Many processes in one cgroup, each with nothing any more, not even a client of the driver's, but
# alive; and one that has.
cgroup_leaf crowd
start_in crowd busy
busy=$pid
ask busy alloc 4K
for i in $(seq $TRIED); do
	start_in crowd "member$i"
	ask "member$i" alloc 4K
	ask "member$i" free all
	ask "member$i" close
done
check "of $TRIED idle processes in a cgroup, $KEPT are kept" few_clients $((before + KEPT))
is "a process that holds something is kept beside idle ones" "$(listed "$busy")" 1
check "of idle processes in a cgroup half of the bound and more are kept" [ "$(account crowd clients)" -ge $((KEPT / 2)) ]
ask member1 alloc 4K
is "an idle process that was forgotten is known as soon as it takes something" "$(system_memory crowd)" $((2 * PAGE))

# However many cgroups they are in: the numbers of clients are limited.
rmmod umacct
load umacct many_clients=8
for i in $(seq 12); do
	cgroup_leaf "spread$i"
	start_in "spread$i" "spread$i"
	ask "spread$i" alloc 4K
	ask "spread$i" free all
	ask "spread$i" close
done
check "of idle processes in many cgroups those above a bound for all are not kept" eventually status_is clients 8
rmmod umacct
load umacct

# Processes and cgroups that come and go keep nobody from reading the accounts.
slow_list() { # accounts|clients
	sed -n "s/.*$1=[0-9]* interrupted=\([01]\).*/\1/p" "$TEST_DIR/slowly"
}
cgroup_leaf home
start_in home walker
for i in $(seq 40); do
	cgroup_leaf "row$i"
	cgroup_add "row$i" "$pid"
	ask walker alloc 4K
done
cgroup_add home "$pid"
nltest slowly >"$TEST_DIR/slowly" &
listing=$!
while kill -0 $listing 2>/dev/null; do
	cgroup_leaf passed
	start_in passed passer
	ask passer alloc 4K
	ask passer free all
	tell passer exit
	gone "$pid"
	rmdir "$(cgroup_dir passed)"
done
diag "$(cat "$TEST_DIR/slowly")"
is "beside some that come and go, a list of accounts is whole" "$(slow_list accounts)" 0
is "beside some that come and go, a list of processes is whole" "$(slow_list clients)" 0
is_stopped() { # PID
	grep -qs '^State:.T' "/proc/$1/status"
}
nltest slowly stop >"$TEST_DIR/slowly" &
listing=$!
check "a list is begun" eventually is_stopped $listing
rmdir "$(cgroup_dir row1)" "$(cgroup_dir row40)"
kill -CONT $listing
wait $listing
is "a list of accounts in which memory has changed hands meanwhile is begun again" "$(slow_list accounts)" 1

done_testing
