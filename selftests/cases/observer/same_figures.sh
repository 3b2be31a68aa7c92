#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot:
# long: also
#
# The same is done with the module, with the observer, and in part with the observer in a kernel that
# is locked down, hides its addresses, and loads the driver later (all of it there in the long run
# alone). What both count is the same, to the byte, for every cgroup and process: pages, managed
# and registered memory, and what is charged. Of metadata the observer has that of pages and of
# registered memory, so metadata isn't compared, nor what contains it.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/observer.sh"
needs_vm "it locks the kernel down"
needs_accounting
needs_uvm
needs_kernel_alloc
needs_observer

LOCKDOWN=/sys/kernel/security/lockdown
[ -e "$LOCKDOWN" ] || mount -t securityfs securityfs /sys/kernel/security

FIGURES="charged system managed pinned allocs frees failures"

# A line for each cgroup under "run", and for each process there that holds something, with
# FIGURES; what holds nothing and never has may be missing.
figures() {
	{ umacct ls --all --json && umacct ps --json; } 2>/dev/null | tr -d ' "}]' | tr '{\n' '\n,' |
		awk -F, -v top="$TEST_CGROUP/run" -v wanted="$FIGURES" '
		BEGIN { count = split(wanted, keys, " ") }
		{
			delete value
			for (i = 1; i <= NF; i++) {
				split($i, pair, ":")
				sub(/_bytes$/, "", pair[1])
				value[pair[1]] = pair[2]
			}
			if (index(value["path"], top) != 1 || !(value["system"] + value["managed"] + value["pinned"] + value["allocs"]))
				next
			line = value["path"] " " value["comm"]
			for (i = 1; i <= count; i++)
				line = line " " keys[i] "=" value[keys[i]] + 0
			print line
		}' | sort
}

# What a process leaves behind is gone soon after.
stay() {
	figures >"$TEST_DIR/first"
	figures >"$TEST_DIR/second"
	cmp -s "$TEST_DIR/first" "$TEST_DIR/second"
}

as_by_the_module() { # STEP
	figures >"$TEST_DIR/observer.$1"
	cmp -s "$TEST_DIR/module.$1" "$TEST_DIR/observer.$1"
}

# step NAME DESCRIPTION: what the module says then is what the observer says then.
step() {
	if [ "$counts" = module ]; then
		check "the module's figures stand still: $2" eventually stay
		cp "$TEST_DIR/first" "$TEST_DIR/module.$1"
		check "the module has figures: $2" [ -s "$TEST_DIR/module.$1" ]
		return
	fi
	check "every figure is the same by both, $counts: $2" eventually as_by_the_module "$1"
	cmp -s "$TEST_DIR/module.$1" "$TEST_DIR/observer.$1" ||
		diag "$(diff "$TEST_DIR/module.$1" "$TEST_DIR/observer.$1")"
}

begin() { # CGROUP HOLDER PROGRAM
	cgroup_leaf "run/$1"
	start_in "run/$1" "$2" "$3"
	ask "$2" open
}

# do_all HOLDER COMMAND...: each is a step.
do_all() {
	do_holder=$1
	shift
	for do_command; do
		# shellcheck disable=SC2086 # words
		ask "$do_holder" $do_command || diag "$do_command: $reply"
		step "$do_holder.$(echo "$do_command" | tr ' ' _)" "after \"$do_command\" of $do_holder"
	done
}

end() { # HOLDER PID
	tell "$1" exit
	gone "$2"
	step "$1.gone" "after the exit of $1"
}

# Of programs that aren't told to exit.
ended() { # HOLDER PID
	kill -KILL "$2"
	gone "$2"
	step "$1.gone" "after $1 was killed"
}

shapes() {
	begin shapes shapes rmtool
	shapes_pid=$pid
	do_all shapes "alloc 4K 20" "alloc 100K 3" "alloc 4M 2" "alloc 64M" "free 3" "free all"
	ask shapes kernel alloc 7 "$PAGE" 1 5
	step shapes.contiguous "after blocks that are contiguous"
	ask shapes kernel free
	ask shapes kernel alloc 1008 65536 0 2
	step shapes.scattered "after blocks that are not"
	ask shapes kernel free
	ask shapes kernel register $((1200 * KIB / PAGE))
	step shapes.registered "after the program registered memory of its own"
	ask shapes kernel free
	step shapes.unregistered "after that is registered no more"
	end shapes $shapes_pid
}

