#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# There is one truth about the machine: what umacctd, the exporter and every verb say of its
# memory is the same inside of a cgroup that is limited and has a view, and outside, before
# views and after. Percentages don't shrink when umacctd starts again, an audit adds up, and
# preflight takes the reserve off once.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets views and a reserve for everybody, and a policy of its own, in /etc"
needs_accounting

LOG=$TEST_DIR/log
RESERVE=$((300 * MIB))
LIMIT=$((600 * MIB))

# Before anybody has a view, /proc/meminfo is the truth.
meminfo() { # KEY
	awk -v key="$1:" '$1 == key { print $2 * 1024 }' /proc/meminfo
}

say() { # [VERB [OPTION]...]
	"$where" umacct "$@" --json
}

inside() {
	in_cgroup slice "$@"
}

outside() {
	in_cgroup truth "$@"
}

# About two per cent of the machine: what moves from one reading to the next.
near() { # DESCRIPTION GOT WANTED
	within "$1" "$2" "$3" $((total / 40 + KEPT_FOR_DEBUGGING))
}

unexplained() {
	say audit | json_field unexplained
}

# What is the same whoever asks: it has no figure that moves by itself.
steady() {
	"$where" umacct ls -o name,usage,peak,limit
	"$where" umacct ps -o pid,usage,peak,name,account
	"$where" umacct limit
	"$where" umacct view
	"$where" umacct charge
	"$where" umacct config check
	"$where" umacct config explain "$(cgroup_path slice)"
	"$where" umacct show --json "$(cgroup_path other)" | json_field usage
	"$where" umacct headroom --json | json_field headroom
	"$where" umacct doctor | grep -v '^ok'
}

cgroup_leaf truth
cgroup_leaf slice
cgroup_leaf other
start_in other holder
ask holder open
ask holder alloc 2M 100
settle_counters
total=$(meminfo MemTotal)
where=outside
explained=$(unexplained)
diag "total $((total / MIB)) MiB, unexplained $((explained / MIB)) MiB"

# --- a machine with views, a limit and a reserve ----------------------------------

cat >/etc/umacct.toml <<-END
	[machine]
	view = true
	reserve = "10%"

	[[rule]]
	cgroup = "$(cgroup_path slice)"
	hard = "50%"
	view = true
END
for _ in 1 2 3 4 5 6 7 8 9 10; do
	: >"$LOG"
	in_cgroup_exec slice /usr/sbin/umacctd 2>>"$LOG" &
	daemon=$!
	eventually grep -q 'in force' "$LOG"
	kill "$daemon"
	wait "$daemon"
	said="$said $(account slice hard):$(umacct reserve --json | json_field reserve)"
done
diag "hard:reserve after each start:$said"
is "half and a tenth of the machine stay the same after ten starts in what is limited by them" \
	"$(echo "$said" | tr ' ' '\n' | sort -u | grep -c :)" 1
near "the policy's half is half of the machine's memory" "$(account slice hard)" $((total / 2))
near "the policy's tenth is a tenth of the machine's memory" "$(umacct reserve --json | json_field reserve)" $((total / 10))

limit slice --hard $LIMIT --view
umacct reserve $RESERVE >/dev/null
told=$(inside cat /proc/meminfo | awk '$1 == "MemTotal:" { print $2 * 1024 }')
is "who asks in the limited cgroup is told its limit" "$told" $LIMIT
available=$(umacct --json | json_field available)
for where in outside inside; do
	for verb in summary 'top -n 1'; do
		# shellcheck disable=SC2086 # words
		say ${verb#summary} >"$TEST_DIR/said"
		is "$where, $verb: the machine's memory" "$(json_field total <"$TEST_DIR/said")" "$total"
		near "$where, $verb: what is free" "$(json_field free <"$TEST_DIR/said")" \
			$(($(awk '$1 == "nr_free_pages" { print $2 }' /proc/vmstat) * PAGE))
	done
	near "$where, reserve: what is available" "$(say reserve | json_field available)" "$available"
	settle_counters
	say audit >"$TEST_DIR/said"
	is "$where, audit: the machine's memory" "$(json_field total <"$TEST_DIR/said")" "$total"
	near "$where, audit: no more is unexplained than before" \
		"$(json_field unexplained <"$TEST_DIR/said")" "$explained"
	check "$where, preflight: more than its limit is not more than the machine has" \
		fails grep -q "more than the machine" <<-END
			$("$where" umacct preflight 700M)
		END
	"$where" umacct headroom 700M >/dev/null 2>&1
	is "$where, headroom: more than its limit is not more than the machine has" $? 5
	umacct headroom off >/dev/null
	[ ! -x /usr/sbin/umacct-exporter ] ||
		is "$where, exporter: the machine's memory" \
			"$("$where" /usr/sbin/umacct-exporter --print |
				awk '$1 == "umacct_machine_memory_bytes" { printf "%d\n", $2 }')" "$total"
	steady >"$TEST_DIR/$where"
done
check "all other verbs say the same inside and outside" cmp "$TEST_DIR/outside" "$TEST_DIR/inside"
diag "$(diff "$TEST_DIR/outside" "$TEST_DIR/inside")"

# --- the reserve is taken off once -------------------------------------------------

room=$(((available - RESERVE) * 62 / 64 / MIB - 16))
check "preflight says yes to what the reserve leaves" outside umacct preflight ${room}M --fix
diag "$(outside umacct preflight ${room}M)"
start_in truth taker
ask taker open
check "the driver gives what preflight said yes to" ask taker load 2M $((room / 2))
diag "$reply"
ask taker free all

umacct reserve off >/dev/null
umacct view off >/dev/null
rm -f /etc/umacct.toml
done_testing
