#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# long: also
#
# A tenant who means to take the whole machine tries each of the driver's allocators in
# turn, as an unprivileged program that knows the driver's calls. Whichever it is, the
# tenant's limit holds, or the machine's reserve, and nobody else is killed. Ground truth is
# the machine's free memory.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it tries to fill the machine's memory"
needs_accounting
needs_uvm

HARD=$((16 * MIB))
RESERVE=$((256 * MIB))
# What is left above a reserve, where that is all that binds.
ROOM=$((64 * MIB))
# Of what falls from MemFree while something is taken, some waits in lists for each CPU.
LISTS=$((48 * MIB))
SIGBUS=7

cgroup_leaf tenant
cgroup_leaf neighbour
open_to_tenants
# Where nothing holds, the kernel kills. Not the case; see start_bystander().
echo -1000 >/proc/$$/oom_score_adj

unexplained() {
	umacct audit --json | json_field unexplained
}

global_ooms() {
	dmesg | grep -c global_oom
}

# Of all processes the kernel would kill this one first; the tenant's next.
start_bystander() {
	in_cgroup_exec neighbour sleep 10000 &
	bystander=$!
	holders="$holders $bystander"
	echo 1000 >/proc/$bystander/oom_score_adj
	ooms=$(global_ooms)
}

bystander_lives() {
	process_is_gone "$bystander" || [ "$(global_ooms)" -gt "$ooms" ] || return 0
	start_bystander
	return 1
}

# As many answers as there were commands, or the program is dead.
ended_or_answered() { # COUNT
	[ "$(wc -l <"$TEST_DIR/said")" -ge "$1" ] || process_is_gone "$pid"
}

beside_charged=0

look() {
	held=$((free - $(free_memory)))
	rise=$(($(cgroup_read tenant memory.current) - current))
}

is_bounded() {
	look
	[ $((held - beside_charged * rise)) -le "$room" ]
}

# attempt WHAT PROGRAM COMMAND...: the tenant starts a program and has it do that. Sets held
# and most, in bytes that are gone from free memory, afterwards and (of MemFree) at the worst
# moment; rise, of memory.current; and code, that the program ended with.
attempt() {
	what=$1
	start_in tenant hog runas "$UNPRIVILEGED" "$2"
	shift 2
	echo 900 >"/proc/$pid/oom_score_adj"
	ask hog open
	cat <>"$TEST_DIR/hog.out" >"$TEST_DIR/said" &
	reader=$!
	current=$(cgroup_read tenant memory.current)
	free=$(free_memory)
	free_outside_lists=$(memfree)
	freewatch 0 >"$TEST_DIR/watched" &
	watcher=$!
	holders="$holders $reader $watcher"
	for command; do
		tell hog "$command"
	done
	eventually ended_or_answered $#
	# What was refused may be on its way back.
	if [ "$who" = "no limit" ]; then
		look
	else
		eventually is_bounded
	fi
	# What the kernel charges may be as much as it lets the cgroup have.
	beside=0
	[ "$beside_charged" = 0 ] || beside=$(cgroup_read tenant memory.max)
	left=$(available)
	unnamed=$(($(unexplained) - explained))
	kill -TERM "$watcher"
	wait "$watcher"
	most=$((free_outside_lists - $(sed -n 's/.*least=\([0-9]*\).*/\1/p' "$TEST_DIR/watched")))
	kill -KILL "$pid" "$reader" 2>/dev/null
	{ wait "$reader" "$pid"; } 2>/dev/null
	code=$?
	diag "$(cat "$TEST_DIR/said")"
	diag "$what: $((held / KIB)) KiB held, $((most / KIB)) at most, memory.current rose by" \
		"$((rise / KIB)) KiB, $((left / MIB)) MiB were available, exit code $code"
	check "$what, $who: the machine has what may be left of its reserve, less 5 %" \
		[ "$left" -ge $((reserve - RESERVE / 20 - LISTS)) ]
	check "$what, $who: not for a moment is more taken than may be" \
		[ "$most" -le $((room + LISTS + beside)) ]
	check "$what, $who: at most 8 MiB of what is held is unexplained in the audit" \
		[ "$unnamed" -le $((8 * MIB)) ]
	check "$what, $who: the kernel kills no bystander" bystander_lives
}

# As attempt(), where there is a limit.
limited() {
	attempt "$@"
	check "$what, $who: the tenant holds no more than its limit and 5 %" [ "$held" -le "$room" ]
}

# As limited(), where the kernel takes memory, too, and charges that itself.
limited_beside_charged() {
	beside_charged=1
	attempt "$@"
	beside_charged=0
	check "$what, $who: beside what the kernel charges, it holds no more than its limit and 5 %" \
		[ $((held - rise)) -le "$room" ]
}

