#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clock: instructions
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# What umacctd records is what "umacct --json" and "umacct ls --json" say at that second; and it goes
# on second by second while the cgroup that it runs in is out of memory.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "umacctd's folder is one of the machine"
needs_accounting

STATE=/var/lib/umacctd
LOG=$TEST_DIR/log
HISTORY=$TEST_DIR/history

recorded_since() { # SECONDS, since 1970
	umacct history --json --since "@$1" >"$HISTORY" 2>/dev/null &&
		[ "$(json_field since <"$HISTORY")" != null ]
}

# A figure of the machine, in the first sample since then.
recorded() { # KEY
	sed 's/.*"machine_then"//' "$HISTORY" | json_field "$1"
}

# A figure of one account.
recorded_of() { # NAME KEY
	tr '{' '\n' <"$HISTORY" | grep "\"path\" *: *\"$(cgroup_path "$1")\"" | json_field "$2"
}

listed() { # NAME KEY
	tr '{' '\n' <"$TEST_DIR/listed" | grep "\"path\" *: *\"$(cgroup_path "$1")\"" | json_field "$2"
}

mkdir -p $STATE
cgroup_leaf held
cgroup_leaf crowded
start_in held held
ask held alloc 1M 48
limit held --hard 100M --soft 80M
umacct reserve 16M >/dev/null

in_cgroup crowded sh -c 'echo -1000 >/proc/self/oom_score_adj; exec /usr/sbin/umacctd' 2>"$LOG" &
daemon=$!
holders="$holders $daemon"
check "umacctd records a sample of the machine" eventually recorded_since 0

# Nothing changes now, so that each second has the same figures.
since=$(($(date +%s) + 1))
check "umacctd records a second in which nothing changes" eventually recorded_since $since
umacct --json >"$TEST_DIR/summary"
umacct ls --json >"$TEST_DIR/listed"
for key in usage charged driver_usage managed metadata untracked reserve; do
	is "the machine's recorded $key is what 'umacct --json' says" "$(recorded $key)" \
		"$(json_field $key <"$TEST_DIR/summary")"
done
is "the machine's recorded total is MemTotal" "$(recorded memory_total)" \
	"$(awk '$1 == "MemTotal:" { print $2 * 1024 }' /proc/meminfo)"
for key in usage hard soft refusals; do
	is "the account's recorded $key is what 'umacct ls --json' says" "$(recorded_of held $key)" "$(listed held $key)"
done
check "the account's recorded usage has what its holder took" \
	[ "$(recorded_of held usage)" -ge $((48 * MIB)) ]
within "the account's recorded memory.current is the kernel's, within 64 KiB" \
	"$(recorded_of held memory_current)" "$(cgroup_read held memory.current)" $((64 * KIB))

# --- out of memory -------------------------------------------------------------------

killed() {
	cgroup_event crowded memory.events oom_kill
}

# Takes all that there is until it is killed, and comes again.
crowd() {
	while :; do
		in_cgroup crowded sh -c 'echo 1000 >/proc/self/oom_score_adj; exec tail /dev/zero'
		sleep 0.5
	done 2>/dev/null
}

# The longest time between two samples of the finest resolution since then, in whole seconds: a
# sample may be some milliseconds late.
longest_gap() { # SECONDS, since 1970
	umacct history --csv --since "@$1" | awk -F '[T:Z,]' '
		NR > 1 {
			now = ($2 * 60 + $3) * 60 + $4
			if (NR > 2 && now - last > gap)
				gap = now - last
			last = now
		}
		END { print NR > 5 && gap ? int(gap + 0.5) : 999 }'
}

expect_warning mem_cgroup_out_of_memory
cgroup_write crowded memory.max $(($(cgroup_read crowded memory.current) + 2 * MIB))
since=$(date +%s)
crowd &
crowding=$!
holders="$holders $crowding"
enough() {
	[ "$(killed)" -ge 3 ] && recorded_since $((since + 8))
}
check "the cgroup of umacctd is out of memory, again and again" eventually enough
check "umacctd outlives that its cgroup is out of memory" kill -0 $daemon
gap=$(longest_gap "$since")
within "umacctd misses no second while its cgroup is out of memory" "$gap" 1 1
check "the history has what the kernel killed, and at whose memory.max" eventually sh -c \
	"umacct history --json --since @$since | tr '{' '\n' | grep killed_at_limit | grep -q '$(cgroup_path crowded)'"
diag "$(killed) were killed in $(($(date +%s) - since)) s; the longest time between two samples is $gap s"
kill $crowding
wait $crowding 2>/dev/null
cgroup_write crowded memory.max max

kill $daemon
wait $daemon
is "umacctd drops no sample" "$(recorded dropped_samples)" 0
is "umacctd has no complaint about the history" "$(grep 'history' "$LOG")" ""
umacct reserve off >/dev/null
rm -r $STATE

done_testing
