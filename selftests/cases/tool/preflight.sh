#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
# boot:
#
# What "umacct preflight" answers is what then happens: over random states of a machine,
# with page cache, shared memory and the driver's own memory in pieces, it never says yes
# where the driver then refuses; what --fix has mended is so; and what is there "after reclaim"
# is had, if not by the driver alone then with --fix. --wait ends when the memory has come back;
# and what memory.min protects is nobody's, for the reserve, too: in mixes of protection, tmpfs,
# locked memory and page cache, what is said to be there is had, and nobody is killed.
#
# The long runs, of one seed:
#   selftests/run --cell CELL -- 'SEED=1 STATES=50 sh /selftests/cases/tool/preflight.sh'
#   selftests/run --cell CELL -- 'SEED=1 MIXES=20 sh /selftests/cases/tool/preflight.sh'

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills the machine's memory"
needs_accounting

: "${SEED:=1}" "${STATES:=2}" "${FIRST:=1}" "${MIXES:=2}"
LOOP=/dev/loop0
[ -b $LOOP ] || skip_all "no loop device"

meminfo() { # KEY
	awk -v key="$1:" '$1 == key { print $2 * 1024 }' /proc/meminfo
}

# A file of zeros that takes no memory itself; what is read of it is page cache, for as
# long as somebody has the device open.
truncate -s 8G "$TEST_DIR/zeros"
losetup $LOOP "$TEST_DIR/zeros"
exec 5<$LOOP

read_file() { # MIB
	dd of=/dev/null bs=1M count="$1" <&5 2>/dev/null
}

# preflight SIZE [OPTION]...: sets code and answer.
preflight() {
	code=0
	umacct preflight --json "$@" >"$TEST_DIR/answer" || code=$?
	answer=$(json_field answer <"$TEST_DIR/answer")
}

answered() { # KEY
	json_field "$1" <"$TEST_DIR/answer"
}

cgroup_leaf leaf
cgroup_leaf crumbs
start_in leaf taker
ask taker open
start_in crumbs left
ask left open
start_in crumbs gone
ask gone open

# --- each of the answers ---------------------------------------------------------

preflight 256M
is "preflight says yes on an empty machine" "$answer $code" "yes 0"
check "the driver gives what preflight said yes to on an empty machine" ask taker alloc 2M 128
ask taker free all

for _ in $(seq 100); do
	[ "$(meminfo MemFree)" -gt $((150 * MIB)) ] || break
	read_file 64
done
preflight 1G
is "preflight says 'after reclaim' where page cache fills the machine" "$answer $code" "reclaim 6"
check "preflight says whose the page cache is" grep -q '"path":"[^}]*"cache_bytes":[1-9]' "$TEST_DIR/answer"
diag "$(umacct preflight 1G)"
missing=$(answered to_reclaim)
preflight 1G --fix
is "preflight says yes after --fix gave page cache back" "$answer $code" "yes 0"
# What was given back may lie beside what stays: then it is more, on a machine this small.
within "--fix gave back what was missing, and little more" "$(answered reclaimed)" "$missing" \
	$((missing / 20 + 128 * MIB))
diag "$((missing / MIB)) MiB were missing, $(($(answered reclaimed) / MIB)) were given back, $(answered compactions) compactions"
check "the driver gives what preflight said yes to after --fix" ask taker alloc 2M 512
preflight 1700M
is "preflight says no to more than there is" "$answer $code" "no 8"
check "preflight names who holds the most" \
	grep -q "\"path\":\"$(cgroup_path leaf)\",[^}]*\"driver_bytes\":$(account leaf usage)" \
	"$TEST_DIR/answer"
dd if=/dev/zero of="$TEST_DIR/psm_1" bs=1M count=64 2>/dev/null
umacct preflight 1700M >"$TEST_DIR/told"
check "preflight names the largest process of who holds the most" \
	grep -q "^  pid $(umacct ps --no-header -o pid "$(cgroup_path leaf)" | tr -d ' ') (rmtool) of root" \
	"$TEST_DIR/told"
check "preflight names a file in memory that nobody maps" \
	grep -q "^  $TEST_DIR/psm_1, 64.00 MiB, not mapped" "$TEST_DIR/told"
