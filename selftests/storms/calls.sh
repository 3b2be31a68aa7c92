#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An unprivileged program makes any call of the drivers' that it can find, and those again that are
# accepted, to hold as much as it can: under a hard limit with and without charging, under memory.max
# alone, and with the reserve alone. It never has more than may be, a neighbour lives and opens the
# driver, and at the end all is free again. Ground truth is the machine's free memory.
#
# SEED and SECONDS_OF_STORM say which storm, and how long it lasts.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it tries to fill the machine's memory"
needs_accounting
needs_uvm

: "${SEED:=1}" "${SECONDS_OF_STORM:=30}"
HARD=$((16 * MIB))
MAX=$((64 * MIB))
ROOM=$((64 * MIB))
RESERVE=$((256 * MIB))
# What is taken and given back between two reads of the machine's lists.
BETWEEN=$((4 * MIB))
MODES=4
operations=0
mode=0

cgroup_leaf tenant
cgroup_leaf neighbour
open_to_tenants
echo -1000 >/proc/$$/oom_score_adj
in_cgroup_exec neighbour sleep 100000 &
neighbour=$!
holders="$holders $neighbour"
echo 1000 >/proc/$neighbour/oom_score_adj

mkdir "$TEST_DIR/known"
chown $UNPRIVILEGED "$TEST_DIR/known"

faults() {
	dmesg | grep -c -E 'WARNING:|BUG:|Oops|refcount_t:'
}
faults_before=$(faults)

# At memory.max the kernel may kill for its own, such as open files, and says so on the console, which is
# looked at as a whole.
read -r console_level _ </proc/sys/kernel/printk
echo 1 >/proc/sys/kernel/printk

# attempt WHAT MOST RESERVE: for a part of the time.
attempt() {
	quiesce
	before=$(free_memory)
	in_cgroup_exec tenant sh -c 'echo 900 >/proc/self/oom_score_adj; exec "$@"' sh \
		runas $UNPRIVILEGED anycall "$((SEED * MODES + mode))" $((SECONDS_OF_STORM / MODES)) \
		"$TEST_DIR/known/calls" >"$TEST_DIR/said" 2>&1 &
	caller=$!
	holders="$holders $caller"
	check "$1: another user opens the driver meanwhile" in_cgroup neighbour runas $UNPRIVILEGED rmtool open
	least=$before
	until process_is_gone "$caller"; do
		now=$(free_at_once)
		[ "$now" -ge "$least" ] || least=$now
	done
	wait "$caller"
	code=$?
	most=$((before - least))
	diag "$1: $(cat "$TEST_DIR/said"); $((most / KIB)) KiB at most, exit code $code"
	mode=$((mode + 1))
	calls=$(sed -n 's/^calls=\([0-9]*\) .*/\1/p' "$TEST_DIR/said")
	operations=${calls:-0}
	is "$1: the program makes calls that the driver accepts" $code 0
	check "$1: whenever the machine is looked at, no more is taken than may be" \
		[ "$most" -le $(($2 + BETWEEN)) ]
	check "$1: the neighbour lives" kill -0 $neighbour
	check "$1: nothing stays with the tenant" eventually account_is tenant usage 0
}

quiesce
memory_before=$(unowned)
umacct reserve $RESERVE >/dev/null
# What the driver makes for the first who asks, and keeps, the neighbour has.
in_cgroup neighbour runas $UNPRIVILEGED anycall "$SEED" 6 "$TEST_DIR/known/calls" >/dev/null
cgroup_write tenant memory.max $MAX
limit tenant --hard $HARD >/dev/null
charge tenant on >/dev/null
attempt "a hard limit, charging on" $((MAX + MAX / 20))
charge tenant off >/dev/null
attempt "a hard limit, charging off" $((HARD + HARD / 20 + MAX))
charge tenant on >/dev/null
limit tenant --hard max >/dev/null
attempt "memory.max alone" $((MAX + MAX / 20))
charge tenant off >/dev/null
cgroup_write tenant memory.max max
reserve=$(($(available) - ROOM))
umacct reserve $reserve >/dev/null
# What is small may use half of the reserve, so what bounds it is the other half.
attempt "the reserve alone" $((ROOM + reserve / 2))
umacct reserve off >/dev/null

is "the kernel has nothing to complain of but of memory" "$(faults)" "$faults_before"
settles "all memory is free again" 0 $((8 * MIB)) unowned_since "$memory_before"
diag "operations=$operations seed=$SEED"
done_testing
