# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# shellcheck disable=SC2034 # the cases use what this file sets
#
# What the cases share. A case sources this file first, then calls needs_*() for
# what it can't do without, then checks, then done_testing. POSIX sh: the virtual
# machine has busybox alone, and no jq.

KSFT_PASS=0
KSFT_FAIL=1
KSFT_SKIP=4

SELFTESTS=$(cd "$(dirname "$0")" && pwd)
SELFTESTS=${SELFTESTS%/cases/*}
SELFTESTS=${SELFTESTS%/storms}
: "${SELFTESTS_BIN:=$SELFTESTS/bin}"
: "${MODULES:=/lib/umacct}"
PATH=$SELFTESTS_BIN:$PATH

CGROUPS=/sys/fs/cgroup
DEBUGFS=/sys/kernel/debug/umacct
KERNEL_ALLOC=/dev/umacct_test_alloc
UNPRIVILEGED=65534
# Debian's kernels have no others.
PAGE=4096
! grep -qx 'KernelPageSize: *16 kB' /proc/self/smaps || PAGE=16384
KIB=1024
MIB=1048576

# The driver's statuses, as rmtool prints them.
NO_MEMORY=0x51
INSUFFICIENT_RESOURCES=0x1a

# Everything a case makes lies under these two, and goes when it ends.
TEST_DIR=$(mktemp -d "${TMPDIR:-/tmp}/umacct.XXXXXX")
chmod 755 "$TEST_DIR"
TEST_CGROUP=/umacct_test.$$

test_number=0
test_failed=0
holders=

# --- results -----------------------------------------------------------------

diag() {
	echo "$*" | sed 's/^/# /'
}

result() { # ok|not_ok DESCRIPTION
	test_number=$((test_number + 1))
	if [ "$1" = ok ]; then
		echo "ok $test_number - $2"
	else
		test_failed=$((test_failed + 1))
		echo "not ok $test_number - $2"
	fi
}

# A test that can't be made here, though the rest of the case can.
skip() { # DESCRIPTION REASON
	test_number=$((test_number + 1))
	echo "ok $test_number - $1 # SKIP $2"
}

check() { # DESCRIPTION COMMAND...
	check_what=$1
	shift
	if "$@"; then
		result ok "$check_what"
	else
		result not_ok "$check_what"
		diag "failed: $*"
	fi
}

# For check(): succeeds if COMMAND doesn't.
fails() { # COMMAND...
	! "$@"
}

is() { # DESCRIPTION GOT WANTED
	if [ "$2" = "$3" ]; then
		result ok "$1"
	else
		result not_ok "$1"
		diag "got '$2', wanted '$3'"
	fi
}

within() { # DESCRIPTION GOT WANTED TOLERANCE
	within_off=$(($2 - $3))
	if [ "${within_off#-}" -le "$4" ]; then
		result ok "$1"
	else
		result not_ok "$1"
		diag "got $2, wanted $3 within $4: off by $within_off"
	fi
}

settled() { # COMMAND...
	settles_got=$("$@")
	settles_off=$((settles_got - settles_wanted))
	[ "${settles_off#-}" -le "$settles_tolerance" ]
}

# Waits until the number that COMMAND prints is as wanted, or patience ends; it is
# $settles_got.
settle_at() { # WANTED TOLERANCE COMMAND...
	settles_wanted=$1
	settles_tolerance=$2
	shift 2
	eventually settled "$@"
}

# As within(), for a number that COMMAND prints and that needs a moment to settle.
settles() { # DESCRIPTION WANTED TOLERANCE COMMAND...
	settles_what=$1
	shift
	settle_at "$@"
	within "$settles_what" "$settles_got" "$settles_wanted" "$settles_tolerance"
}

# Sets $seconds: since the machine started.
read_seconds() {
	read -r seconds _ </proc/uptime
	seconds=${seconds%.*}
}

# Makes the processors' lists of free pages short, 1 MiB each, for a case that compares what is
# available: MemAvailable and MemFree leave these lists out, and some 40 MiB go into them and come back
# as processes begin and end.
PAGE_LISTS=/proc/sys/vm/percpu_pagelist_high_fraction
has_short_lists=
short_lists() {
	[ -e "$PAGE_LISTS" ] || return 0
	has_short_lists=yes
	echo 2097152 >"$PAGE_LISTS"
}

# Repeats COMMAND for as long as PATIENCE, in seconds, until it succeeds: for what the kernel,
# or a process beside, does in its own time. A machine with other work to do takes ten times as
# long, and so does a kernel that checks itself: where cases have more time, this has.
PATIENCE=$((${CASE_TIMEOUT:-600} / 10))
eventually() { # COMMAND...
	read_seconds
	eventually_end=$((seconds + PATIENCE))
	while [ "$seconds" -le "$eventually_end" ]; do
		"$@" && return 0
		sleep 0.1
		read_seconds
	done
	# The machine may have stood still for as long.
	"$@" && return 0
	diag "waited $PATIENCE s in vain: $*" >&2
	return 1
}

skip_all() { # REASON
	echo "1..0 # SKIP $*"
	exit "$KSFT_SKIP"
}

done_testing() {
	echo "1..$test_number"
	[ "$test_failed" -eq 0 ] && exit $KSFT_PASS
	exit $KSFT_FAIL
}

clean_up() {
	for clean_pid in $holders; do
		kill -KILL "$clean_pid" 2>/dev/null
	done
	{ echo 1 >"$CGROUPS$TEST_CGROUP/cgroup.kill"; } 2>/dev/null
	wait
	[ ! "$console_level" ] || echo "$console_level" >/proc/sys/kernel/printk
	[ ! "$has_short_lists" ] || echo 0 >"$PAGE_LISTS"
	cgroup_remove "$TEST_CGROUP"
	rm -rf "$TEST_DIR"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# --- what a case needs -------------------------------------------------------

in_vm() {
	[ -d /sys/module/umacct_test_pci ]
}

needs_root() {
	[ "$(id -u)" -eq 0 ] || skip_all "needs root"
}

# For cases that load and unload modules, set limits for everyone or measure the
# whole machine: nothing of the kind is done to a machine that somebody uses.
needs_vm() { # WHY
	in_vm || skip_all "only in a virtual machine: $1"
}

needs_driver() {
	[ -c /dev/nvidiactl ] || skip_all "no NVIDIA driver: no /dev/nvidiactl"
}

needs_uvm() {
	[ -c /dev/nvidia-uvm ] || skip_all "nvidia-uvm is not loaded"
}

needs_observer() {
	[ -e /usr/lib/umacct/libumacct-observer.so ] || skip_all "the tool was built without the observer"
}

needs_cgroups() {
	grep -qw memory "$CGROUPS/cgroup.subtree_control" 2>/dev/null ||
		skip_all "no cgroup v2 with the memory controller at $CGROUPS"
	cgroup_make ""
}

needs_umacct() {
	# Where the observer counts, a case is run by another one that says so.
	[ -d /sys/module/umacct ] || [ "$OBSERVED" ] || skip_all "umacct.ko is not loaded"
	command -v umacct >/dev/null || skip_all "no umacct tool in PATH"
}

needs_kernel_alloc() {
	[ -c "$KERNEL_ALLOC" ] || load umacct_test_alloc || skip_all "no umacct_test_alloc.ko"
}

# The image has one: containers.
needs_containers() {
	[ -x /containers/usr/bin/podman ] || skip_all "no container runtime in /containers"
}

# What nearly every case needs.
needs_accounting() {
	needs_root
	needs_driver
	needs_cgroups
	needs_umacct
}

load() { # MODULE [PARAMETER=VALUE]...
	load_module=$1
	shift
	insmod "$MODULES/$load_module.ko" "$@"
}

# Nothing makes the driver's device files but these tests and nvidia-modprobe; the
# number of nvidia-uvm's is a new one each time.
load_driver() {
	load nvidia && load_uvm
}

load_uvm() {
	load nvidia-uvm || return 1
	rm -f /dev/nvidia-uvm
	mknod -m 666 /dev/nvidia-uvm c \
		"$(awk '$2 == "nvidia-uvm" { print $1 }' /proc/devices)" 0
}

unload_driver() {
	{ [ ! -d /sys/module/nvidia_uvm ] || rmmod nvidia_uvm; } && rmmod nvidia
}

# A module with the driver's functions, and without its memory: modules/nvfake.c.
# stand_in_without SYMBOL: writes nvidia.ko, where that is called otherwise; or all of it.
stand_in_without() { # SYMBOL|nothing
	cp "$MODULES/nvfake.ko" "$TEST_DIR/nvidia.ko"
	strings -t d "$TEST_DIR/nvidia.ko" | awk -v symbol="$1" '
	{
		while (i = index($2, "nvfake")) {
			at = $1 + length(passed) + i - 1
			print at, "nvidia"
			passed = passed substr($2, 1, i + 5)
			$2 = substr($2, i + 6)
		}
		passed = ""
	}
	$2 ~ "^(__pfx_|__cfi_)?" symbol "$" { print $1 + length($2) - 1, "_" }' |
		while read -r at text; do
			printf %s "$text" |
				dd of="$TEST_DIR/nvidia.ko" bs=1 seek="$at" conv=notrunc 2>/dev/null
		done
}

# What the kernel has complained of so far: warnings and oopses stay in its taint,
# and each says so in its log.
kernel_complaints() {
	dmesg | grep -c -E 'WARNING:|BUG:|Oops|refcount_t:|Call Trace:'
}

# expect_warning FUNCTION: the kernel may warn from it, in this case alone: it is made to
# fail there. It is kept from the console, which is looked at as a whole.
expect_warning() {
	[ "$console_level" ] || read -r console_level _ </proc/sys/kernel/printk
	echo 1 >/proc/sys/kernel/printk
	diag "expected: a warning of the kernel's in $1"
}
console_level=

# The kernel of kernels/debug.config.
is_debug_kernel() {
	case $(uname -r) in
	*-umacct-debug) ;;
	*) return 1 ;;
	esac
}

# What KASAN keeps for the stacks of those who allocated and freed is in no counter.
KEPT_FOR_DEBUGGING=0
! is_debug_kernel || KEPT_FOR_DEBUGGING=$((8 * MIB))

# The functions of NVIDIA's modules that are redirected or probed, by the kernel's own lists.
hooked_functions() {
	awk '/\[nvidia/ { print $1 }' /sys/kernel/tracing/enabled_functions
	awk '$4 ~ /^nvidia/ { sub(/\+.*/, "", $3); print $3 }' /sys/kernel/debug/kprobes/list
}

