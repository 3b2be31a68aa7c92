#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each refusal is one event, with everything that somebody who has to explain it
# needs to know.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

event() { # KEY: of the newest event
	tail -n 1 "$EVENTS" | json_field "$1"
}

cgroup_make parent
cgroup_leaf parent/leaf
hard=$(with_metadata $((2 * MIB)) 2 1)
limit parent --hard "$hard"
watch_events

start_in parent/leaf holder
ask holder alloc 1M 2
check "there is no event while there is room" events_are "" 0
ask holder alloc 64K
check "one refusal is one event" eventually events_are "" 1
is "the event has its type" "$(event type)" hard_refused
is "the event has the task's cgroup" "$(event path)" "$(cgroup_path parent/leaf)"
is "the event has the cgroup whose limit it was" "$(event limit_path)" "$(cgroup_path parent)"
is "the event has the limit" "$(event limit)" "$hard"
is "the event has the usage" "$(event usage)" "$hard"
is "the event has what the request would have taken" "$(event size)" "$(with_metadata $((64 * KIB)) 1 0)"
is "the event has the process" "$(event pid)" "$pid"
is "the event has the process's name" "$(event comm)" rmtool
first=$(event seq)
ask holder alloc 4K
check "the next refusal is the next event" eventually events_are "" 2
is "the next event has the next number" "$(event seq)" $((first + 1))

# Two events of one account, within the time in which they are gathered.
cgroup_leaf order
limit order --soft 1M --hard 2M
start_in order order
ask order fill 1M
order_told() {
	grep "\"path\":\"$(cgroup_path order)\"" "$EVENTS" | sed 's/.*"type":"\([a-z_]*\)".*/\1/'
}
two_told() {
	[ "$(order_told | wc -l)" -eq 2 ]
}
check "two kinds of events are two events" eventually two_told
is "what happened first is told first" "$(order_told | xargs)" "soft_crossed hard_refused"

FLOOD=6000

# A flood: it is told often enough to follow, fifty times a second, with a count, and nobody
# else's event waits for it. "nltest listen" prints TYPE SEQ COUNT SIZE PATH.
nltest listen >"$TEST_DIR/told" 2>"$TEST_DIR/listener" &
holders="$holders $!"
check "somebody listens before the flood" eventually grep -q listening "$TEST_DIR/listener"

told() { # NAME: how often something happened in that cgroup, by what was told
	awk -v path="$(cgroup_path "$1")" '$5 == path { sum += $3 } END { print sum + 0 }' \
		"$TEST_DIR/told"
}

told_is() { # NAME COUNT
	[ "$(told "$1")" -eq "$2" ]
}

cgroup_leaf neighbour
limit neighbour --hard 0
start_in neighbour neighbour
read_seconds
begun=$seconds
tell holder insist 64K $FLOOD
flood_is_told() {
	[ "$(told parent/leaf)" -gt 0 ]
}
check "a flood is told while it goes on" eventually flood_is_told
check "a neighbour is refused once in a flood" fails ask neighbour alloc 4K
check "the neighbour's refusal in the flood is told" eventually told_is neighbour 1
answer holder
read_seconds
took=$((seconds - begun))
check "every refusal of the flood is in a count" eventually told_is parent/leaf $FLOOD
messages=$(grep -c . "$TEST_DIR/told")
diag "$messages events for $((FLOOD + 1)) refusals, in $took s"
check "there are no more events than fifty a second" \
	[ "$messages" -le $(((took + 2) * 50)) ]
is "numbered without a gap" "$(awk 'NR > 1 && $2 != last + 1 { gaps++ } { last = $2 }
	END { print gaps + 0 }' "$TEST_DIR/told")" 0
check "the watcher lives through the flood" kill -0 "$watcher"

# A listener that never reads, and has the sender told so.
lost=$(status_field events_lost)
nltest deaf 2>"$TEST_DIR/deaf" &
holders="$holders $!"
check "somebody listens who doesn't read" eventually grep -q listening "$TEST_DIR/deaf"
# Two events fill its buffer.
ask holder insist 64K 1000
some_lost() {
	[ "$(status_field events_lost)" -gt "$lost" ]
}
check "what a listener had no room for is counted as lost" eventually some_lost

done_testing