exec 6<"$TEST_DIR/psm_1"
rm "$TEST_DIR/psm_1"
umacct preflight 1700M >"$TEST_DIR/told"
check "preflight names a file in memory that has no name any more" \
	grep -q "psm_1, 64.00 MiB, deleted, open in pid $$ " "$TEST_DIR/told"
diag "$(cat "$TEST_DIR/told")"
exec 6<&-
ask taker free all

limit leaf --hard 100M
code=0
in_cgroup leaf umacct preflight 128M --json >"$TEST_DIR/answer" || code=$?
is "preflight says no above the limit of who asks" "$(answered answer) $code" "no 8"
is "preflight says which limit is in the way" "$(answered bound)" "the hard limit of $(cgroup_path leaf)"
in_cgroup leaf umacct preflight $((100 * MIB - $(account leaf usage))) >/dev/null
is "preflight says yes up to what the limit leaves beside the client that is open" "$?" 0
limit leaf --hard max
umacct reserve 1900M >/dev/null
preflight 256M
is "what the reserve keeps is not to be had" "$answer $(answered bound)" "no the reserve"
umacct reserve off >/dev/null
check "who is nobody is told as well, if with less" runas $UNPRIVILEGED umacct preflight 64M
umacct preflight 1G --blocks 3M 2>/dev/null
is "preflight refuses a block that is no power of two" "$?" 2

# --- waiting -----------------------------------------------------------------------

# since SECONDS: the ms from then to the answer, which says when it was.
since() {
	echo $(($(answered monotonic_us) / 1000 - $(echo "$1" | sed 's/[.]//; s/^0*//')0))
}

# waited: sets late, the ms from the moment when the memory was back to the answer.
waited() {
	ask taker alloc 2M 512
	umacct preflight ${most}M --wait 5min --json >"$TEST_DIR/answer" 2>"$TEST_DIR/told" &
	waiter=$!
	eventually grep -qs 'not yet' "$TEST_DIR/told"
	ask taker free all
	read -r up _ </proc/uptime
	wait $waiter
	code=$?
	late=$(since "$up")
	diag "the answer '$(answered answer)' came ${late} ms after the last page; waited $(($(answered waited) / 1000000)) ms"
}

echo 1 >/proc/sys/vm/drop_caches
preflight 64M
most=$((($(answered free) - 96 * MIB) / MIB))
least_late=100000
for _ in 1 2 3 4 5 6; do
	read -r up _ </proc/uptime
	preflight 64M
	at_once=$(since "$up")
	waited
	[ $((late - at_once)) -ge "$least_late" ] || least_late=$((late - at_once))
	[ "$least_late" -gt 100 ] || break
done
is "who waits for memory has it when a client has given it back" \
	"$(answered answer) $code" "yes 0"
check "who waits has it within 100 ms of what an answer takes at once, in the best of six times" \
	[ "$least_late" -le 100 ]
before=$(now_ms)
preflight 1900M --wait 1s
is "preflight --wait says no when what is waited for does not come" "$answer $code" "no 8"
check "preflight --wait waits no shorter than it was told" [ $(($(now_ms) - before)) -ge 1000 ]

# --- what is protected ---------------------------------------------------------------

# protect FILE: memory.min or memory.low, for the page cache of the cgroup "kept".
protect() {
	cgroup_write "" "$1" 200M
	cgroup_write kept "$1" 200M
}

kept_cache() {
	awk '/^(in)?active_file / { sum += $2 } END { print int(sum / 1048576) }' \
		"$(cgroup_dir kept)/memory.stat"
}

oom_kills() {
	awk '$1 == "oom_kill" { print $2 }' /proc/vmstat
}