driver_major() {
	read_driver_major
	echo "$driver_major"
}

read_driver_major() {
	driver_major=0
	[ ! -e /sys/module/nvidia/version ] || read -r driver_major </sys/module/nvidia/version
	driver_major=${driver_major%%.*}
}

# --- memory ------------------------------------------------------------------

# All that a driver keeps in its pools (590 and later) is free, for which asking the kernel to
# drop its caches is not enough.
give_back_pools() {
	read_driver_major
	[ "$driver_major" -ge 590 ] || return 0
	umacct preflight --fix >/dev/null
	eventually status_is pools 0
}

# Per-CPU counters are folded into the global ones only now and then; ask for it. Each processor's
# worker does that, after all that it was given before.
fold_counters() {
	{ read -r _ </proc/sys/vm/stat_refresh; } 2>/dev/null
	return 0
}

# What a driver keeps in pools (590 and later) comes back when the kernel asks for it.
settle_counters() {
	read_driver_major
	[ "$driver_major" -lt 590 ] || echo 2 >/proc/sys/vm/drop_caches
	fold_counters
}

memfree() {
	settle_counters
	awk '$1 == "MemFree:" { print $2 * 1024 }' /proc/meminfo
}

# MemFree, and the free pages that wait in per-CPU lists: some 40 MiB of them.
free_memory() {
	settle_counters
	free_at_once
}

