#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clock: instructions
#
# A soft limit refuses nothing: it is told, once on the way up and once on the way
# down, and slows who goes on above it where it is asked to.

. "$(dirname "$0")/../lib/helpers.sh"
needs_accounting

cgroup_leaf leaf
watch_events

soft=$(with_metadata $((4 * MIB)) 4 1)
check "a soft limit is set" limit leaf --soft "$soft"
start_in leaf holder
holder_pid=$pid
ask holder alloc 1M 4
is "up to it, nothing is told" "$(account leaf local_soft_count)" 0
check "above it, nothing is refused" ask holder alloc 1M 4
is "the crossing is counted once" "$(account leaf local_soft_count)" 1
check "and told once" eventually events_are '"soft_crossed"' 1
ask holder free all
check "so is the way back" eventually events_are '"soft_recovered"' 1
ask holder alloc 1M 8
is "the next crossing counts again" "$(account leaf local_soft_count)" 2
is "nothing was slowed" "$(account leaf throttled)" 0

ask holder free all
# How long 4 MiB up to the limit and 4 MiB above it take, in ms.
twice_four() {
	twice_from=$(now_ms)
	ask holder alloc 1M 4
	ask holder alloc 1M 4
	echo $(($(now_ms) - twice_from))
	ask holder free all
}
quick=$(twice_four)
check "a throttle is set" limit leaf --soft "$soft" --throttle 200ms
slow=$(twice_four)
diag "4 MiB up to the limit and 4 MiB above took $quick ms, and $slow ms with a throttle"
check "whoever goes on above is slowed" [ "$slow" -ge 200 ]
# A delay for each call, and as much again as an emulated processor may take.
check "by no more than was said" [ "$slow" -le $((8 * 200 + 4 * quick + 500)) ]
check "and that is counted" [ "$(account leaf throttled)" -ge 100000000 ]

# A driver may have a function of its own for programs of 32 bits.
start_in leaf narrow
check "a program opens the driver as one of 32 bits does" ask narrow open
# Not every kernel of 64 bits runs them.
if [ -e /proc/sys/abi/vsyscall32 ]; then
	ask narrow 32bits
	before=$(account leaf throttled)
	check "and allocates above the limit" ask narrow alloc 1M 8
	after=$(account leaf throttled)
	diag "for which it waited $(((after - before) / 1000000)) ms"
	check "it is slowed, too" [ $((after - before)) -ge 100000000 ]
	check "and refused what is too much" limit leaf --hard "$(with_metadata $((8 * MIB)) 8 2)"
	check "to the block" fails ask narrow alloc 1M
	limit leaf --hard max
	ask narrow free all
else
	skip "a program of 32 bits" "this kernel runs none"
fi
tell narrow exit
gone "$pid"

# The whole delay is for who is an eighth above his limit.
check "a higher limit" limit leaf --soft "$(with_metadata $((32 * MIB)) 32 1)"
ask holder alloc 1M 32
before=$(account leaf throttled)
ask holder alloc 1M
after=$(account leaf throttled)
diag "for 1 MiB above 32, $(((after - before) / 1000000)) ms of 200"
check "who is little above it is slowed" [ "$after" -gt "$before" ]
check "little" [ $((after - before)) -lt 150000000 ]

# Who waits can be killed.
check "the longest delay" limit leaf --soft 4M --throttle 2s
tell holder alloc 1M 16
holder_waits() {
	head -n 1 "/proc/$holder_pid/stack" | grep -qF '[umacct]'
}
check "is waited for" eventually holder_waits
before=$(now_ms)
kill -KILL "$holder_pid"
gone "$holder_pid"
check "but not by who is killed" [ $(($(now_ms) - before)) -lt 1200 ]

done_testing
