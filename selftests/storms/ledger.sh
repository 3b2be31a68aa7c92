#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes take memory and let it go in every way, in nested cgroups that they change;
# beside them limits, charging, views and throttles come and go, cgroups are made and
# removed, and readers read. Whenever all stand still, each account's usage is what the
# processes themselves say they hold; at the end it is nothing, and all is free again.
#
# SEED and SECONDS_OF_STORM say which storm, and how long it lasts.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it sets limits for everyone and measures the whole machine's free memory"
needs_accounting

: "${SEED:=1}" "${SECONDS_OF_STORM:=30}"
complaints=$(kernel_complaints)

set --
for name in a b c d/e d/f d/g/h d/g/i; do
	[ "$name" = "${name%/*}" ] || cgroup_make "${name%/*}"
	cgroup_leaf "$name"
	set -- "$@" "$(cgroup_dir "$name")"
done
cgroup_make parents
# However short the storm is, something is refused.
limit a --hard 512K >/dev/null
quiesce
memory_before=$(unowned)

mkfifo "$TEST_DIR/go" "$TEST_DIR/told"
# They start in a cgroup of their own, and go on from there.
cgroup_leaf start
in_cgroup_exec start storm "$SEED" "$SECONDS_OF_STORM" 5 8 "$@" \
	<"$TEST_DIR/go" >"$TEST_DIR/told" &
holders="$holders $!"
exec 3>"$TEST_DIR/go" 4<"$TEST_DIR/told"

while_it_lasts() { # COMMAND...
	while [ -e "$TEST_DIR/go" ]; do
		"$@"
		sleep 0.3
	done >/dev/null 2>&1 &
	holders="$holders $!"
	beside="$beside $!"
}
beside=

# Seven cgroups and six changes: with time each cgroup has each of them.
turn=$SEED
change_settings() {
	turn=$((turn + 1))
	set -- a b c d d/e d/g d/g/h
	shift $((turn % 7))
	case $((turn % 6)) in
	0) limit "$1" --hard 512K ;;
	1) limit "$1" --soft 1M --throttle 1ms ;;
	2) limit "$1" --hard max --soft max ;;
	3) charge "$1" on ;;
	4) charge "$1" inherit ;;
	5) limit "$1" --hard 64M --view ;;
	esac
}

come_and_go() {
	mkdir "$(cgroup_dir parents/child)"
	in_cgroup parents/child rmtool "alloc 64K 4" "free 1"
	rmdir "$(cgroup_dir parents/child)"
}

read_all() {
	umacct ls --all --json
	umacct ps --json
	nltest accounts
	cat "$DEBUGFS/status"
}

while_it_lasts change_settings
while_it_lasts come_and_go
while_it_lasts read_all
umacct watch --json >"$TEST_DIR/events" &
watcher=$!
holders="$holders $watcher"

# What is freed by the driver's own thread, or by the last who closes, is soon gone.
agrees() {
	nltest accounts | awk -v root="$CGROUPS" '
	NR == FNR { held[substr($2, length(root) + 1)] = $3; next }
	FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
	FNR > 1 && $2 in held { counted[$2] = $column["system"] }
	END {
		for (path in held)
			if (held[path] != counted[path] + 0) {
				printf "# %s holds %d, the account has %d\n", path, held[path], counted[path]
				bad = 1
			}
		exit bad
	}' "$TEST_DIR/held" - >"$TEST_DIR/differences"
}

pauses=0
wrong=0
: >"$TEST_DIR/held"
while read -r word dir bytes <&4; do
	case $word in
	held) echo "$word $dir $bytes" >>"$TEST_DIR/held" ;;
	pause)
		pauses=$((pauses + 1))
		if ! eventually agrees; then
			wrong=$((wrong + 1))
			cat "$TEST_DIR/differences"
		fi
		: >"$TEST_DIR/held"
		echo go >&3
		;;
	end)
		diag "$dir $bytes"
		ended=${dir#operations=}
		refusals=${bytes##*refusals=}
		oddities=${bytes##*oddities=}
		break
		;;
	esac
done
rm "$TEST_DIR/go"
check "it lasted to its end" [ "${ended:-0}" -gt 0 ]
check "it paused to be looked at" [ "$pauses" -gt 0 ]
check "limits refused something" [ "${refusals%% *}" -gt 0 ]
is "of $pauses looks, as many found an account wrong" $wrong 0
is "the driver answered nothing but yes and that memory is short" "${oddities:-none}" 0
kill "$watcher"
# What runs beside the storm ends its turn first, whoever is holding memory in it.
for pid in $beside; do
	wait "$pid"
done
check "nobody holds anything" eventually status_is system 0
check "no record is left" eventually status_is records 0
for dir; do
	eventually rmdir "$dir"
done
settles "all memory is free again" 0 $((2 * MIB)) unowned_since "$memory_before"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
