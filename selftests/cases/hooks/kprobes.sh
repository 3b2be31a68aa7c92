#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# long: also
#
# What direct calls do, kprobes do as well: on a kernel without direct calls nothing
# is counted or refused otherwise. Other cases are run again with umacct on kprobes.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting
needs_kernel_alloc

by_kprobe() { # FUNCTION
	grep -q " $1+0x[0-9a-f]* .*nvidia" /sys/kernel/debug/kprobes/list
}

# The kernel has a switch for all of ftrace, by which nothing would be seen any more.
FTRACE=/proc/sys/kernel/ftrace_enabled
set_ftrace() { # 0|1
	echo "$1" >$FTRACE
} 2>/dev/null

uses_ftrace() {
	grep -q 'nv_alloc_pages .*nvidia' /sys/kernel/tracing/enabled_functions
}

still_counts() {
	start_in switched switcher
	ask switcher alloc 1M 4
	is "with a hook moved while the driver allocates every byte is counted" "$(system_memory switched)" $((4 * MIB))
	tell switcher exit
	gone "$pid"
}

if uses_ftrace; then
	cgroup_leaf switched
	check "ftrace can't be switched off while umacct is loaded" fails set_ftrace 0
	still_counts
	rmmod umacct
	check "without umacct ftrace can be switched off" set_ftrace 0
	check "with ftrace switched off umacct does not load" fails load umacct 2>/dev/null
	set_ftrace 1
	check "with ftrace on again umacct loads" load umacct
	still_counts

	# A BPF program at a function's end calls the function itself: a kprobe beside it would be
	# armed, and never be asked.
	start_in switched other
	other=$pid
	check "nobody else can make a direct call where umacct has one" \
		fails ask other kernel direct nvidia:nv_alloc_pages
	is "a direct call of another's is refused because umacct's is there" "$(reply_field errno)" 16
	rmmod umacct
	check "without umacct another one can make a direct call" ask other kernel direct nvidia:nv_alloc_pages
	check "umacct is loaded beside another's direct call" load umacct
	is "umacct says that it follows nothing beside another's direct call" "$(status_field driver_state)" broken
	check "umacct says that another direct call holds the function" sh -c 'umacct --json | grep -q "held by another direct call"'
	ask other kernel undirect
	is "without a new setting umacct still follows nothing" "$(status_field driver_state)" broken
	umacct reserve off
	check "when the other's direct call is gone umacct follows the driver from the next setting on" \
		eventually status_is driver_state hooked
	still_counts

	# What the kernel can't unhook it goes on calling: umacct doesn't go before it can.
	unregister=$(awk '$3 ~ /^unregister_ftrace_direct(_multi)?$/ { print $3 }' /proc/kallsyms |
		head -n 1)
	says_it_stays() {
		dmesg | grep -q "cannot unhook .*, error -19: umacct stays loaded"
	}
	ask other alloc 64K
	# One alone: each takes another wait for all tasks.
	ask other kernel fail "$unregister" 1 -19
	check "umacct goes, though a function can't be unhooked at first" rmmod umacct
	check "umacct says that a function stays hooked for now" says_it_stays
	ask other kernel fail "$unregister" 0
	check "nothing calls umacct when the function is unhooked" ask other free all
	tell other exit
	gone "$other"
	load umacct
	still_counts
fi

rmmod umacct
check "umacct is loaded to use kprobes alone" load umacct direct_calls=0
check "with direct_calls=0 the allocation is hooked by a kprobe" by_kprobe nv_alloc_pages
check "with direct_calls=0 the free is hooked by a kprobe" by_kprobe nv_free_system_pages

unenforced() {
	umacct --json | json_field unenforced
}
cgroup_leaf blind
limit blind --hard 1M
is "by kprobes a limit is enforced" "$(unenforced)" false
echo 0 >/sys/kernel/debug/kprobes/enabled
is "with kprobes switched off a limit is not enforced" "$(unenforced)" true
umacct limit "$(cgroup_path blind)" --hard 2M 2>"$TEST_DIR/err"
check "with kprobes switched off who sets a limit is told" grep -q 'kprobes are disabled' "$TEST_DIR/err"
echo 1 >/sys/kernel/debug/kprobes/enabled
is "with kprobes on again a limit is enforced" "$(unenforced)" false
limit blind --hard max

set -- accounting/shapes accounting/attribution limits/hard_limit
[ -z "${CASE_LONG-}" ] || set -- "$@" accounting/lifetimes limits/race view/meminfo
for again; do
	TMPDIR=$TEST_DIR sh "$SELFTESTS/cases/$again.sh" >"$TEST_DIR/output" 2>&1
	code=$?
	[ $code -eq 0 ] || sed 's/^/# /' "$TEST_DIR/output"
	is "$again passes as well" $code 0
	# A case may have loaded umacct anew.
	rmmod umacct
	load umacct direct_calls=0
done

# Two probes on one function: ours must not hide the other, nor double what we count.
cgroup_leaf leaf
start_in leaf holder
ask holder open
echo 'p:umacct_other nvidia:nv_alloc_pages' >/sys/kernel/tracing/kprobe_events
echo 1 >/sys/kernel/tracing/events/kprobes/umacct_other/enable
echo >/sys/kernel/tracing/trace
ask holder alloc 1M 4
check "another's kprobe on the same function sees the calls" \
	grep -q umacct_other /sys/kernel/tracing/trace
is "beside another's kprobe every byte is counted once" "$(system_memory leaf)" $((4 * MIB))
echo 0 >/sys/kernel/tracing/events/kprobes/umacct_other/enable
echo >/sys/kernel/tracing/kprobe_events
ask holder alloc 1M
is "when another's kprobe is gone every byte is counted once" "$(system_memory leaf)" $((5 * MIB))
ask holder free all
is "beside another's kprobe all is given back" "$(system_memory leaf)" 0

# A return probe has its own address where the caller's was.
echo 'r:umacct_other nvidia:nv_alloc_pages' >/sys/kernel/tracing/kprobe_events
echo 1 >/sys/kernel/tracing/events/kprobes/umacct_other/enable
echo >/sys/kernel/tracing/trace
check "with another's return probe there an allocation is made" ask holder alloc 1M 4
is "with another's return probe there an allocation is counted once" "$(system_memory leaf)" $((4 * MIB))
check "with another's return probe there that sees the allocation, too" grep -q umacct_other /sys/kernel/tracing/trace
limit leaf --hard "$(with_metadata $((4 * MIB)) 4 1)"
check "with another's return probe there an allocation is refused where a limit says so" fails ask holder alloc 1M
limit leaf --hard max
echo 0 >/sys/kernel/tracing/events/kprobes/umacct_other/enable
echo >/sys/kernel/tracing/kprobe_events
ask holder free all

rmmod umacct
load umacct

done_testing