free_at_once() {
	awk -v page="$PAGE" '
	$1 == "count:" { lists += $2 }
	$1 == "MemFree:" { free = $2 }
	END { printf "%d\n", free * 1024 + lists * page }
	' /proc/zoneinfo /proc/meminfo
}

# To the driver: what is free for devices (CMA) is not, and some kernels have it, nor is page
# cache that may lie there. Nor is what the driver keeps in its pools counted here.
available() {
	available_of </proc/meminfo
}

available_of() {
	awk '
	{ kib[$1] = $2 }
	END {
		used = kib["CmaTotal:"] - kib["CmaFree:"]
		cache = kib["Active(file):"] + kib["Inactive(file):"]
		printf "%d\n", (kib["MemAvailable:"] - kib["CmaFree:"] -
				(cache < used ? cache : used)) * 1024
	}'
}

# Memory that is neither free nor in any of the kernel's own counters: what the
# driver takes falls from MemFree and appears nowhere else, and so shows here.
# MemFree leaves out the free pages that wait in per-CPU lists; and the driver's
# bookkeeping for each allocation is in Slab and VmallocUsed. Taking what the
# kernel says it moved out of MemFree's fall leaves the pages themselves.
unowned() {
	settle_counters
	awk -v page="$PAGE" '
	$1 == "count:" { lists += $2 }
	$1 == "MemTotal:" { total = $2 }
	$1 ~ /^(MemFree|Buffers|Cached|SwapCached|AnonPages|Slab|VmallocUsed|Percpu|PageTables|SecPageTables):$/ {
		owned += $2
	}
	END { printf "%d\n", (total - owned) * 1024 - lists * page }
	' /proc/zoneinfo /proc/meminfo
}

