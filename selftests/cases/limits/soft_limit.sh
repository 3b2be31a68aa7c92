#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clock: instructions
#
# A soft limit refuses nothing: it is told, once on the way up and once on the way
# down, and slows who goes on above it where it is asked to.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

cgroup_leaf leaf
watch_events

soft=$(with_metadata $((4 * MIB)) 4 1)
check "a soft limit is set" limit leaf --soft "$soft"
start_in leaf holder
holder_pid=$pid
ask holder alloc 1M 4
is "up to the soft limit, nothing is counted" "$(account leaf local_soft_count)" 0
check "above the soft limit, nothing is refused" ask holder alloc 1M 4
is "the crossing of the soft limit is counted once" "$(account leaf local_soft_count)" 1
check "the crossing of the soft limit is told once" eventually events_are '"soft_crossed"' 1
ask holder free all
check "the way back below the soft limit is told once" eventually events_are '"soft_recovered"' 1
ask holder alloc 1M 8
is "the next crossing of the soft limit counts again" "$(account leaf local_soft_count)" 2
is "without a throttle nothing is slowed" "$(account leaf throttled)" 0

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
check "whoever goes on above the soft limit is slowed" [ "$slow" -ge 200 ]
# A delay for each call, and as much again as an emulated processor may take.
check "who is slowed is slowed by no more than the throttle says" [ "$slow" -le $((8 * 200 + 4 * quick + 500)) ]
check "the time that a throttle took is counted" [ "$(account leaf throttled)" -ge 100000000 ]

# A driver may have a function of its own for programs of 32 bits.
start_in leaf narrow
check "a program opens the driver as one of 32 bits does" ask narrow open
# Not every kernel of 64 bits runs them.
if [ -e /proc/sys/abi/vsyscall32 ]; then
	ask narrow 32bits
	before=$(account leaf throttled)
	check "a program of 32 bits allocates above the soft limit" ask narrow alloc 1M 8
	after=$(account leaf throttled)
	diag "for which it waited $(((after - before) / 1000000)) ms"
	check "a program of 32 bits is slowed, too" [ $((after - before)) -ge 100000000 ]
	check "a hard limit is set for the program of 32 bits" limit leaf --hard "$(with_metadata $((8 * MIB)) 8 2)"
	check "a program of 32 bits is refused what is above the hard limit" fails ask narrow alloc 1M
	limit leaf --hard max
	ask narrow free all
else
	skip "a program of 32 bits" "this kernel runs none"
fi
tell narrow exit
gone "$pid"

# The whole delay is for who is an eighth above his limit.
check "a higher soft limit is set" limit leaf --soft "$(with_metadata $((32 * MIB)) 32 1)"
ask holder alloc 1M 32
before=$(account leaf throttled)
ask holder alloc 1M
after=$(account leaf throttled)
diag "for 1 MiB above 32, $(((after - before) / 1000000)) ms of 200"
check "who is little above the soft limit is slowed" [ "$after" -gt "$before" ]
check "who is little above the soft limit is slowed little" [ $((after - before)) -lt 150000000 ]

# Managed memory, by a call and by a fault.
if [ -c /dev/nvidia-uvm ]; then
	cgroup_leaf managed
	check "a soft limit and a throttle are set for managed memory" \
		limit managed --soft 4M --throttle 100ms
	start_in managed tourist uvmtool
	ask tourist open
	ask tourist mm
	ask tourist map 16M
	ask tourist touch 2M
	is "below the soft limit a fault on managed memory is not slowed" "$(account managed throttled)" 0
	ask tourist migrate
	before=$(account managed throttled)
	check "a call for managed memory above the soft limit is slowed" [ "$before" -ge 90000000 ]
	ask tourist map 16M
	ask tourist touch 20M 4M
	check "a fault on managed memory above the soft limit is slowed" \
		[ $(($(account managed throttled) - before)) -ge 90000000 ]
	tell tourist exit
	gone "$pid"
else
	skip "managed memory above a soft limit" "nvidia-uvm is not loaded"
fi

# Who waits can be killed.
check "the longest delay is set" limit leaf --soft 4M --throttle 2s
tell holder alloc 1M 16
holder_waits() {
	head -n 1 "/proc/$holder_pid/stack" | grep -qF '[umacct]'
}
check "the longest delay is waited for" eventually holder_waits
before=$(now_ms)
kill -KILL "$holder_pid"
gone "$holder_pid"
check "who is killed doesn't wait for the longest delay" [ $(($(now_ms) - before)) -lt 1200 ]

done_testing
