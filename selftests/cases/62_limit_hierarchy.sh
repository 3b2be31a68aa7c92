#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A limit binds the sum of everything below it; limits may be set before there is
# memory, under what is held already, and vanish with their cgroup or the module.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it unloads umacct"
needs_accounting
needs_kernel_alloc

cgroup_make parent
cgroup_leaf parent/a
cgroup_leaf parent/b
hard=$(with_metadata $((8 * MIB)) 8 2)
hard_of_a=$(with_metadata $((6 * MIB)) 6 1)
check "a limit on a cgroup that has no memory yet" limit parent --hard "$hard"
limit parent/a --hard "$hard_of_a"
start_in parent/a a
a_pid=$pid
start_in parent/b b

ask a fill 1M
is "a is held by its own limit" "$(reply_field count)" 6
ask b fill 1M
is "b by what is left of the parent's" "$(reply_field count)" 2
is "the parent is full" "$(account parent usage)" "$hard"
is "a's limit refused once" "$(account parent/a local_hard_count)" 1
is "the parent's once, for b" "$(account parent local_hard_count)" 1
is "b has none" "$(account parent/b hard)" null
is "b's effective limit is the parent's" "$(account parent/b effective)" "$hard"
is "a's is its own" "$(account parent/a effective)" "$hard_of_a"
ask a free 0
ask b alloc 1M
is "what a gives back, b may have" "${reply%% *}" ok

check "a limit below what is held is accepted" limit parent --hard "$(with_metadata $((4 * MIB)) 19 2)"
is "and takes nothing away" "$(system_memory parent)" $((8 * MIB))
ask b alloc 4K
is "but gives no more" "$(reply_field status)" $NO_MEMORY
ask a free all
is "with 3 of 4 MiB held" "$(system_memory parent)" $((3 * MIB))
ask b fill 64K
is "there is room again, for 1 MiB" "$(reply_field count)" 16
ask a alloc 4K
is "and no more" "$(reply_field status)" $NO_MEMORY

limit parent --hard max
ask b free all
limit parent/a --hard 1M
ask a alloc 1M
tell a exit
gone "$a_pid"
rmdir "$(cgroup_dir parent/a)"
cgroup_leaf parent/a
is "a new cgroup of the same name has no limit" "$(account parent/a hard)" null

# One that goes while somebody sets its limit: after he has found it, before he changes it.
start guard rmtool
check "who sets a limit sleeps before he does" ask guard kernel hold umacct:limit_set
umacct limit "$(cgroup_path parent/a)" --hard 1M >/dev/null 2>"$TEST_DIR/err" &
setter=$!
setter_sleeps() {
	grep -q held_call "/proc/$setter/stack"
}
check "he comes" eventually setter_sleeps
rmdir "$(cgroup_dir parent/a)"
ask guard kernel release
wait "$setter"
is "he is told that he was too late" $? 1
check "and why" grep -q 'was removed meanwhile' "$TEST_DIR/err"
diag "$(cat "$TEST_DIR/err")"
tell guard exit

hard_of_b=$(with_metadata $MIB 1 1)
limit parent/b --hard "$hard_of_b"
ask b fill 1M
is "b is held" "$(reply_field count)" 1

# One that has taken memory while a limit was elsewhere alone.
cgroup_make late
cgroup_leaf late/leaf
start_in late/leaf free
check "without a limit there is none" ask free alloc 1M 4
limit late --hard 4M
check "one above it binds at once" fails ask free alloc 1M
limit late/leaf --hard 4M
is "of equal limits the highest counts" "$(account late/leaf effective_id)" "$(cgroup_id late)"
limit late/leaf --hard max
limit late --hard max
check "and lifted it doesn't" ask free alloc 1M
tell free exit

ask b close
check "the driver is unloaded" unload_driver
check "and loaded" load_driver
is "the limit outlives that" "$(account parent/b hard)" "$hard_of_b"
ask b fill 1M
is "and holds" "$(reply_field count)" 1

rmmod umacct
ask b alloc 4M
is "without umacct nothing is refused" "${reply%% *}" ok
load umacct
ask b alloc 4M
is "and no limit comes back with it" "${reply%% *}" ok

done_testing