# Waits until the kernel is done with what it does once, after a boot above all.
quiesce() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		quiesce_before=$(unowned)
		sleep 0.5
		quiesce_moved=$(unowned_since "$quiesce_before")
		[ "${quiesce_moved#-}" -gt $((64 * KIB)) ] || break
	done
}

unowned_since() { # EARLIER
	echo $(($(unowned) - $1))
}

# --- cgroups -----------------------------------------------------------------

# Cgroups are named by their place under the case's own: "a", "a/b", "" for itself.
cgroup_path() { # NAME
	set_cgroup "$1"
	echo "$cgroup_at"
}

cgroup_dir() { # NAME
	set_cgroup "$1"
	echo "$CGROUPS$cgroup_at"
}

# Sets $cgroup_at: the path. In an emulated machine a subshell takes as long as a program.
set_cgroup() { # NAME
	cgroup_at=$TEST_CGROUP${1:+/$1}
}

cgroup_make() { # NAME
	set_cgroup "$1"
	mkdir -p "$CGROUPS$cgroup_at" || return 1
	# A cgroup with processes can't give its controllers on: that is well for a leaf.
	{ echo +memory >"$CGROUPS$cgroup_at/cgroup.subtree_control"; } 2>/dev/null
	return 0
}

# Like cgroup_make, for a cgroup that shall hold processes itself.
cgroup_leaf() { # NAME
	set_cgroup "$1"
	mkdir -p "$CGROUPS$cgroup_at"
}

cgroup_remove() { # PATH
	[ -d "$CGROUPS$1" ] || return 0
	find "$CGROUPS$1" -depth -type d | while read -r remove_dir; do
		eventually rmdir "$remove_dir" 2>/dev/null
	done
}

cgroup_read() { # NAME FILE
	set_cgroup "$1"
	cat "$CGROUPS$cgroup_at/$2"
}

cgroup_write() { # NAME FILE VALUE
	set_cgroup "$1"
	echo "$3" >"$CGROUPS$cgroup_at/$2"
}

cgroup_event() { # NAME FILE KEY
	set_cgroup "$1"
	awk -v key="$3" '$1 == key { print $2 }' "$CGROUPS$cgroup_at/$2"
}

cgroup_add() { # NAME PID
	set_cgroup "$1"
	echo "$2" >"$CGROUPS$cgroup_at/cgroup.procs"
}

cgroup_id() { # NAME
	set_cgroup "$1"
	stat -c %i "$CGROUPS$cgroup_at"
}

in_cgroup() { # NAME COMMAND...
	set_cgroup "$1"
	shift
	# shellcheck disable=SC2016 # expands in the inner shell
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$CGROUPS$cgroup_at" "$@"
}

# What the memory controller has at hand: it charges 64 pages at a time, for each of two
# processors, and keeps what it has left of them.
CHARGED_AHEAD=$((2 * 64 * PAGE))

# memory.current to the page: a memory.high that nothing can meet makes the kernel give back
# what it has charged ahead. It leaves that of other processors to their workers, which have done
# it when they have folded the counters.
cgroup_current() { # NAME
	cgroup_write "$1" memory.high 0
	fold_counters
	cgroup_write "$1" memory.high max
	cgroup_read "$1" memory.current
}

cgroup_current_since() { # NAME EARLIER
	echo $(($(cgroup_current "$1") - $2))
}

# --- holders: programs in the background that do as they are told ---------------

fifos() { # H
	[ -p "$TEST_DIR/$1.in" ] || mkfifo -m 666 "$TEST_DIR/$1.in" "$TEST_DIR/$1.out"
}

# start H COMMAND...: starts a program of the script kind; its pid is $pid.
start() {
	start_fifo=$TEST_DIR/$1
	fifos "$1"
	shift
	"$@" -f "$start_fifo" &
	pid=$!
	holders="$holders $pid"
}

