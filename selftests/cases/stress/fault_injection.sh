#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# cell: amd64-6.12-debug
#
# Every allocation that umacct makes fails in turn. Whatever could not be done is said and
# leaves nothing half done; the driver never fails because of it; what can't be recorded is
# counted as untracked, and where there is a limit it is refused.
#
# Of the two hundred that it makes while it is loaded, one of EACH, from the SEED-th on. SEED
# says which storm it is at the end, too, which lasts for SECONDS_OF_STORM.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has the kernel's allocations fail"
needs_accounting
[ -d /sys/kernel/debug/failslab ] || skip_all "a kernel without fault injection"

: "${EACH:=7}" "${SEED:=1}" "${SECONDS_OF_STORM:=60}"
LEFT=$TEST_DIR/left

# --- what fails, and where

for_each_fault() { # FILE VALUE
	for fault in failslab fail_page_alloc; do
		echo "$2" >"/sys/kernel/debug/$fault/$1"
	done
}

# The kernel shows with a trace who had no memory: on the console that were a failure.
expect_warning disarm_kprobe_ftrace

# Those that a process asks for that may wait, and of any size.
for_each_fault ignore-gfp-wait N
for_each_fault verbose 0
for_each_fault task-filter N
for_each_fault times -1
for_each_fault probability 0
echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order

within_addresses() { # START END
	for_each_fault require-start "0x$1"
	for_each_fault require-end "0x$2"
}

# What functions of umacct's ask for, and what they call: in its hooks, the driver, too.
within_umacct() {
	# shellcheck disable=SC2046 # two words
	within_addresses $(awk '
	$4 == "[umacct]" && tolower($3) == "t" || $4 == "[umacct]" && tolower($2) == "t" {
		if (!first || $1 < first)
			first = $1
		if ($1 > last)
			last = $1
	}
	END { print first, substr(last, 1, 13) "fff" }' /proc/kallsyms)
}

# What one function asks for, and what it calls.
within_function() { # NAME
	check "there is a function $1" grep -q " $1\([[:space:]]\|\$\)" /proc/kallsyms
	# shellcheck disable=SC2046 # two words
	within_addresses $(sort /proc/kallsyms | awk -v name="$1" '
	first && $1 != first { print first, $1; exit }
	$3 == name { first = $1 }')
}

# Of what there is to fail, one of so many.
each=1

failing() { # PER CENT
	for_each_fault probability "$1"
}

# walk WHAT CHECK COMMAND...: COMMAND is run with one of its allocations failing, and with
# another, until it has no more; CHECK is called each time with its exit code.
walk() {
	walk_what=$1
	walk_check=$2
	shift 2
	walk_nth=$(((SEED - 1) % each + 1))
	walk_wrong=0
	walk_failed=0
	while :; do
		failnth "$walk_nth" "$LEFT" "$@" >"$TEST_DIR/output" 2>"$TEST_DIR/errors"
		walk_code=$?
		read -r walk_left <"$LEFT"
		[ $walk_code -eq 0 ] || walk_failed=$((walk_failed + 1))
		"$walk_check" $walk_code || {
			walk_wrong=$((walk_wrong + 1))
			diag "$walk_what: wrong with allocation $walk_nth failing, exit code $walk_code"
		}
		[ "$walk_left" -eq 0 ] || break
		walk_nth=$((walk_nth + each))
	done
	walk_number=$((walk_nth - walk_left))
	diag "$walk_what: $walk_number allocations; $walk_failed times it failed for want of one"
	check "$walk_what: there was something to fail" [ $walk_number -gt 0 ]
	is "$walk_what: it does all or nothing" $walk_wrong 0
}

# --- set and ask

cgroup_leaf target
set_cgroup target
target=$cgroup_at
within_umacct

both_or_none() { # CODE
	set_values="$(account target hard) $(account target soft)"
	case $1:$set_values in
	*:"$set_new") ;;
	0:*) return 1 ;;
	*:"$set_old") return 0 ;;
	*) return 1 ;;
	esac
	umacct limit "$target" --hard "${set_old% *}" --soft "${set_old#* }" >/dev/null
	[ "$(account target hard) $(account target soft)" = "$set_old" ]
}

