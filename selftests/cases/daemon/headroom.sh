#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
# boot:
#
# Headroom: umacctd keeps memory free in blocks that the driver can use, gives back what is
# missing for that and no more, and puts together what is in pieces. A model's load beside a
# full page cache, without and with it, is printed side by side.
#
# The bars, on a machine of 4 GiB: 90 % of the memory is loaded with none refused, the
# neighbour is never slower than 4 times what it is alone, and free memory is never under
# the kernel's low watermark for more than 200 ms:
#   selftests/run --cell CELL --memory 4096 -- 'BARS=1 sh /selftests/cases/daemon/headroom.sh'

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills the machine's memory, and sets a policy"
needs_accounting

: "${BARS:=}"
LOOP=/dev/loop0
[ -b $LOOP ] || skip_all "no loop device"
LOG=$TEST_DIR/log
TOTAL=$(awk '$1 == "MemTotal:" { print $2 * 1024 }' /proc/meminfo)
KEPT=$((TOTAL / 12 / MIB))
# Of the machine's memory, as a model of that size would be. The kernel's own share of a
# small machine is larger.
[ "$BARS" ] && LOAD=90 || LOAD=80

# For what takes longer than eventually() waits, on a machine that is emulated.
at_last() { # COMMAND...
	for _ in 1 2 3 4 5 6; do
		eventually "$@" && return 0
	done
	return 1
}

free_in_blocks() {
	umacct headroom --json | json_field free
}

# umacctd begins again under what is asked for, and then fills a 64th more.
kept() {
	[ "$(free_in_blocks)" -ge $((KEPT * MIB)) ]
}

# What is free above the low watermarks, and those: of the zones that there are, the lowest is
# kept from us.
zoneinfo() {
	awk '
	$3 == "zone" { zone = $4 }
	zone != "DMA" && $1 == "pages" && $2 == "free" { free += $3 }
	zone != "DMA" && $1 == "low" { low += $2 }
	END { print free * 4096, low * 4096 }' /proc/zoneinfo
}

daemon_start() {
	: >"$LOG"
	/usr/sbin/umacctd 2>>"$LOG" &
	daemon=$!
	holders="$holders $daemon"
	eventually grep -q 'in force' "$LOG"
}

# shellcheck disable=SC2046 # words
set -- $(zoneinfo)
low=$2

# A file of zeros that takes no memory itself; what is read of it is page cache, for as
# long as somebody has the device open.
truncate -s 16G "$TEST_DIR/zeros"
losetup $LOOP "$TEST_DIR/zeros"
exec 5<$LOOP

read_file() { # MIB
	dd of=/dev/null bs=1M count="$1" <&5 2>/dev/null
}

cgroup_leaf model
cgroup_leaf neighbour
start_in model model
ask model open
start_in neighbour neighbour
ask neighbour open

# Ticks of 10 ms that umacctd ran, and how many pages were moved.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$daemon/stat"
}

compactions() {
	awk '$1 == "compact_isolated" { print $2 }' /proc/vmstat
}

# --- what is set -----------------------------------------------------------------

umacct headroom ${KEPT}M >"$TEST_DIR/out" 2>&1
is "without umacctd a headroom is set, and it is said that nothing keeps it" "$?" 5
umacct headroom off >/dev/null
check "umacctd starts to keep the headroom" daemon_start
/usr/sbin/umacctd 2>"$TEST_DIR/err"
check "a second umacctd ends, and says that one runs already" grep -q 'already running' "$TEST_DIR/err"
is "the verb headroom finds umacctd" "$(umacct headroom --json | json_field daemon_pid)" "$daemon"

so_much_and_no_more() {
	read_file $((TOTAL / MIB))
	check "page cache fills the memory and leaves no headroom" fails kept
	# shellcheck disable=SC2046 # words
	set -- $(zoneinfo)
	before=$1
	check "a headroom is switched on" umacct headroom ${KEPT}M
	check "as much as the headroom is free, in blocks" at_last kept
	# As it fills it, a 64th more; by its own figures of what is missing.
	missing=$((KEPT * MIB * 65 / 64 - (before - low)))
	# shellcheck disable=SC2046 # words
	set -- $(zoneinfo)
	given=$(($1 - before))
	# And what others of the machine gave back meanwhile.
	check "what was given back is what the headroom lacked, and a twentieth" \
		[ $given -le $((missing + missing / 20 + 64 * MIB)) ]
	diag "$((missing / MIB)) MiB were missing, $((given / MIB)) MiB were given back"
	read_file $((TOTAL / MIB / 4))
	check "the headroom is kept while more is read" at_last kept

	ticks_before=$(ticks)
	sleep 3
	diag "in 3 s of idleness umacctd used $(($(ticks) - ticks_before)) ticks of 10 ms"

	umacct headroom off >/dev/null
	read_file $((TOTAL / MIB / 4))
	check "switched off, no headroom is kept" fails kept
}