# start_in CGROUP H [COMMAND...]: the same in a cgroup; rmtool unless told. It is there
# when this is over, so that whoever moves it then is the last who does.
start_in() {
	start_cgroup=$1
	start_name=$2
	shift 2
	[ $# -gt 0 ] || set -- rmtool
	fifos "$start_name"
	exec 9<>"$TEST_DIR/$start_name.out"
	start "$start_name" moved_exec "$start_cgroup" "$@"
	read_reply <&9
	exec 9>&-
}

# As in_cgroup_exec, and says on file 9 when it has moved, or can't.
moved_exec() { # NAME COMMAND...
	set_cgroup "$1"
	shift
	# shellcheck disable=SC2016 # expands in the inner shell
	exec sh -c 'echo $$ >"$0/cgroup.procs" || gone=1
		echo >&9
		[ "$gone" ] || exec "$@" 9>&-' "$CGROUPS$cgroup_at" "$@"
}

in_cgroup_exec() { # NAME COMMAND...
	set_cgroup "$1"
	shift
	# shellcheck disable=SC2016 # expands in the inner shell
	exec sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$CGROUPS$cgroup_at" "$@"
}

# ask H COMMAND...: gives a holder a command; its answer is $reply, and the
# result is whether it was "ok".
ask() {
	tell "$@"
	answer "$1"
}

# Reads a line into $reply, for a fifth of the case's time at the most. A shell whose read
# can't give up (dash) waits until that time is up.
read_reply() {
	read -r reply
}
# shellcheck disable=SC3045 # this asks for it
(read -r -t 1 _ </dev/null) 2>/dev/null
# shellcheck disable=SC3045
[ $? -ne 1 ] || read_reply() {
	read -r -t $((${CASE_TIMEOUT:-600} / 5)) reply
}

# tell H COMMAND...: the command alone, for one that has no answer (exit, crash)
# or whose answer is taken later with answer().
tell() {
	tell_name=$1
	shift
	# Who waits for the holder to open it is interrupted when another one ends.
	for _ in 1 2 3 4 5; do
		{ echo "$*" >"$TEST_DIR/$tell_name.in"; } 2>/dev/null && return 0
	done
	diag "$tell_name can't be told: $*"
	return 1
}

answer() { # H
	read_reply <>"$TEST_DIR/$1.out" || reply="no answer"
	case $reply in
	"ok "*) return 0 ;;
	*) return 1 ;;
	esac
}

reply_field() { # KEY
	echo "$reply" | sed -n "s/.* $1=\([^ ]*\).*/\1/p"
}

# Milliseconds since the machine started, in steps of ten.
now_ms() {
	awk '{ print int($1 * 1000) }' /proc/uptime
}

# Waits until a process that is to end has ended. One that doesn't would be in the way of what follows, and fails
# the case.
gone() { # PID
	eventually process_is_gone "$1" && return 0
	result not_ok "process $1 ends"
	return 1
}

process_is_gone() { # PID
	! kill -0 "$1" 2>/dev/null ||
		[ "$(grep -cs -e '^State:.Z' -e '^Threads:.1$' "/proc/$1/status")" = 2 ]
}

# --- umacct ------------------------------------------------------------------

# The value of a key in one line of JSON, as the tool prints it, with or without the unit
# that is the end of its name. The first one found: in what "show" prints, the account's
# own comes before its parts'.
json_field() { # KEY
	tr '[],{}' '\n' | sed -nE "s/^ *\"$1(_bytes|_ns|_bytes_per_second)?\" *: *\"?([^\"]*)\"? *$/\2/p" | head -n 1
}

# What umacct says of a target.
target() { # TARGET KEY
	umacct show --json "$1" | json_field "$2"
}

# A figure of an account. Most are what nltest prints, which takes a tenth of the time that the tool
# needs; case tool/json holds the one to the other.
account() { # NAME KEY
	set_cgroup "$1"
	nltest accounts 2>/dev/null | awk -v path="$cgroup_at" -v key="$2" '
	NR == 1 {
		for (i = 3; i < NF - 1; i++)
			if ($i == key)
				column = i
		if (!column)
			exit
	}
	$2 == path { value = $column }
	END {
		if (!column)
			exit 1
		print value + 0
	}' ||
		umacct show --json "$cgroup_at" | json_field "$2"
}

