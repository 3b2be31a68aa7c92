#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes touch managed memory in several threads, below one hard limit, and let it go: by
# unmapping, by the end of the process, and after their cgroup is removed under them. Beside them
# others take the driver's own memory below the same limit, limits below it come and go, and readers
# read. Nobody ever has more than the limit; at the end nothing is held, and all is free again.
#
# SEED and SECONDS_OF_STORM say which storm, and how long it lasts.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it sets limits for everyone and measures the whole machine's free memory"
needs_accounting
needs_uvm

: "${SEED:=1}" "${SECONDS_OF_STORM:=30}"
complaints=$(kernel_complaints)
HARD=$((24 * MIB))
SIGBUS=7

cgroup_make storm
for worker in 1 2 3 4; do
	cgroup_leaf "storm/left$worker"
done
limit storm --hard $HARD --soft $((HARD / 2)) >/dev/null
quiesce
memory_before=$(unowned)
end=$(($(date +%s) + SECONDS_OF_STORM))
operations=$TEST_DIR/operations
: >"$operations"

touch_once() { # WORKER TURN
	touch_dir=$(cgroup_dir storm)/of$1
	mkdir "$touch_dir"
	printf 'open\nmm\nmap 10M\ntouch %s 4K 4\n%s\nmap 2M\ntouch 2M 4K 2\nexit\n' \
		"$((1 + $2 % 9))M" "$([ $(($2 % 3)) -eq 0 ] || echo unmap)" >"$TEST_DIR/say$1"
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$touch_dir" \
		uvmtool <"$TEST_DIR/say$1" >"$TEST_DIR/said$1" 2>&1 &
	touch_pid=$!
	if [ $(($2 % 2)) -eq 0 ]; then
		# What it holds stays with it; the cgroup goes as soon as it has left.
		cgroup_add "storm/left$1" $touch_pid 2>/dev/null
		rmdir "$touch_dir" 2>/dev/null
	fi
	wait $touch_pid
	touch_code=$?
	# What is refused is an error to a call, and the end of who touches too much.
	[ $touch_code -le 1 ] || [ $touch_code -eq $((128 + SIGBUS)) ] ||
		echo "worker $1, turn $2: ended with $touch_code" >>"$TEST_DIR/odd"
	[ $touch_code -eq 0 ] || echo refused >>"$TEST_DIR/refused"
	echo "$1" >>"$operations"
	[ ! -d "$touch_dir" ] || eventually rmdir "$touch_dir"
}

touch_all_along() { # WORKER
	turn=$((SEED + $1))
	while [ "$(date +%s)" -lt "$end" ]; do
		turn=$((turn * 7 + $1))
		touch_once "$1" $((turn %= 1000))
	done
}

take_all_along() {
	while [ "$(date +%s)" -lt "$end" ]; do
		in_cgroup storm/left1 rmtool "alloc 64K 40" "free 40" >/dev/null 2>&1
	done
}

turn_limits() {
	while [ "$(date +%s)" -lt "$end" ]; do
		limit storm/left2 --hard 1M
		limit storm/left2 --hard max
		limit storm --soft 1M
		limit storm --soft $((HARD / 2))
	done >/dev/null 2>&1
}

# Each of a row's figures fits the others, whatever is under way.
read_all_along() {
	while [ "$(date +%s)" -lt "$end" ]; do
		nltest accounts | awk -v hard="$HARD" -v path="$TEST_CGROUP/storm" '
		FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
		$2 == path && $column["peak"] > hard ||
		FNR > 1 && ($column["managed"] > $column["usage"] ||
			$column["charged"] > $column["usage"] || $column["local"] > $column["usage"])' \
			>>"$TEST_DIR/wrong"
		umacct ls --all --json >/dev/null
		umacct ps --json >/dev/null
	done
}

: >"$TEST_DIR/odd"
: >"$TEST_DIR/wrong"
: >"$TEST_DIR/refused"
workers=
for worker in 1 2 3 4; do
	touch_all_along $worker &
	workers="$workers $!"
done
for beside in take_all_along turn_limits read_all_along; do
	$beside &
	workers="$workers $!"
done
holders="$holders $workers"
for worker in $workers; do
	wait "$worker"
done
# However slow the machine is, something is refused.
in_cgroup storm/left1 uvmtool open mm "map 32M" "touch 32M 4K" >/dev/null 2>&1 ||
	echo refused >>"$TEST_DIR/refused"

diag "operations=$(wc -l <"$operations")"
diag "$(head -n 5 "$TEST_DIR/wrong" "$TEST_DIR/odd")"
check "processes touched managed memory" [ -s "$operations" ]
check "the limit refused something" [ -s "$TEST_DIR/refused" ]
check "no row ever had a peak above the limit, or a part that is more than the whole" \
	[ ! -s "$TEST_DIR/wrong" ]
check "nobody ended otherwise than by an error, or a SIGBUS" [ ! -s "$TEST_DIR/odd" ]
check "nobody holds managed memory any more" eventually status_is managed 0
check "nobody holds pages of the driver's own any more" eventually status_is system 0
# What serves faults the driver keeps for the next: as many as there were at once.
check "nvidia-uvm goes" eventually rmmod nvidia_uvm
check "nobody holds anything any more" eventually status_is usage 0
check "no record is left" eventually status_is records 0
is "the account of all holds nothing" "$(account storm usage)" 0
is "nothing is left with it for removed cgroups" "$(account storm local)" 0
for worker in 1 2 3 4; do
	eventually rmdir "$(cgroup_dir storm/left$worker)"
done
check "nvidia-uvm is there for who comes next" load_uvm
settles "all memory is free again" 0 $((2 * MIB)) unowned_since "$memory_before"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