cgroup_leaf kept
echo 1 >/proc/sys/vm/drop_caches
preflight 64M
in_cgroup kept dd of=/dev/null bs=1M count=181 <&5 2>/dev/null
diag "$(kept_cache) MiB of page cache; $(grep -w cgroup2 /proc/mounts)"
# Of 181 MiB, the kernel keeps its watermarks, and the driver has its notes.
wanted=$((($(answered free) - 128 * MIB) / MIB))
preflight ${wanted}M
is "page cache of 181 MiB can be had" "$answer" reclaim
protect memory.low
preflight ${wanted}M --fix
is "page cache that memory.low protects can be had, too" "$answer" yes
echo 1 >/proc/sys/vm/drop_caches
in_cgroup kept dd of=/dev/null bs=1M count=181 <&5 2>/dev/null
protect memory.min
preflight ${wanted}M
is "page cache that memory.min protects can't be had" "$answer" no
is "preflight names whose memory.min it is" "$(answered kept_by)" "$(cgroup_path kept)"
diag "$(umacct preflight ${wanted}M | head -n 1)"
within "what is available is without what memory.min protects" \
	$(($(umacct reserve --json | json_field available) / MIB)) $(($(available) / MIB - $(kept_cache))) 24
killed=$(oom_kills)
umacct reserve 80M >/dev/null
ask taker fill 64K
check "with a reserve of 80 MiB, a fill in small blocks is refused at last" \
	lacks_memory "$(reply_field status)"
is "nobody was killed for a fill in small blocks beside a reserve" "$(oom_kills)" "$killed"
check "a fill in small blocks didn't take the page cache that memory.min protects" [ "$(kept_cache)" -ge 170 ]
diag "$(($(meminfo MemAvailable) / MIB)) MiB of MemAvailable are left, $(($(meminfo MemFree) / MIB)) free"
umacct reserve off >/dev/null
ask taker free all
cgroup_write kept memory.min 0
cgroup_write "" memory.min 0

# --- random states -----------------------------------------------------------------

# dice STATE: numbers from 0 to 99.
dice() {
	awk -v seed="$1" 'BEGIN { srand(seed); for (i = 0; i < 10; i++) printf "%d ", rand() * 100 }'
}

clear_machine() {
	for clear_holder in taker left gone; do
		ask $clear_holder free all
	done
	rm -f "$TEST_DIR"/shared.*
	echo 1 >/proc/sys/vm/drop_caches
}

# Two clients take turns, of which one goes: what the other has lies all over the place.
crumble() { # MIB
	for _ in $(seq $(($1 / 16))); do
		ask left alloc 16K 32
		ask gone alloc 64K 240
	done
	ask gone free all
}

# The same with memory that can be moved.
share() { # MIB
	for share_i in $(seq $(($1 / 8))); do
		dd if=/dev/zero of="$TEST_DIR/shared.$share_i" bs=1M count=8 2>/dev/null
		dd if=/dev/zero of="$TEST_DIR/shared.gone" bs=256K count=1 2>/dev/null
		[ $((share_i % 2)) -eq 0 ] || mv "$TEST_DIR/shared.gone" "$TEST_DIR/shared.stays.$share_i"
	done
	for share_i in $(seq 1 2 $(($1 / 8))); do
		rm -f "$TEST_DIR/shared.$share_i"
	done
}

# state N: makes it, asks, and looks at what happens.
state() {
	# shellcheck disable=SC2046 # words
	set -- "$1" $(dice $((SEED * 1000 + $1)))
	clear_machine
	free=$(($(meminfo MemAvailable) / MIB))
	crumbs=$((free * $2 / 400))
	shared=$((free * $3 / 300))
	[ "$4" -ge 50 ] || crumble $crumbs
	[ "$5" -ge 60 ] || share $shared
	cache=$((free * $6 / 100))
	[ "$7" -ge 80 ] || read_file $cache
	[ "$4" -lt 50 ] || [ "$8" -ge 50 ] || crumble $crumbs
	block=2
	wanted=$(($(meminfo MemAvailable) * (10 + $9) / (100 * block * MIB)))
	wanted=$((wanted * block))

	preflight ${wanted}M --blocks ${block}M
	first=$answer
	fixed=-
	if [ "$answer" != yes ] && [ "$answer" != no ] && [ "${10}" -ge 50 ]; then
		preflight ${wanted}M --blocks ${block}M --fix
		fixed=$answer
	fi
	had=yes
	ask taker alloc ${block}M $((wanted / block)) || had="no: $(reply_field count)"
	# The driver's own allocation gives up sooner than the kernel that is told what is missing.
	if [ "$answer" = reclaim ] && [ "$had" != yes ]; then
		ask taker free all
		preflight ${wanted}M --blocks ${block}M --fix
		fixed=$answer
		had="$had, then yes"
		ask taker alloc ${block}M $((wanted / block)) || had="no: $(reply_field count)"
	fi
	diag "$(printf '%5d %8d %8d %8d %8d  %-10s %-10s %s' "$1" "$((free * $6 / 100))" \
		"$crumbs" "$shared" "$wanted" "$first" "$fixed" "$had")"
	case $first,$fixed,$had in
	*yes) ;;
	yes,* | reclaim,* | *,yes,*) wrong="$wrong $1" ;;
	esac
}

