#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# umacct is unloaded and loaded while the driver allocates and frees all the time:
# no call is lost, none returns into text that is gone, and no memory leaks.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting
needs_uvm

complaints=$(kernel_complaints)
memory_before=$(unowned)

cgroup_leaf leaf
for i in 1 2 3 4; do
	start_in leaf "churner$i"
	tell "churner$i" churn $((4 << (i * 2)))K
done
start_in leaf forker sh -c 'while :; do rmtool "alloc 64K 8" "free 2" >/dev/null; done'
start_in leaf manager sh -c 'while :; do uvmtool open "map 8M" touch >/dev/null; done'

cycles=0
while [ $cycles -lt 25 ] && rmmod umacct && load umacct; do
	cycles=$((cycles + 1))
done
is "25 times unloaded and loaded under load" $cycles 25
alive=0
for pid in $holders; do
	process_is_gone "$pid" || alive=$((alive + 1))
done
is "every process still runs" $alive 6

cycles=0
while [ $cycles -lt 30 ] && umacct --json >/dev/null && umacct ls --json >/dev/null; do
	cycles=$((cycles + 1))
done
is "30 times read under load" $cycles 30

# One that sleeps in a function of ours: its text has to stay until it has left.
cgroup_leaf throttled
limit throttled --soft 1M --throttle 2s
start_in throttled sleeper
ask sleeper open
before=$(now_ms)
tell sleeper alloc 4M
sleep 0.5
check "umacct is unloaded while a task sleeps in it" rmmod umacct
took=$(($(now_ms) - before))
diag "it took until $took ms after the task was told to allocate"
check "not before the task has left" [ $took -ge 1800 ]
check "and the task goes on" answer sleeper
tell sleeper exit
load umacct

echo 1 >"$(cgroup_dir leaf)/cgroup.kill"
for pid in $holders; do
	gone "$pid"
done
check "nothing is left on the account" eventually usage_is leaf 0
settles "nor in the machine" 0 $MIB unowned_since "$memory_before"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
