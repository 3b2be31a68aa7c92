#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
# boot:
#
# The guard: where memory runs short, the one who took it is stopped, and the healthy server
# beside it goes on. The same with a guard and without; "SEED=2 daemon/guard.sh" takes other sizes.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it lets memory run short"
needs_accounting

LOG=$TEST_DIR/log
: "${SEED:=1}" "${BARS:=}"
# The guard has come by then, on a busy emulated processor too, in ms.
SOON=5000
# The driver leaves this much to the machine, with a guard and without.
RESERVE=200
FLOOR=300

# Megabytes that the driver could have.
obtainable() {
	echo $(($(available) / MIB - RESERVE))
}

# The nth number that the seed gives, from 0 up to MOST.
seeded() { # N MOST
	awk -v seed="$SEED" -v n="$1" -v most="$2" 'BEGIN {
		srand(seed)
		while (n--)
			number = rand()
		print int(number * most)
	}'
}

policy() { # [LINE]...
	{
		printf '[machine]\nreserve = "%dM"\n' $RESERVE
		[ $# -eq 0 ] || printf '[guard]\n'
		[ $# -eq 0 ] || printf '%s\n' "$@"
	} >/etc/umacct.toml
}

daemon_start() {
	: >"$LOG"
	# As its unit has it; the machine has no nice(1).
	# shellcheck disable=SC2016 # that shell's own
	sh -c 'renice -n -10 -p $$ && exec /usr/sbin/umacctd' 2>>"$LOG" &
	daemon=$!
	holders="$holders $daemon"
	eventually grep -q 'in force' "$LOG"
}

daemon_stop() {
	kill -TERM "$daemon"
	gone "$daemon"
}

is_frozen() { # NAME
	[ "$(cgroup_event "$1" cgroup.events frozen)" = 1 ]
}

thawed() { # NAME
	! is_frozen "$1"
}

# --- who takes it ------------------------------------------------------------------

leak() { # NAME
	start_in "$1" "$1"
	tell "$1" fill "$((64 + $(seeded 1 192)))K"
}

sudden_load() { # NAME
	start_in "$1" "$1"
	tell "$1" fill "$((512 + $(seeded 2 512)))K"
}

# Memory of the CPU's side, and as much as there is: the buffer that dd fills.
cpu_leak() { # NAME
	in_cgroup_exec "$1" dd if=/dev/zero of=/dev/null \
		bs=$(($(obtainable) + RESERVE / 2))M 2>/dev/null &
	pid=$!
	holders="$holders $pid"
}

# In a file system without a disk: what stays when its writer has ended. It may be called again,
# where memory came back meanwhile.
tmpfs_leak() { # NAME
	tmpfs_count=$(($(obtainable) - FLOOR + 50))
	[ "$tmpfs_count" -le 0 ] ||
		(in_cgroup_exec "$1" dd if=/dev/zero bs=1M count="$tmpfs_count") >>"$TEST_DIR/disk/leak" 2>/dev/null
}

fork_bomb() { # NAME
	fork_bomb_size=$((8 + $(seeded 3 8)))
	for _ in $(seq $((($(obtainable) + RESERVE) / fork_bomb_size))); do
		in_cgroup_exec "$1" rmtool "alloc 1M $fork_bomb_size" pause >/dev/null 2>&1 &
		holders="$holders $!"
	done
}

# --- with a guard and without --------------------------------------------------------

# scenario WHO yes|no: leaves lowest, refused and stopped.
scenario() {
	scenario_name=$1_$2
	cgroup_leaf "$scenario_name"
	refused=0
	lowest=999999
	stopped=nobody
	"$1" "$scenario_name"
	scenario_news=$(now_ms)
	scenario_short=
	while [ $(($(now_ms) - scenario_news)) -lt 60000 ]; do
		scenario_left=$(obtainable)
		# However long it takes: as long as it takes more.
		if [ "$scenario_left" -lt "$lowest" ]; then
			lowest=$scenario_left
			scenario_news=$(now_ms)
		fi
		if is_frozen server; then
			stopped=server
			break
		elif is_frozen "$scenario_name"; then
			stopped=$1
			break
		fi
		# What a healthy server does meanwhile.
		if ask server alloc 1M; then
			ask server free last
		else
			refused=$((refused + 1))
		fi
		# Nobody comes: that is enough.
		if [ "$scenario_left" -lt 100 ]; then
			: "${scenario_short:=$(now_ms)}"
			[ $(($(now_ms) - scenario_short)) -lt $SOON ] || break
		fi
	done
	scenario_row=$(printf '%-12s %-6s %8d %8d  %s' "$1" "$2" "$lowest" "$refused" "$stopped")
	diag "$scenario_row"
	cgroup_write "$scenario_name" cgroup.kill 1
	eventually has_obtainable $((FLOOR + FLOOR / 8 + 100))
}

has_obtainable() { # MEGABYTES
	[ "$(obtainable)" -ge "$1" ]
}

mkdir "$TEST_DIR/disk"
mount -t tmpfs -o size=100% guard "$TEST_DIR/disk"
cgroup_leaf server
start_in server server
ask server alloc 1M $((256 + $(seeded 4 256)))
umacct reserve ${RESERVE}M >/dev/null
diag "$(printf '%-12s %-6s %8s %8s  %s' who guard lowest refused stopped), seed $SEED, MiB"

policy
for who in leak sudden_load cpu_leak fork_bomb; do
	scenario $who no
	eval "alone_$who=$refused"
done
policy "floor = \"${FLOOR}M\"" 'for = "1ms"' 'steps = ["freeze"]' 'release = "200ms"'
check "the daemon starts with a guard" daemon_start
check "the daemon says that its guard is on" eventually grep -q 'guard: on' "$LOG"
watch_events
for who in leak sudden_load cpu_leak fork_bomb; do
	scenario $who yes
	is "$who: the one who took the memory is stopped" "$stopped" $who
	eval "alone=\$alone_$who"
	check "$who: the server is refused no more than without a guard" [ "$refused" -le "${alone:-0}" ]
	check "$who: the guard's step is told, with the numbers" eventually \
		grep -q "guard: freeze $(cgroup_path ${who}_yes): .* available, floor 300.00 MiB" "$LOG"
	check "$who: the guard's step is undone" eventually grep -q "guard: thaw $(cgroup_path ${who}_yes): " "$LOG"
done
watched_freezes() {
	for watched_who in leak sudden_load cpu_leak fork_bomb; do
		grep '"type":"guard","step":"freeze","undo":false' "$EVENTS" |
			grep -q "\"path\":\"$(cgroup_path "${watched_who}_yes")\"" || return 1
	done
}
check "umacct watch tells of each" eventually watched_freezes
kill "$watcher"
is "the guard never touched the server" "$(grep -c "$(cgroup_path server)" "$LOG")" 0

# --- how soon -----------------------------------------------------------------------

# From the moment in which less than the floor was available to the step that follows.
stops_in() { # NAME
	cgroup_leaf "$1"
	start_in "$1" "$1"
	ask "$1" alloc 1M $(($(obtainable) - FLOOR - 60))
	untilfrozen $(((FLOOR + RESERVE) * 1024)) "$(cgroup_dir "$1")/cgroup.events" >"$TEST_DIR/took" &
	stops_watcher=$!
	tell "$1" alloc 1M $(($(obtainable) - FLOOR + 70))
	wait $stops_watcher || echo 20000 >"$TEST_DIR/took"
	stops_took=$(cat "$TEST_DIR/took")
	cgroup_write "$1" cgroup.kill 1
	eventually grep -q "guard: thaw $(cgroup_path "$1"): " "$LOG"
}

# An emulated processor does other things at times: the bar itself, 200 ms, is for one that
# executes an instruction each nanosecond, whatever else goes on:
#   selftests/run --cell CELL --icount -- 'BARS=1 sh /selftests/cases/daemon/guard.sh'
slowest=0
for i in 1 2 3 4 5; do
	stops_in "quick$i"
	diag "stopped after $stops_took ms"
	[ "$stops_took" -le "$slowest" ] || slowest=$stops_took
done
check "the guard's step comes soon after the threshold" [ "$slowest" -le "$([ "$BARS" ] && echo 200 || echo $SOON)" ]

check "umacct show guard prints who holds what" sh -c "umacct show guard | grep -q '$(cgroup_path server) '"
check "umacct show guard prints JSON as documented" \
	sh -c "umacct show guard --json | check_json $SELFTESTS/umacct.schema.json guard"

# --- who ends undoes what it did -------------------------------------------------------

cgroup_leaf left
start_in left left
tell left alloc 1M $(($(obtainable) - FLOOR + 70))
check "the guard stops another one" eventually is_frozen left
daemon_stop
check "whom the guard stopped goes on when the guard ends" eventually thawed left
cgroup_write left cgroup.kill 1

# --- steps, one after the other; and who comes after one that was killed --------------

policy "floor = \"${FLOOR}M\"" 'for = "1ms"' 'wait = "300ms"' 'release = "200ms"' \
	'steps = ["reclaim", "reserve", "freeze", "signal", "kill"]'
check "the daemon starts with all steps of the guard" daemon_start
cgroup_leaf all
# It doesn't hear SIGTERM.
# shellcheck disable=SC2016 # expands in the inner shell
start_in all all sh -c 'trap "" TERM; exec rmtool "$@"' rmtool
tell all fill 1M
check "the guard's steps end, in their order, in the death of who leaks" eventually grep -q "guard: kill $(cgroup_path all): " "$LOG"
is "the guard took each of its steps" \
	"$(sed -n 's/.*guard: \(reclaim\|set the reserve to\|freeze\|SIGTERM\|kill\) .*/\1/p' "$LOG" | head -n 2 | xargs)" \
	"reclaim set the reserve to"
check "who leaked is dead" eventually process_is_gone "$pid"
check "the reserve is as it was after the guard's steps" eventually status_is reserve $((RESERVE * MIB))
daemon_stop

policy "floor = \"${FLOOR}M\"" 'for = "1ms"' 'release = "200ms"' 'steps = ["reserve", "freeze"]' 'wait = "100ms"'
umacct set machine reserve=- >/dev/null
daemon_start
cgroup_leaf left
leak left
check "a guard freezes somebody before it is killed" eventually is_frozen left
check "a guard raises the reserve before it is killed" fails status_is reserve $((RESERVE * MIB))
kill -KILL "$daemon"
gone "$daemon"
check "the daemon starts after one that was killed" daemon_start
check "the daemon thaws what the killed one left frozen" eventually grep -q "$(cgroup_path left) is thawed, left from its previous run" "$LOG"
cgroup_write left cgroup.kill 1
check "the daemon lowers the reserve that the killed one left raised" eventually status_is reserve $((RESERVE * MIB))
check "the policy's reserve outlives a guard that was killed" fails grep -q 'the reserve is 0 B again' "$LOG"
daemon_stop

# --- a tenant's events ------------------------------------------------------------------

policy "floor = \"${FLOOR}M\"" 'for = "1ms"' 'release = "200ms"' 'steps = ["reserve", "freeze"]' 'wait = "100ms"'
daemon_start
cgroup_leaf frozen
start_in frozen frozen
tell frozen alloc 1M $(($(obtainable) - FLOOR + 70))
check "one is frozen while another floods" eventually is_frozen frozen
cgroup_make flood
limit flood --hard 0
set --
for _ in $(seq 60); do
	set -- "$@" "insist 64K 1" "sleep 0.1"
done
events=$(status_field events_sent)
for i in $(seq 30); do
	cgroup_leaf "flood/t$i"
	in_cgroup_exec "flood/t$i" rmtool "$@" >/dev/null 2>&1 &
	holders="$holders $!"
done
flooded() {
	[ "$(status_field events_sent)" -gt $((events + 600)) ]
}
check "a tenant causes hundreds of events beside a frozen one" eventually flooded
check "whom the guard froze stays frozen in a flood of events" is_frozen frozen
is "the guard undoes nothing and sets nothing again in a flood of events" "$(grep -c -e ': thaw ' -e 'in force' "$LOG")" 1
cgroup_write flood cgroup.kill 1
cgroup_write frozen cgroup.kill 1
check "the freeze is undone when there is memory again" eventually grep -q ': thaw ' "$LOG"
daemon_stop

# --- one that is started again ------------------------------------------------------------

policy "floor = \"${FLOOR}M\"" 'for = "1ms"' 'release = "200ms"' 'steps = ["kill"]' 'wait = "300ms"'
daemon_start
for round in first second third; do
	cgroup_leaf again
	cpu_leak again
	check "a leaker is killed the $round time" eventually process_is_gone "$pid"
	# As systemd does before it starts a service again.
	eventually cgroup_remove "$(cgroup_path again)"
	eventually has_obtainable $((FLOOR + FLOOR / 8))
done
is "the guard killed the leaker each time" "$(grep -c "guard: kill $(cgroup_path again): " "$LOG")" 3

# --- what killing doesn't free --------------------------------------------------------------

cgroup_leaf writer
kills_nobody() {
	tmpfs_leak writer
	grep -q 'guard: no cgroup to act against' "$LOG"
}
check "nobody is killed for a tmpfs" eventually kills_nobody
is "the guard doesn't act against the server for a tmpfs" "$(grep -c "guard: .*$(cgroup_path server)" "$LOG")" 0
rm "$TEST_DIR/disk/leak"
daemon_stop

# --- dry -----------------------------------------------------------------------------

eventually has_obtainable $((FLOOR + 100))
policy "floor = \"${FLOOR}M\"" 'for = "1ms"' 'wait = "100ms"' 'steps = ["freeze", "kill"]' 'dry_run = true'
check "the daemon starts with a dry run of the guard" daemon_start
cgroup_leaf dry
leak dry
check "a dry run of the guard says what it would do" eventually grep -q "guard would: kill $(cgroup_path dry): " "$LOG"
check "a dry run of the guard kills nobody" kill -0 "$pid"
check "a dry run of the guard freezes nobody" thawed dry
cgroup_write dry cgroup.kill 1
daemon_stop

# --- the policy ------------------------------------------------------------------------

policy 'floor = "4 pears"' 'steps = ["shoot"]'
umacct config check 2>"$TEST_DIR/err"
is "config check finds what is wrong with the guard's settings" "$?" 2
check "config check says where the guard's settings are wrong" grep -q '^/etc/umacct.toml:4:9: floor: ' "$TEST_DIR/err"
check "config check finds all that is wrong with the guard's settings" grep -q "^/etc/umacct.toml:5:10: steps: there is no step 'shoot'" "$TEST_DIR/err"
policy 'floor = "3%"' "protect = [\"$(cgroup_path server)\"]"
check "config explain says what the guard never touches" \
	sh -c "umacct config explain $(cgroup_path server) | grep -q 'the guard: it never touches'"

cgroup_write server cgroup.kill 1
umount "$TEST_DIR/disk"
rm /etc/umacct.toml
umacct reserve off >/dev/null

done_testing
