#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# With the view on, a program that asks how much memory there is hears what its
# limit leaves it, by every way of asking; everybody else hears the truth.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting

LIMIT=$((256 * MIB))

ask_memory() { # CGROUP LABEL FIELD
	in_cgroup "$1" meminfo | awk -v label="$2" -v field="$3" '$1 == label { print $field }'
}

cgroup_make held
cgroup_leaf held/inner
cgroup_leaf free
truth=$(ask_memory free sysinfo 2)
limit held --hard $LIMIT
is "a limit alone changes no answer" "$(ask_memory held/inner sysinfo 2)" "$truth"
check "the view is switched on" limit held --hard $LIMIT --view

for way in sysinfo meminfo node0; do
	is "$way: the total is the limit" "$(ask_memory held/inner $way 2)" $LIMIT
	check "$way: free is no more than the limit" [ "$(ask_memory held/inner $way 3)" -le $LIMIT ]
	is "$way: a neighbour sees the machine" "$(ask_memory free $way 2)" "$truth"
done
# Its columns: total, used, free, shared, buff/cache, available.
free_says() { # CGROUP COLUMN
	in_cgroup "$1" procps-free -b | awk -v column="$2" '$1 == "Mem:" { print $(column + 1) }'
}

is "free(1): the total is the limit" "$(free_says held/inner 1)" $LIMIT
is "free(1): nothing is used before anything is held" "$(free_says held/inner 2)" 0
is "free(1): all of the limit is available" "$(free_says held/inner 6)" $LIMIT
is "free(1): a neighbour sees the machine" "$(free_says free 1)" "$truth"
check "what is available is no more than the limit" [ "$(ask_memory held/inner meminfo 4)" -le $LIMIT ]

# Other tracers on the same functions: they put return addresses of their own on the stack.
tracing=/sys/kernel/tracing
whole_view() { # TRACER
	for way in sysinfo meminfo node0; do
		is "$1: $way: the total is the limit" "$(ask_memory held/inner $way 2)" $LIMIT
		check "$1: $way: free is no more than the limit" [ "$(ask_memory held/inner $way 3)" -le $LIMIT ]
	done
}
for function in si_meminfo si_meminfo_node si_mem_available; do
	echo "r:umacct_$function $function" >>$tracing/kprobe_events
	echo 1 >$tracing/events/kprobes/umacct_$function/enable
done
whole_view "with return probes"
for function in si_meminfo si_meminfo_node si_mem_available; do
	echo 0 >$tracing/events/kprobes/umacct_$function/enable
	echo "-:umacct_$function" >>$tracing/kprobe_events
done
printf '%s\n' si_meminfo si_meminfo_node si_mem_available meminfo_proc_show >$tracing/set_ftrace_filter
echo function_graph >$tracing/current_tracer
whole_view "with function_graph"
echo nop >$tracing/current_tracer
echo >$tracing/set_ftrace_filter

start_in held/inner holder
ask holder alloc 4M 16
left=$((LIMIT - 64 * MIB))
for way in sysinfo meminfo node0; do
	check "$way: what is held is not free" [ "$(ask_memory held/inner $way 3)" -le $left ]
done
# It is told in whole pages.
used=$((($(with_metadata $((64 * MIB)) 16 1) + PAGE - 1) / PAGE * PAGE))
is "free(1): what is held is used" "$(free_says held/inner 2)" $used
check "what is held is not available" [ "$(ask_memory held/inner meminfo 4)" -le $left ]
ask holder free all

# What frameworks do.
portion=$(($(ask_memory held/inner sysinfo 3) * 9 / 10 / (4 * MIB)))
check "a program that takes 90 % of what it is told is not refused" \
	ask holder alloc 4M $portion
is "what a program takes that believes its view is counted" "$(system_memory held)" $((portion * 4 * MIB))
is "a program that believes its view has no refusal" "$(account held refusals)" 0
ask holder free all

# Where the kernel charges the driver's memory, its own limit binds, too.
cgroup_write held memory.max $((LIMIT / 2))
is "memory.max changes no answer while nothing is charged" "$(ask_memory held/inner sysinfo 2)" $LIMIT
charge held on
for way in sysinfo meminfo node0; do
	is "$way: with charging the total is memory.max, where that is lower" \
		"$(ask_memory held/inner $way 2)" $((LIMIT / 2))
done
start_in held/inner charged
ask charged alloc 4M 8
for way in sysinfo meminfo node0; do
	check "$way: with charging, what is held is not free" \
		[ "$(ask_memory held/inner $way 3)" -le $((LIMIT / 2 - 32 * MIB)) ]
done
ask charged free all
# Page cache is reclaimed before a charge fails. A file in memory has none that could go.
dd if=/dev/zero of="$TEST_DIR/image" bs=1M count=0 seek=64 2>/dev/null
device=$(losetup -f)
losetup "$device" "$TEST_DIR/image"
exec 7<"$device"
in_cgroup held/inner dd if="$device" of=/dev/null bs=1M 2>/dev/null
check "the cgroup holds 48 MiB and more of page cache" \
	[ "$(cgroup_event held memory.stat file)" -ge $((48 * MIB)) ]
check "with charging, the cgroup's page cache counts as free" \
	[ "$(ask_memory held/inner sysinfo 3)" -ge $((LIMIT / 2 - 32 * MIB)) ]
exec 7<&-
losetup -d "$device"
charge held off
is "without charging the total is the hard limit again" "$(ask_memory held/inner sysinfo 2)" $LIMIT

rmmod umacct
is "without umacct everybody hears the truth" "$(ask_memory held/inner sysinfo 2)" "$truth"
load umacct

done_testing