limit target --hard 16M --soft 12M >/dev/null
set_old="$((16 * MIB)) $((12 * MIB))"
set_new="$((8 * MIB)) $((4 * MIB))"
walk "a limit" both_or_none umacct limit "$target" --hard 8M --soft 4M

fresh_account() { # CODE
	fresh=$(account fresh hard)
	case $1:$fresh in
	*:$((8 * MIB))) ;;
	0:*) return 1 ;;
	*: | *:null | *:0) ;;
	*) return 1 ;;
	esac
	cgroup_remove "$TEST_CGROUP/fresh"
	cgroup_leaf fresh
}
cgroup_leaf fresh
set_cgroup fresh
walk "the limit of a new account" fresh_account umacct limit "$cgroup_at" --hard 8M

# What is asked for comes whole or not at all.
same_or_none() { # CODE
	[ "$1" -ne 0 ] || cmp -s "$TEST_DIR/output" "$TEST_DIR/healthy"
}
walk_query() { # COMMAND...
	"$@" >"$TEST_DIR/healthy"
	walk "$*" same_or_none "$@"
}
limit target --hard 8M --soft 4M >/dev/null
start_in target holder
ask holder open
ask holder alloc 64K 8
walk_query umacct ls
walk_query umacct ps
walk_query umacct show "$target"

# --- the driver allocates, for a process and a cgroup that umacct doesn't know yet

# first NTH: a process whose NTH allocation in umacct fails.
first() {
	# shellcheck disable=SC2016 # expands in the inner shell
	start_in "$walk_cgroup" first sh -c 'echo "$0" >/proc/thread-self/fail-nth && exec "$@"' "$1" rmtool
	ask first open
}

untracked() {
	status_field untracked
}

# walk_first WHAT: a cgroup and a process each time; what_holds says whether all is right.
walk_first() { # WHAT CHECK
	walk_nth=1
	walk_wrong=0
	while :; do
		walk_cgroup=first$walk_nth
		cgroup_leaf "$walk_cgroup"
		untracked_before=$(untracked)
		first $walk_nth
		ask first alloc 64K 1
		read -r walk_left <"/proc/$pid/task/$pid/fail-nth"
		"$2" || {
			walk_wrong=$((walk_wrong + 1))
			diag "$1: wrong with allocation $walk_nth failing: $reply, usage $(system_memory "$walk_cgroup")"
		}
		tell first exit
		gone "$pid"
		eventually system_is "$walk_cgroup" 0 || walk_wrong=$((walk_wrong + 1))
		cgroup_remove "$TEST_CGROUP/$walk_cgroup"
		[ "$walk_left" -eq 0 ] || break
		walk_nth=$((walk_nth + 1))
	done
	check "$1: there was something to fail" [ $walk_nth -gt 1 ]
	is "$1: of $((walk_nth - 1)) that failed, none was wrong" $walk_wrong 0
}

has_it() {
	case $reply in "ok "*) ;; *) return 1 ;; esac
	[ $(($(account "$walk_cgroup" usage) + $(untracked) - untracked_before)) -eq \
		"$(with_metadata $((64 * KIB)) 1 1)" ]
}
limit target --hard max --soft max >/dev/null
within_function umacct_attribution_make
walk_first "no limit, not known whose it is: the driver allocates" has_it

has_it_or_not() {
	case $reply in
	"ok "*) held=$((64 * KIB)) ;;
	"refused "*) held=0 ;;
	*) return 1 ;;
	esac
	[ "$(system_memory "$walk_cgroup")" -eq "$held" ] && [ "$(untracked)" -eq "$untracked_before" ]
}
limit target --hard 8M >/dev/null
walk_first "a limit somewhere, not known whose it is: recorded or refused" has_it_or_not

