#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The driver's own "no" is told once for each request that failed in the end, with who holds most
# beside it; a request that the driver had in smaller pages, after it found no large ones, isn't.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it takes all of the machine's memory"
needs_accounting
needs_kernel_alloc
# Of a request that failed, it puts the pages that it had into its pools, and takes memory for that
# when there is none: the kernel kills.
[ "$(driver_major)" -lt 590 ] || skip_all "a driver with pools has the kernel kill for a request that fails"

event() { # KEY: of the newest event
	tail -n 1 "$EVENTS" | json_field "$1"
}

# told COUNT: so many requests failed, by the events of that cgroup.
told() { # NAME COUNT
	[ "$(grep '"failed"' "$EVENTS" | grep "\"path\":\"$(cgroup_path "$1")\"" |
		sed 's/.*"count":\([0-9]*\).*/\1/' | awk '{ sum += $1 } END { print sum + 0 }')" -eq "$2" ]
}

oom_kills() {
	awk '$1 == "oom_kill" { print $2 }' /proc/vmstat
}

cgroup_leaf asks
cgroup_leaf most
cgroup_leaf less
start_in asks holder
holder_pid=$pid
start_in most most
start_in less less
ask most alloc 2M 32
ask less alloc 64K
ask holder alloc 4K
killed=$(oom_kills)
watch_events

# --- more than the machine has -------------------------------------------------------

# In whole blocks of 2 MiB.
blocks=$(awk '$1 == "MemTotal:" { print int($2 / 2048) }' /proc/meminfo)
pages=$((blocks * 2 * MIB / PAGE))
echo 1 >/proc/sys/vm/drop_caches
available=$(available)
ask holder kernel alloc "$pages" $PAGE 0
is "the driver has no memory for as much as the machine has" "$(reply_field status)" $NO_MEMORY
check "a request that the driver failed is told" eventually told asks 1
is "the event's type is failed" "$(event type)" failed
is "the event says who asked" "$(event pid) $(event comm)" "$holder_pid rmtool"
is "the event says for how much" "$(event size)" "$(with_metadata $((pages * PAGE)) 1 0)"
is "the event says that there was no limit" "$(event limit)" 0
diag "$((available / MIB)) MiB were available before, $(($(event usage) / MIB)) when it failed"
check "the event says that less was available than was asked for" [ "$(event usage)" -lt "$((pages * PAGE))" ]
is "the event says who holds most" "$(event holder_path)" "$(cgroup_path most)"
is "the event says how much that one holds" "$(event holder_bytes)" "$(account most local)"
is "the account counts one failed request" "$(account asks failed)" 1
is "the parent's account counts one failed request" "$(account "" failed)" 1
is "a failed request is no refusal" "$(account asks refusals)" 0
is "nobody was killed for a failed request" "$(oom_kills)" "$killed"
check "the doctor says that requests failed" sh -c "umacct doctor | grep -q 'warn  requests: '"
diag "$(umacct doctor | grep -A 1 'requests: ')"

ask holder alloc 64M
is "the driver has no piece of 64 MiB in memory that lies in pieces" "$(reply_field status)" $NO_MEMORY
check "a request that failed for want of a piece is told" eventually told asks 2
check "the event says that enough was available, if in pieces" [ "$(event usage)" -gt "$(event size)" ]
read_seconds
begun=$seconds
asks_on() {
	tell holder insist 64M 200
	answer holder || { [ "$reply" = "no answer" ] && answer holder; }
}
check "200 more requests are made, and the program goes on" asks_on
read_seconds
took=$((seconds - begun))
check "of 200 more failed requests each is in a count" eventually told asks 202
messages=$(grep -c '"failed"' "$EVENTS")
diag "$messages events for 202 requests, in $took s"
check "200 failed requests are no more events than fifty a second" [ "$messages" -le $(((took + 2) * 50)) ]
is "200 failed requests are in the account" "$(account asks failed)" 202

# --- smaller pages ---------------------------------------------------------------------

if [ "$(driver_major)" -ge 545 ]; then
	failures=$(account asks failures)
	ask holder kernel retry "$pages" $((2 * MIB)) 0
	is "a request fails in pages of each size" "$(reply_field status)" $NO_MEMORY
	check "a request that fails in pages of each size is told once" eventually told asks 203
	is "the driver tried three times for the request that is told once" "$(account asks failures)" $((failures + 3))

	# One of 32 blocks of 64 KiB stays: so no 2 MiB of them are free in one piece.
	for _ in $(seq 150); do
		ask most alloc 64K
		ask less alloc 64K 31
	done
	ask less free all
	echo 1 >/proc/sys/vm/drop_caches
	blocks=$((($(available) / MIB - 150) / 2))
	wanted=$((blocks * 2 * MIB / PAGE))
	failures=$(account asks failures)
	diag "$(cat /proc/buddyinfo)"
	check "a request is given in smaller pages that there are" \
		ask holder kernel retry $wanted $((2 * MIB)) 0
	check "the driver tried larger pages before the smaller ones" \
		[ "$(account asks failures)" -gt "$failures" ]
	ask holder kernel free
	# An event after it shows that none was on its way.
	ask holder alloc 64M
	check "a request that is given in smaller pages is not told" eventually told asks 204
	is "a request that is given in smaller pages is not counted as failed" "$(account asks failed)" 204
	ask holder kernel alloc $((64 * MIB / PAGE)) $((64 * MIB)) 0
	is "a request fails in one piece of 64 MiB" "$(reply_field status)" $NO_MEMORY
	check "the program gets a page after that" ask holder kernel alloc 1 $PAGE 0
	is "a page does not take the failure of a large piece back" "$(account asks failed)" 205
	is "nobody was killed for requests of pieces" "$(oom_kills)" "$killed"
fi

done_testing
