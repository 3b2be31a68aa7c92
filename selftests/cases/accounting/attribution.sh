#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every byte is on the account of the cgroup and the process that asked for it,
# counted once there and once in each ancestor.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

# client PID KEY: what "umacct ps" says of a process.
client() {
	umacct ps --json | tr -d '\n' | tr '}' '\n' | grep "\"pid\" *: *$1 *[,}]*" | json_field "$2"
}

cgroup_make top
cgroup_leaf top/left
cgroup_leaf top/right
start_in top/left left
left_pid=$pid
start_in top/right right
right_pid=$pid

ask left alloc 4M 3
ask right alloc 1M 5
is "the cgroup left has the 12 MiB that its process took" "$(system_memory top/left)" $((12 * MIB))
is "the cgroup right has the 5 MiB that its process took" "$(system_memory top/right)" $((5 * MIB))
is "the parent has the 17 MiB of both" "$(system_memory top)" $((17 * MIB))
is "the parent has none of its own" "$(account top local)" 0
within "left's own usage is its pages and their metadata" "$(account top/left local)" \
	"$(with_metadata $((12 * MIB)) 3 1)" $((64 * KIB))
within "the parent's usage is the sum of both" "$(account top usage)" \
	"$(with_metadata $((17 * MIB)) 8 2)" $((64 * KIB))
is "the case's cgroup above has the 17 MiB, too" "$(system_memory "")" $((17 * MIB))

is "the process on the left has 12 MiB" "$(client "$left_pid" system)" $((12 * MIB))
is "the process on the right has 5 MiB" "$(client "$right_pid" system)" $((5 * MIB))
is "a process is listed by its name" "$(client "$right_pid" comm)" rmtool
is "a process is listed with its cgroup" "$(client "$right_pid" path)" "$(cgroup_path top/right)"

start_in top/left second
second_pid=$pid
ask second alloc 64K 16
is "two processes in one cgroup add up" "$(system_memory top/left)" $((13 * MIB))
is "the second process in a cgroup has its own 1 MiB" "$(client "$second_pid" system)" $MIB
is "the first process in a cgroup still has its own 12 MiB" "$(client "$left_pid" system)" $((12 * MIB))

ask left free 0
is "a free of 4 MiB leaves the cgroup 9 MiB" "$(system_memory top/left)" $((9 * MIB))
is "a free of 4 MiB leaves the process 8 MiB" "$(client "$left_pid" system)" $((8 * MIB))
within "a free leaves the peak as it was" "$(account top/left peak)" \
	"$(with_metadata $((13 * MIB)) 19 2)" $((64 * KIB))
within "the parent's peak is the highest sum" "$(account top peak)" \
	"$(with_metadata $((18 * MIB)) 24 3)" $((64 * KIB))
is "19 allocations on the left" "$(account top/left allocs)" 19
is "1 free on the left" "$(account top/left frees)" 1
is "24 allocations in the parent" "$(account top allocs)" 24

is "no failure is counted before the driver fails" "$(account top/left failures)" 0
ask second alloc 64M
is "an allocation that the driver can't make fails" "$(reply_field status)" $NO_MEMORY
is "a failure of the driver is counted for the cgroup" "$(account top/left failures)" 1
is "a failure of the driver is counted for the parent" "$(account top failures)" 1
is "a failure of the driver is no refusal" "$(account top/left refusals)" 0
is "an allocation that failed takes nothing" "$(system_memory top/left)" $((9 * MIB))

# The limit a process is under is where it is; what it took stays where it was.
cgroup_add top/right "$left_pid"
is "a process that moves leaves its memory behind" "$(system_memory top/left)" $((9 * MIB))
ask left alloc 4M
is "a process that moved takes new memory in the new place" "$(system_memory top/right)" $((9 * MIB))
is "what a process takes in the new place is not the old one's" "$(system_memory top/left)" $((9 * MIB))
ask left free 1
is "what a process frees of the old place goes from the old place" "$(system_memory top/left)" $((5 * MIB))
tell left exit
gone "$left_pid"
check "the exit of a process that moved frees in the left cgroup" eventually system_is top/left $MIB
check "the exit of a process that moved frees in the right cgroup" eventually system_is top/right $((5 * MIB))
# It was the first of its user's, and the driver keeps something for all of these.
is "a process that exited is listed no more, but for what others share with it" \
	"$(client "$left_pid" usage)" "$([ "$OBSERVED" ] || with_metadata 0 0 1)"

# Its parent is stopped and can't reap it; its child has the driver's file, too, and holds what
# it took.
is_exiting() { # PID
	[ "$(client "$1" exiting)" = true ]
}
# shellcheck disable=SC2016 # for the other shell
start_in top/right brief sh -c 'rmtool "$@" & kill -STOP $$' sh
parent_pid=$pid
ask brief alloc 2M
brief_pid=$(xargs <"/proc/$parent_pid/task/$parent_pid/children")
is "a process that goes on is not listed as exiting" "$(client "$brief_pid" exiting)" false
is "the list of cgroups has no process that is exiting before one is" \
	"$(umacct ls --json "$(cgroup_path top/right)" | json_field exiting)" 0
fifos heir
ask brief fork "$TEST_DIR/heir"
heir_pid=$(reply_field pid)
holders="$holders $brief_pid $heir_pid"
answer heir
kill -KILL "$brief_pid"
check "a process that was killed, but whose memory is held, is listed as exiting" \
	eventually is_exiting "$brief_pid"
is "the list of cgroups counts the process that is exiting" \
	"$(umacct ls --json "$(cgroup_path top/right)" | json_field exiting)" 1
kill -CONT "$parent_pid"
gone "$parent_pid"
eventually fails is_exiting "$brief_pid"
is "a process that was reaped is exiting no more" "$(client "$brief_pid" exiting)" false
is "the list of cgroups doesn't count a process that was reaped" \
	"$(umacct ls --json "$(cgroup_path top/right)" | json_field exiting)" 0
tell heir exit
gone "$heir_pid"

fifos child
ask right fork "$TEST_DIR/child"
child_pid=$(reply_field pid)
holders="$holders $child_pid"
answer child
tell right exit
gone "$right_pid"
is "a process that is gone but whose memory is held is still listed" \
	"$(client "$right_pid" system)" $((5 * MIB))
is "a process that is gone but whose memory is held is listed as exited" "$(client "$right_pid" exited)" true
tell child exit
gone "$child_pid"
check "the account is empty when the memory of a gone process is freed" eventually account_is top/right usage 0

tell second exit
gone "$second_pid"
check "nothing is left on the account at the end" eventually account_is top usage 0

done_testing