# As limited(), of what the kernel charges in any case.
limited_and_charged() {
	limited "$@"
	check "$what, $who: the tenant's cgroup is charged for what it holds" [ "$rise" -ge $((held - 2 * MIB)) ]
}

# As limited(), of what a program takes by touching it.
limited_by_fault() {
	limited "$@"
	is "$what, $who: what is too much ends the program, by a SIGBUS" "$code" $((128 + SIGBUS))
}

# Each of these could have the machine. [plain], [mixed], [charged] and [faulting] are how it is tried.
bulk() {
	$charged "semaphore pools" uvmtool "pool 2M 600"
	$charged "migrating what nobody touched" uvmtool "map 1400M" migrate
	$charged "migrating with UVM_MM_INITIALIZE" uvmtool mm "map 1400M" migrate
	$faulting "touching managed memory in four threads" uvmtool mm "map 1400M" "touch 1400M 4K 4"
	$plain "managed ranges without a page" uvmtool "map 1024G 100"
	$plain "describing memory that the program hasn't got" rmtool "describe 900G"
}

# The same of what is taken in small pieces.
pieces() {
	$plain "external ranges" uvmtool "external 4K 10000"
	$plain "semaphore pools of a page" uvmtool "pool 4K 6000"
	$plain "small managed ranges without a page" uvmtool "map 4G 6000"
}

# What is small, or of a size that the program chooses, and stays. With memory.max alone, these are tried
# alone.
kept() {
	$plain "objects without memory" rmtool "keep objects 100000"
	$plain "files for exports" rmtool "keep exports 10000"
	$plain "lists of GPUs" rmtool "keep lists 12000"
	$plain "shares" rmtool "keep shares 300000"
}

# Small things, of which there can be many.
objects() {
	$faulting "touching a page in each of many blocks" uvmtool mm "map 16G" "touch 16G 2M 4"
	$plain "objects of a page" rmtool "load 4K 5000"
	$mixed "clients" rmtool "clients 4000"
	$plain "events" rmtool "events 30000"
	$plain "VA spaces" uvmtool "spaces 400"
	$mixed "open files" rmtool "files 80000"
	$mixed "open files of nvidia-uvm" uvmtool "files 80000"
	$plain "range groups" uvmtool "groups 600000"
	$plain "pages in range groups" uvmtool "map 4G" "assign 300000"
	$plain "managed ranges split by policies" uvmtool "map 4G" "slice 3000"
	$mixed "managed ranges split by the kernel" uvmtool mm "map 64M" "split 1200"
}

start_bystander
quiesce
explained=$(unexplained)
reserve=$RESERVE
room=$((HARD + HARD / 20))
plain=limited
mixed=limited_beside_charged
charged=limited_and_charged
faulting=limited_by_fault
umacct reserve $reserve >/dev/null
limit tenant --hard $HARD
cgroup_write tenant memory.max 64M
for charging in on off; do
	charge tenant $charging >/dev/null
	who="charging $charging"
	bulk
	pieces
	kept
	$mixed "trackers of events" uvmtool "tools 4000"
	# Without charging, the long run alone tries these.
	if [ $charging = on ] || [ "${CASE_LONG-}" ]; then
		objects
	fi
done

who="memory.max alone"
charge tenant on >/dev/null
limit tenant --hard max
room=$((64 * MIB + 64 * MIB / 20))
kept
limit tenant --hard $HARD
room=$((HARD + HARD / 20))
charge tenant off >/dev/null

limit tenant --hard 128K
start_in tenant hog runas "$UNPRIVILEGED" rmtool
ask hog describe 64M
is "the driver's array for 64 MiB that a program describes counts while it is there" \
	"$(reply_field answer)" 0x51
ask hog describe 16M
check "and one that the limit has room for is made" [ "$(reply_field answer)" != 0x51 ]
tell hog exit
gone "$pid"

who="no limit"
plain=attempt
charged=attempt
faulting=attempt
limit tenant --hard max
cgroup_write tenant memory.max max
reserve=$(($(available) - ROOM))
umacct reserve $reserve >/dev/null
room=$((ROOM + RESERVE / 20))
# What is taken in small pieces may use half of the reserve: see limits/reserve.
bulk
umacct reserve off >/dev/null

# Nothing is set at all.
cgroup_leaf free
start_in free hog runas "$UNPRIVILEGED" rmtool
ask hog open
ask hog alloc 900000M
is "a request for more than the machine has is refused where nothing is limited" \
	"$(reply_field status)" 0x51
check "a request for more than the machine has kills nobody" bystander_lives
tell hog exit
gone "$pid"

done_testing
