#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What vm/bench runs in a machine with as many processors as its host has, up to eight: some
# of them allocate and free a page over and over, all at once, each for a cgroup of its own; then
# the same with chunks of managed memory. Prints for each number of them, with umacct and without
# it:
#
#	processors VARIANT PROCESSORS PAIRS MILLISECONDS LEDGER_WAITS WAITS
#	chunks VARIANT PROCESSORS PAIRS MILLISECONDS LEDGER_WAITS WAITS
#
# A wait is a call of the slow path of a spinlock, which somebody else held: the ledger's,
# and any.

CGROUPS=/sys/fs/cgroup
TRACING=/sys/kernel/tracing
WAITS=$TRACING/events/bench/wait
ROUNDS=50000

stop() {
	echo "bench: $*" >&2
	exit 1
}

[ -e $TRACING/events ] || mount -t tracefs none $TRACING || stop "no tracefs"
slow_path=$(awk '$3 ~ /^(native_)?queued_spin_lock_slowpath$/ { print $3 }' /proc/kallsyms | sort | head -n 1)
echo "p:bench/wait ${slow_path:-none} lock=\$arg1:x64" >>$TRACING/kprobe_events ||
	stop "no probe on the slow path of a spinlock"
echo 'hist:keys=lock.hex' >$WAITS/trigger || stop "waits can't be counted"
echo 0 >$TRACING/tracing_on
insmod /lib/umacct/umacct_test_alloc.ko || stop "umacct_test_alloc does not load"

allocate() { # PROCESSOR COMMAND
	mkdir -p "$CGROUPS/bench$1"
	# shellcheck disable=SC2016 # the shell below expands it
	taskset -c "$1" sh -c '
		echo $$ >"$1/cgroup.procs" || exit
		exec 4<>/dev/umacct_test_alloc 5<>/dev/nvidiactl 6<>/dev/nvidia-uvm || exit
		echo "$2" >&4 || exit
		read -r result <&4
		[ "${result%% *}" = status=0x0 ]' sh "$CGROUPS/bench$1" "$2"
}

milliseconds() {
	awk '{ print $1 * 1000 }' /proc/uptime
}

measure() { # WHAT VARIANT PROCESSORS COMMAND
	echo 'hist:keys=lock.hex:clear' >>$WAITS/trigger
	measure_from=$(milliseconds)
	measure_pids=
	for measure_cpu in $(seq 0 $(($3 - 1))); do
		allocate "$measure_cpu" "$4" &
		measure_pids="$measure_pids $!"
	done
	for measure_pid in $measure_pids; do
		wait "$measure_pid" || stop "$2 on $3: an allocation failed"
	done
	measure_to=$(milliseconds)
	awk -v lock="$lock" -v start="$1 $2 $3 $(($3 * ROUNDS)) $((measure_to - measure_from))" '
		/hitcount:/ {
			count = $0
			sub(/.*hitcount: */, "", count)
			all += count
			if (index($0, lock))
				ours += count
		}
		END { print start, ours + 0, all + 0 }' $WAITS/hist
}

measure_all() { # VARIANT
	for processors in 1 2 4 8; do
		[ "$processors" -gt "$(nproc)" ] && continue
		measure processors "$1" $processors "bench 1 4096 0 $ROUNDS"
		measure chunks "$1" $processors "managed 4096 $ROUNDS"
	done
}

lock=$(awk '$3 == "umacct_ledger_lock" { sub(/^0*/, "", $1); print $1 }' /proc/kallsyms)
[ "$lock" ] || stop "no umacct_ledger_lock"
allocate 0 "bench 1 4096 0 2000" || stop "nothing can be allocated"
measure_all umacct
rmmod umacct || stop "umacct does not go"
measure_all bare