# The array of registered memory has a pointer for each page. Without a GPU the driver's own calls free
# it at once.
registered() {
	begin registered registered rmtool
	registered_pid=$pid
	ask registered kernel register $((64 * KIB / PAGE))
	is "registered memory is pinned for the account, $counts" "$(account run/registered pinned)" \
		$((64 * KIB))
	is "and for the process, $counts" \
		"$(umacct ps --json "$(cgroup_path run/registered)" | json_field pinned)" $((64 * KIB))
	ask registered kernel free
	is "memory that isn't registered any more isn't pinned, $counts" \
		"$(account run/registered pinned)" 0
	ask registered describe 64K
	is "registered memory has its array in the peak, $counts" "$(account run/registered peak)" \
		$((64 * KIB * 8 / PAGE))
	is "memory that isn't registered any more has none, $counts" "$(account run/registered usage)" 0
	tell registered exit
	gone "$registered_pid"
}

uvm() {
	begin managed managed uvmtool
	managed_pid=$pid
	do_all managed "map 4M" "touch 2M" "map 16M 3" migrate "pool 64K 3" "pool 4K 5" unmap
	ended managed "$managed_pid"
}

# Who has it, when the process moves, when its cgroup goes, and when another one frees it.
owners() {
	cgroup_make run/top
	cgroup_make run/top/middle
	begin top/middle/left left rmtool
	left_pid=$pid
	begin top/right right rmtool
	right_pid=$pid
	do_all left "alloc 1M 3"
	do_all right "alloc 64K 5"
	cgroup_add run/top/right "$left_pid"
	do_all left "alloc 2M"
	rmdir "$(cgroup_dir run/top/middle/left)"
	step removed "after the removal of a cgroup for which memory is held"
	rmdir "$(cgroup_dir run/top/middle)"
	step removed_twice "after the removal of the one above, too"
	do_all left "free 0" "free 2"
	fifos child
	ask right fork "$TEST_DIR/child"
	child_pid=$(reply_field pid)
	holders="$holders $child_pid"
	answer child
	do_all child "free 0" "alloc 128K 2"
	end right $right_pid
	end child "$child_pid"
	end left $left_pid
}

# Many at once: what is held, and how often it was taken, and not how much at most.
storm_of_all() {
	storm_pids=
	for name in a b c d e f; do
		begin "storm/$name" "storm$name" rmtool
		storm_pids="$storm_pids $pid"
	done
	for name in a b c d e f; do
		tell "storm$name" churn 64K 300
		tell "storm$name" alloc 16K 7
	done
	for name in a b c d e f; do
		answer "storm$name"
		answer "storm$name"
	done
	step storm "after six processes took and freed at once"
	for storm_pid in $storm_pids; do
		kill -KILL "$storm_pid"
		gone "$storm_pid"
	done
	step storm.killed "after those six were killed"
}

operations() {
	cgroup_make run
	shapes
	owners
	# The module has the kernel charge managed memory that the driver has nobody charged for.
	FIGURES="system managed pinned allocs frees failures"
	uvm
	FIGURES="charged $FIGURES"
	storm_of_all
	cgroup_remove "$TEST_CGROUP/run"
}

# observe HOW: what all that is done comes to by the observer, which has begun.
observe() {
	counts=$1
	operations
	cgroup_make run
	registered
	cgroup_remove "$TEST_CGROUP/run"
	is "the observer has everything on an account, $1" "$(status_field untracked_count)" 0
	is "the observer has seen every free, $1" "$(status_field stale_count)" 0
	umacct setup observer off >/dev/null
}

counts=module
operations
without_module
check "the observer begins" umacct setup observer on
observe "not locked down"

# A driver that is loaded later, in a kernel that hides its addresses and is then locked down.
unload_driver
echo 2 >/proc/sys/kernel/kptr_restrict
check "the observer begins without a driver" umacct setup observer on
check "the driver is loaded while the observer counts" load_driver
echo integrity >"$LOCKDOWN"
check "a kernel that is locked down refuses the module" fails load umacct 2>/dev/null
if [ "${CASE_LONG-}" ]; then
	observe "locked down"
else
	counts="locked down"
	cgroup_make run
	shapes
	cgroup_remove "$TEST_CGROUP/run"
	umacct setup observer off >/dev/null
fi

done_testing
