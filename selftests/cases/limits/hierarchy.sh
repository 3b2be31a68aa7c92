#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A limit binds the sum of everything below it; limits may be set before there is
# memory, under what is held already, and vanish with their cgroup or the module.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it unloads umacct"
needs_accounting
needs_kernel_alloc

cgroup_make parent
cgroup_leaf parent/a
cgroup_leaf parent/b
# One child has more of the objects than the other, and so more lots.
hard=$(($(with_metadata $((8 * MIB)) 8 2) + 64 * KIB))
hard_of_a=$(with_metadata $((6 * MIB)) 6 1)
check "a limit is set on a cgroup that has no memory yet" limit parent --hard "$hard"
limit parent/a --hard "$hard_of_a"
start_in parent/a a
a_pid=$pid
start_in parent/b b

ask a fill 1M
is "the child a is held by its own limit" "$(reply_field count)" 6
ask b fill 1M
is "the child b is held by what is left of the parent's" "$(reply_field count)" 2
within "the parent is full at its limit" "$(account parent usage)" "$hard" $((128 * KIB))
is "the limit of a refused once" "$(account parent/a local_hard_count)" 1
is "the parent's limit refused once, for b" "$(account parent local_hard_count)" 1
is "the child b has no limit of its own" "$(account parent/b hard)" null
is "the effective limit of b is the parent's" "$(account parent/b effective)" "$hard"
is "the effective limit of a is its own" "$(account parent/a effective)" "$hard_of_a"
ask a free 0
ask b alloc 1M
is "what a gives back, b gets" "${reply%% *}" ok

check "a limit below what is held is accepted" limit parent --hard "$(with_metadata $((4 * MIB)) 19 2)"
is "a limit below what is held takes nothing away" "$(system_memory parent)" $((8 * MIB))
ask b alloc 4K
is "a limit below what is held gives no more" "$(reply_field status)" $NO_MEMORY
ask a free all
is "a free leaves 3 MiB below the limit of 4" "$(system_memory parent)" $((3 * MIB))
ask b fill 64K
within "there is room again for 1 MiB below the limit" "$(reply_field count)" 16 2
ask a alloc 128K
check "there is no room for more than 1 MiB below the limit" lacks_memory "$(reply_field status)"

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
check "a task is to sleep before it sets a limit" ask guard kernel hold umacct:umacct_settings_change
umacct limit "$(cgroup_path parent/a)" --hard 1M >/dev/null 2>"$TEST_DIR/err" &
setter=$!
setter_sleeps() {
	grep -q held_call "/proc/$setter/stack"
}
check "the task sleeps before it sets a limit" eventually setter_sleeps
rmdir "$(cgroup_dir parent/a)"
ask guard kernel release
wait "$setter"
is "who sets the limit of a cgroup that was removed meanwhile is refused" $? 1
check "who sets the limit of a cgroup that was removed meanwhile is told why" grep -q 'was just removed' "$TEST_DIR/err"
diag "$(cat "$TEST_DIR/err")"
tell guard exit

hard_of_b=$(with_metadata $MIB 1 1)
limit parent/b --hard "$hard_of_b"
ask b fill 1M
is "the limit of b binds" "$(reply_field count)" 1

# One that has taken memory while a limit was elsewhere alone.
cgroup_make late
cgroup_leaf late/leaf
start_in late/leaf free
check "a cgroup without a limit above is let through" ask free alloc 1M 4
limit late --hard 4M
check "a limit that is set above a cgroup binds at once" fails ask free alloc 1M
limit late/leaf --hard 4M
is "of equal limits the highest counts" "$(account late/leaf effective_id)" "$(cgroup_id late)"
limit late/leaf --hard max
limit late --hard max
check "a limit that is lifted above a cgroup binds no more" ask free alloc 1M
tell free exit
gone "$pid"

ask b close
check "the driver is unloaded beside the limit" unload_driver
check "the driver is loaded beside the limit" load_driver
is "the limit outlives the driver" "$(account parent/b hard)" "$hard_of_b"
ask b fill 1M
is "the limit holds with the driver that came" "$(reply_field count)" 1

rmmod umacct
ask b alloc 4M
is "without umacct nothing is refused" "${reply%% *}" ok
load umacct
ask b alloc 4M
is "no limit comes back with umacct" "${reply%% *}" ok

done_testing
