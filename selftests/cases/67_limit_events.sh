#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each refusal is one event, with everything that somebody who has to explain it
# needs to know.

. "$(dirname "$0")/../lib/helpers.sh"
needs_accounting

event() { # KEY: of the newest event
	tail -n 1 "$EVENTS" | json_field "$1"
}

cgroup_make parent
cgroup_leaf parent/leaf
limit parent --hard 2M
watch_events

start_in parent/leaf holder
ask holder alloc 1M 2
check "no event while there is room" events_are "" 0
ask holder alloc 64K
check "one for one refusal" eventually events_are "" 1
is "its type" "$(event type)" hard_refused
is "the task's cgroup" "$(event path)" "$(cgroup_path parent/leaf)"
is "the cgroup whose limit it was" "$(event limit_path)" "$(cgroup_path parent)"
is "the limit" "$(event limit)" $((2 * MIB))
is "the usage" "$(event usage)" $((2 * MIB))
is "what was asked for" "$(event size)" 65536
is "by which process" "$(event pid)" "$pid"
is "of what name" "$(event comm)" rmtool
first=$(event seq)
ask holder alloc 4K
check "the next refusal is the next event" eventually events_are "" 2
is "numbered so" "$(event seq)" $((first + 1))

# A flood: what doesn't arrive is missed by number, not in silence.
ask holder insist 64K 20000
newest=$(status_field events_sent)
is "every refusal was numbered" "$newest" $((first + 1 + 20000))
check "the watcher still lives" kill -0 "$watcher"

done_testing