put_together() {
	echo 1 >/proc/sys/vm/drop_caches
	mkdir "$TEST_DIR/pieces"
	piece=0
	while [ $piece -lt 192 ]; do
		dd if=/dev/zero of="$TEST_DIR/pieces/stays.$piece" bs=512K count=1 2>/dev/null
		dd if=/dev/zero of="$TEST_DIR/pieces/goes.$piece" bs=1M count=1 2>/dev/null
		piece=$((piece + 1))
	done
	rm -f "$TEST_DIR"/pieces/goes.*
	diag "$((piece * 3 / 2)) MiB in pieces, of which $piece MiB are free: $(tail -n 1 /proc/buddyinfo)"
	compactions_before=$(compactions)
	KEPT_BEFORE=$KEPT
	KEPT=$(($(free_in_blocks) / MIB + 64))
	umacct headroom ${KEPT}M >/dev/null
	check "memory in pieces is put together for the headroom" at_last kept
	check "memory is put together by moving it" [ "$(compactions)" -gt "$compactions_before" ]
	KEPT=$KEPT_BEFORE
	umacct headroom off >/dev/null
	rm -rf "$TEST_DIR/pieces"
}

[ "$BARS" ] || {
	so_much_and_no_more
	put_together
}

# --- a model is loaded ---------------------------------------------------------------

# figure KEY: of the last answer, or of freewatch.
figure() {
	echo "$reply $watched" | sed -n "s/.* $1=\([^ ]*\).*/\1/p"
}

neighbour_for() { # COMMAND...
	rm -f "$TEST_DIR/enough"
	tell neighbour neighbour 64K "$TEST_DIR/enough"
	"$@"
	: >"$TEST_DIR/enough"
	answer neighbour
}

load_model() {
	ask model load 2M $((TOTAL * LOAD / (200 * MIB)))
	loaded=$reply
}

# run empty|without|with: sets refused, slow and under.
run() {
	ask model free all
	echo 1 >/proc/sys/vm/drop_caches
	[ "$1" = empty ] || read_file $((TOTAL * 95 / (100 * MIB)))
	if [ "$1" = with ]; then
		umacct headroom ${KEPT}M >/dev/null
		at_last kept
	fi
	freewatch "$low" >"$TEST_DIR/watched" &
	watcher=$!
	holders="$holders $watcher"
	neighbour_for load_model
	slow=$(figure worst_us)
	slow_mean=$(figure mean_us)
	kill -TERM "$watcher"
	wait "$watcher"
	watched=" $(cat "$TEST_DIR/watched")"
	under=$(figure under_ms)
	least=$(figure least)
	gap=$(figure gap_ms)
	reply=$loaded
	refused=$(figure refused)
	diag "$(printf '%-8s %8s %8s %10s %10s %10s %10s %9s %7s %10s' "$1" "$refused" \
		"$(figure total_ms)" "$(figure worst_us)" "$(figure mean_us)" "$slow" "$slow_mean" \
		"$under" "$gap" "$((least / MIB))")"
}

watched=
neighbour_for sleep 3
alone=$(figure worst_us)
diag "alone, the neighbour's slowest is $alone us, on average $(figure mean_us) us"
diag "$((TOTAL / MIB)) MiB of memory, $LOAD % of it loaded, headroom $KEPT MiB, floor $((low / MIB)) MiB"
diag "$(printf '%-8s %8s %8s %10s %10s %10s %10s %9s %7s %10s' '' REFUSED 'LOAD ms' 'SLOWEST us' \
	'MEAN us' 'NEIGHB. us' 'MEAN us' 'UNDER ms' 'GAP ms' 'LEAST MiB')"
# What could be had at best, where no page cache is in the way.
[ ! "$BARS" ] || run empty
run without
run with
if [ "$BARS" ]; then
	is "with headroom nothing of the model is refused" "$refused" 0
	check "with headroom the neighbour is never slower than four times alone" [ "$slow" -le $((4 * alone)) ]
	check "with headroom free memory is never under the floor for more than 200 ms" [ "$under" -le 200 ]
fi

kill -TERM "$daemon"
check "umacctd ends when it is asked to" gone "$daemon"
diag "$(tail -n "$([ "$BARS" ] && echo 40 || echo 5)" "$LOG")"
umacct headroom off >/dev/null
rm -f /run/umacct.toml.d/machine.toml
exec 5<&-
losetup -d $LOOP

done_testing