# With none to be had for records, for longer than their stock lasts.
within_function umacct_record_fill_spares
limit target --hard max >/dev/null
ask holder free all
untracked_before=$(untracked)
usage_before=$(account target usage)
failing 100
check "no limit, no memory for records: the driver allocates" ask holder alloc 4K 400
failing 0
untracked=$(($(untracked) - untracked_before))
check "no limit, no memory for records: some of it could not be recorded" [ "$untracked" -gt 0 ]
is "no limit, no memory for records: usage and untracked are what was allocated" $(($(account target usage) - usage_before + untracked)) \
	"$(with_metadata $((400 * PAGE)) 400 0)"
ask holder free all
settles "no limit, no memory for records: nothing of it stays on the account" 0 0 system_memory target

limit target --hard "$(with_metadata $((400 * PAGE)) 400 1)" >/dev/null
failing 100
ask holder fill 4K
failing 0
count=$(reply_field count)
check "no memory for records: a limit of 400 pages lets no more through" [ "${count:-1000}" -le 400 ]
is "no memory for records: all that a limit lets through is on the account" "$(system_memory target)" $((count * PAGE))
ask holder free all
limit target --hard max >/dev/null
tell holder exit
gone "$pid"

# --- it comes and goes, and the driver does

nothing_left() {
	[ ! -d /sys/module/umacct ] && [ ! -d "$DEBUGFS" ] && [ "$(hooked_functions | wc -l)" -eq 0 ]
}

works() {
	in_cgroup target rmtool open "alloc 64K 4" "free all" >/dev/null
}

accounts_or_says() {
	works || return 1
	case $(status_field driver_state) in
	hooked) [ "$(account target allocs)" -gt 0 ] ;;
	broken) ;;
	*) return 1 ;;
	esac
}

loaded_or_not() { # CODE
	if [ "$1" -eq 0 ]; then
		accounts_or_says && rmmod umacct && nothing_left
	else
		nothing_left && works
	fi
}
rmmod umacct
within_function do_one_initcall
each=$EACH
walk "loading" loaded_or_not load "$MODULES/umacct.ko"
each=1
[ -d /sys/module/umacct ] || load umacct

goes_and_comes() { # CODE
	[ "$1" -eq 0 ] && nothing_left && works && load umacct && accounts_or_says
	goes_result=$?
	within_umacct
	return "$goes_result"
}
within_umacct
walk "unloading" goes_and_comes rmmod umacct
check "kprobes can be listed" grep -q . /sys/kernel/debug/kprobes/list

unload_driver
stand_in_without nothing
driver_comes() { # CODE
	case $1:$(status_field driver_state) in
	0:hooked | 0:broken) ;;
	*) return 1 ;;
	esac
	rmmod nvidia && [ "$(status_field driver_state)" = absent ]
}
walk "the driver comes" driver_comes load "$TEST_DIR/nvidia.ko"
[ -d /sys/module/nvidia ] || insmod "$TEST_DIR/nvidia.ko"
rmmod nvidia
load_driver
is "the driver that came is hooked" "$(status_field driver_state)" hooked

# --- at random, beside everything else

umacct reserve 1M >/dev/null
failing 10
SECONDS_OF_STORM=$SECONDS_OF_STORM TMPDIR=$TEST_DIR sh "$SELFTESTS/storms/ledger.sh" >"$TEST_DIR/storm" 2>&1
failing 0
umacct reserve off >/dev/null
sed 's/^/# /' "$TEST_DIR/storm"
check "a storm in which a tenth of all allocations fails ends" grep -q '^1\.\.[1-9]' "$TEST_DIR/storm"
# The kernel shows with a trace who had no memory, the driver among them. Its warnings are
# looked at where cases are judged.
is "a storm in which a tenth of all allocations fails ends well" "$(grep '^not ok' "$TEST_DIR/storm" | grep -v 'nothing to complain of')" ""

done_testing
