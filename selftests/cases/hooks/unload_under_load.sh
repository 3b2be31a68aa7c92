#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# long: also
#
# umacct is unloaded and loaded while the driver allocates and frees all the time:
# no call is lost, none returns into text that is gone, and no memory leaks.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting
needs_uvm
needs_kernel_alloc

complaints=$(kernel_complaints)
quiesce
memory_before=$(unowned)

cgroup_leaf leaf
for i in 1 2 3 4; do
	start_in leaf "churner$i"
	tell "churner$i" churn $((4 << (i * 2)))K
done
start_in leaf forker sh -c 'while :; do rmtool "alloc 64K 8" "free 2" >/dev/null; done'
start_in leaf manager sh -c 'while :; do uvmtool open "map 8M" touch >/dev/null; done'

# The storm "reload" does it as often as its time allows, every day.
many=3
[ -z "${CASE_LONG-}" ] || many=10
cycles=0
while [ $cycles -lt $many ] && rmmod umacct && load umacct; do
	cycles=$((cycles + 1))
done
is "$many times unloaded and loaded under load" $cycles $many
alive=0
for pid in $holders; do
	process_is_gone "$pid" || alive=$((alive + 1))
done
is "every process still runs after $many unloads" $alive 6

cycles=0
while [ $cycles -lt 30 ] && umacct --json >/dev/null && umacct ls --json >/dev/null; do
	cycles=$((cycles + 1))
done
is "30 times read under load" $cycles 30

# One that sleeps inside the driver, called by a function of ours: its text has to stay
# until it has left, however long that takes.
waits() {
	dmesg | grep -c 'waiting for callers of nvidia:nv_alloc_pages'
}
says_whom_it_waits_for() {
	[ "$(waits)" -gt "$waits_before" ]
}
cgroup_leaf asleep
start_in asleep sleeper
ask sleeper open
start_in asleep guard
waits_before=$(waits)
check "a task is to sleep in the driver" ask guard kernel hold nvidia:nv_alloc_contig_pages
tell sleeper alloc 4M
somebody_sleeps() {
	grep -qs held_call /proc/[0-9]*/stack
}
check "a task sleeps in the driver" eventually somebody_sleeps
rmmod umacct &
unloading=$!
check "unloading says that it waits for the task" eventually says_whom_it_waits_for
check "unloading isn't done while the task sleeps" [ -d /sys/module/umacct ]
runas $UNPRIVILEGED umacct --json >/dev/null 2>&1 &
asking=$!
check "nobody who asks for the status has to wait for the unloading" eventually process_is_gone "$asking"
ask guard kernel release
wait "$unloading"
is "unloading ends when the task is through" $? 0
check "the task that slept has its memory" answer sleeper
check "the task that slept goes on" ask sleeper alloc 4M
tell sleeper exit
check "umacct is loaded after it waited" load umacct

# A tenant can sleep in an ioctl for as long as he likes, on a page that another process is to
# fill in, and on his way back after he went above a soft limit.
limit asleep --soft 4K --throttle 2s
start_in asleep staller
staller=$pid
tell staller stall
stalls() {
	grep -qs handle_userfault "/proc/$staller/stack"
}
check "a tenant sleeps in the driver's ioctl" eventually stalls
start_in asleep keeper
keeper=$pid
ask keeper open
tell keeper kernel keep 16 4096 0
keeps() {
	grep -qs holder_write "/proc/$keeper/stack"
}
check "another task sleeps before its throttle" eventually keeps
rmmod umacct &
unloading=$!
check "umacct is unloaded while both sleep" eventually process_is_gone "$unloading"
ask guard kernel release
check "the task that has no throttle to wait for any more goes on" answer keeper
check "the task whose throttle is gone allocates" ask keeper alloc 64K
kill -KILL "$staller"
wait "$unloading"
is "rmmod says that all is well beside tasks that sleep" $? 0
tell keeper exit
tell guard exit
gone "$staller"
check "umacct is loaded once more" load umacct

echo 1 >"$(cgroup_dir leaf)/cgroup.kill"
for pid in $holders; do
	gone "$pid"
done
check "nothing is left on the account" eventually system_is leaf 0
settles "nothing is left in the machine's memory" 0 $MIB unowned_since "$memory_before"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