# Of what is counted for it, the pages of nvidia.ko's allocator: the rest of usage is managed
# memory, and metadata.
system_memory() { # NAME
	account "$1" system
}

status_field() { # KEY
	awk -v key="$1" '
	$1 == key && NF == 2 { print $2; found = 1 }
	END { exit !found }' "$DEBUGFS/status" 2>/dev/null ||
		umacct --json | json_field "$1"
}

# The usage of so many bytes of pages, in so many of the driver's objects, of so many processes with a
# client of the driver's, which have as many of the objects each. What the driver's heap has of them,
# and their open files, counts in lots for each process: up to 575 an object takes less than 3.8 KiB, and
# an array of 8 bytes a page; from 580 on, where its pages are contiguous, less than 2.6 KiB and none. An
# entry a page and its address, and a block an object, are what the driver's source says; case
# security/kept_memory holds all of it to the slab allocator's own figures.
# The observer counts the metadata of pages only.
with_metadata() { # BYTES OBJECTS CLIENTS
	awk -v bytes="$1" -v objects="$2" -v clients="$([ "$OBSERVED" ] && echo 0 || echo "$3")" -v page="$PAGE" \
		-v contiguous="$([ "$(driver_major)" -lt 580 ] && echo 0 || echo 1)" '
	BEGIN {
		lot = 32 * 1024
		entry = contiguous ? 16 : 40
		array = contiguous ? 0 : 8 * bytes / page / (objects ? objects : 1) + 16
		for (block = 32; block < array;)
			block *= 2
		heap = objects * ((contiguous ? 2640 : 3800) + (block > 32 ? block : 0))
		lots = clients ? int((heap / clients + (contiguous ? 20000 : 24000)) / lot) + 1 : 0
		printf "%d\n", bytes + bytes / page * entry + objects * 128 + clients * lots * lot
	}'
}

# Lets programs open each of the drivers' files, as many times as they like.
open_to_tenants() {
	[ -e /dev/nvidia-uvm-tools ] ||
		mknod -m 666 /dev/nvidia-uvm-tools c "$(awk '$2 == "nvidia-uvm" { print $1 }' /proc/devices)" 1
	# shellcheck disable=SC3045 # busybox has it
	ulimit -n 100000
}

# The driver's answers to a request that was refused: pages that are refused are no memory, a block
# of its heap may be insufficient resources.
lacks_memory() { # STATUS
	[ "$1" = "$NO_MEMORY" ] || [ "$1" = "$INSUFFICIENT_RESOURCES" ]
}

# As the tool prints it for people.
in_mib() { # BYTES
	awk -v bytes="$1" 'BEGIN { printf "%.2f MiB", bytes / 1048576 }'
}

# For eventually(): what a process leaves behind, and what a removed cgroup hands
# on, is settled soon after, not at once.
account_is() { # NAME KEY VALUE
	[ "$(account "$1" "$2")" = "$3" ]
}

system_is() { # NAME BYTES
	account_is "$1" system "$2"
}

# A number is bytes, however few: the tool takes one below 1 MiB with its unit alone.
limit() { # NAME OPTION...
	set_cgroup "$1"
	shift
	for limit_word; do
		shift
		case $limit_word in
		*[!0-9]*) set -- "$@" "$limit_word" ;;
		*) set -- "$@" "${limit_word}B" ;;
		esac
	done
	umacct limit "$cgroup_at" "$@"
}

charge() { # NAME on|off|inherit
	set_cgroup "$1"
	umacct charge "$2" "$cgroup_at"
}

status_is() { # KEY VALUE
	[ "$(status_field "$1")" = "$2" ]
}

# Collects the events from now on, one line of JSON each.
watch_events() {
	EVENTS=$TEST_DIR/events
	umacct watch --json >"$EVENTS" &
	watcher=$!
	holders="$holders $watcher"
	eventually listens "$watcher"
}

# The process has joined a netlink group, or, where the observer answers, waits for its next look: what
# happens from now on reaches it.
listens() { # PID
	if [ "$OBSERVED" ]; then
		grep -q nanosleep "/proc/$1/wchan"
		return
	fi
	awk -v pid="$1" '$2 == 16 && $3 % 4194304 == pid && $4 !~ /^0+$/ { found = 1 }
		END { exit !found }' /proc/net/netlink
}

events_are() { # PATTERN COUNT
	[ "$(grep -c "$1" "$EVENTS")" -eq "$2" ]
}
