#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot:
#
# The kernel has no memory to take a probe off ftrace, or to put one there: umacct goes all
# the same and leaves nothing behind, the driver comes and goes, and another's probes go on.
# In a machine of its own: the kernel keeps the places that it failed to give up, and traces
# there what a later driver happens to have.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting
needs_kernel_alloc

KPROBES=/sys/kernel/debug/kprobes/list
TRACING=/sys/kernel/tracing
NO_MEMORY_ERROR=-12

rmmod umacct
load umacct direct_calls=0
grep -q 'nvidia.*\[FTRACE\]' "$KPROBES" || {
	rmmod umacct
	load umacct
	skip_all "this kernel has no kprobes on ftrace"
}
expect_warning disarm_kprobe_ftrace

cgroup_leaf home
start_in home breaker
ask breaker open
breaker=$pid

# fail COUNT: so often nothing can be put on ftrace, nor be taken off it.
fail() {
	ask breaker kernel fail ftrace_set_filter_ip "$1" $NO_MEMORY_ERROR
}

# Somebody else's probe, on ftrace as well.
other_probe() { # FUNCTION
	echo "p:umacct_other $1" >$TRACING/kprobe_events
	echo 1 >$TRACING/events/kprobes/umacct_other/enable
}

other_goes() {
	echo 0 >$TRACING/events/kprobes/umacct_other/enable
	echo >$TRACING/kprobe_events
}

fires() {
	echo >"$TRACING/trace"
	cat /proc/version >/dev/null
	grep -q umacct_other "$TRACING/trace"
}

counts() { # WHAT
	cgroup_leaf "$1"
	start_in "$1" "$1"
	ask "$1" open
	ask "$1" alloc 64K 4
	is "$1: umacct counts" "$(system_memory "$1")" $((256 * KIB))
	tell "$1" exit
	check "$1: what is given back is counted no more" eventually system_is "$1" 0
}

# ftrace may still call the kernel there, which finds nothing.
no_probe_left() {
	! grep -q nvidia "$KPROBES"
}

other_probe version_proc_show
check "another's probe fires" fires
check "another's probe is on ftrace" grep -q 'version_proc_show.*\[FTRACE\]' "$KPROBES"
for count in 1 3 1000; do
	what=fails_$count
	fail $count
	check "$what: umacct is unloaded" rmmod umacct
	fail 0
	check "$what: umacct leaves no probe" no_probe_left
	check "$what: the other's probe still fires" fires
	check "$what: the driver works" in_cgroup home rmtool open "alloc 64K 4"
	load umacct direct_calls=0
	is "$what: umacct loaded again hooks the driver" "$(status_field driver_state)" hooked
	counts "again_$count"
done
check "the kernel could not disarm" sh -c "dmesg | grep -q 'Failed to disarm kprobe-ftrace'"
other_goes

# Were one too few counted, this would be the one that is not enabled.
rmmod umacct
other_probe version_proc_show
check "the next probe that the kernel arms fires alone" fires
load umacct direct_calls=0
check "the next probe fires beside umacct's" fires
rmmod umacct
check "the next probe fires when umacct's are gone" fires
other_goes

# The driver comes while nothing can be hooked, and goes while nothing can be unhooked.
load umacct direct_calls=0
fail 1000
tell breaker exit
gone "$breaker"
check "the driver goes, though nothing can be unhooked" unload_driver
check "the driver loads, though nothing can be hooked" load_driver
is "the status says that the driver can't be hooked" "$(status_field driver_state)" broken
start_in home breaker
ask breaker open
check "the driver that can't be hooked works" ask breaker alloc 64K 4
fail 0
tell breaker exit
gone "$pid"
check "the driver that can't be hooked is unloaded" unload_driver
check "the driver loads, and the kernel can hook it again" load_driver
is "the driver is hooked as before" "$(status_field driver_state)" hooked
counts after

rmmod umacct
load umacct

done_testing