wrong=
diag "$(printf '%5s %8s %8s %8s %8s  %-10s %-10s %s' STATE CACHE CRUMBS SHARED WANTED ANSWER FIXED HAD)"
for i in $(seq "$FIRST" "$STATES"); do
	state "$i"
done
is "never yes where the driver then refuses, in $STATES states of seed $SEED" "$wrong" ""
clear_machine

# --- mixes ---------------------------------------------------------------------------

# Sets most: as much as preflight doesn't say no to, in MiB, and answer.
ask_for_most() {
	most=1900
	for _ in 1 2 3 4 5; do
		preflight ${most}M
		[ "$answer" = no ] || return 0
		most=$(((most * MIB - $(answered missing)) / MIB / 2 * 2))
	done
	return 1
}

# mix N: the kernel keeps some page cache for a cgroup, and other memory nobody can give back.
mix() {
	# shellcheck disable=SC2046 # words
	set -- "$1" $(dice $((SEED * 1000 + 500 + $1)))
	umacct reserve off >/dev/null
	cgroup_write kept memory.min 0
	cgroup_write "" memory.min 0
	clear_machine
	ask locker unlock
	min=$(($2 * 2))
	cache=$(($3 * 2))
	shared=$(($4 * 2))
	locked=$(($5 * 2))
	elsewhere=$(($6 * 3))
	cgroup_write "" memory.min ${min}M
	cgroup_write kept memory.min ${min}M
	[ "$shared" -lt 8 ] || share "$shared"
	[ "$locked" -eq 0 ] || ask locker lock ${locked}M
	[ "$elsewhere" -eq 0 ] || read_file "$elsewhere"
	[ "$cache" -eq 0 ] || in_cgroup kept dd of=/dev/null bs=1M count="$cache" <&5 2>/dev/null
	umacct reserve 80M >/dev/null
	kills=$(oom_kills)

	ask_for_most || wrong="$wrong $1"
	first=$answer
	[ "$answer" = yes ] || preflight ${most}M --fix
	ask taker alloc 2M $((most / 2))
	had=$(($(reply_field count) * 2))
	[ $((had * 100)) -ge $((most * 99)) ] || wrong="$wrong $1"
	# And then all that is left, in small blocks, to the reserve.
	ask taker fill 64K
	lacks_memory "$(reply_field status)" || wrong="$wrong $1"
	kills=$(($(oom_kills) - kills))
	[ $kills -eq 0 ] || killed_in="$killed_in $1"
	diag "$(printf '%5s %5s %6s %6s %7s %10s %6s %-10s %-10s %6s %5s %5s' "$1" "$min" "$cache" \
		"$shared" "$locked" "$elsewhere" "$most" "$first" "$answer" "$had" \
		"$(($(reply_field count) / 16))" "$kills")"
}

wrong=
killed_in=
start_in crumbs locker
diag "$(printf '%5s %5s %6s %6s %7s %10s %6s %-10s %-10s %6s %5s %5s' MIX MIN KEPT TMPFS LOCKED \
	ELSEWHERE SAID ANSWER FIXED HAD MORE KILLS)"
for i in $(seq "$MIXES"); do
	mix "$i"
done
is "what is said to be there is had to one per cent, in $MIXES mixes of seed $SEED" "$wrong" ""
is "nobody is killed for the reserve in any mix" "$killed_in" ""
umacct reserve off >/dev/null
ask taker free all
ask locker unlock
cgroup_write kept memory.min 0
cgroup_write "" memory.min 0
clear_machine
exec 5<&-
losetup -d $LOOP

done_testing
