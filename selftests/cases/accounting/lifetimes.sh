#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Memory is counted from the moment the driver takes it until the moment the driver
# gives it back, whichever way it comes to that; and for the one who asked for it,
# whoever frees it.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

M4=$((4 * MIB))
M16=$((16 * MIB))

begin() { # a new holder with 4 x 4 MiB in "owner"
	start_in owner holder
	owner_pid=$pid
	ask holder alloc 4M 4 || diag "$reply"
	is "$1: counted" "$(system_memory owner)" $M16
}

counted() { # DESCRIPTION BYTES
	check "$1" eventually system_is owner "$2"
}

cgroup_leaf owner
cgroup_leaf other

begin "explicit free"
ask holder free 2
is "explicit free: one less" "$(system_memory owner)" $((M16 - M4))
ask holder free all
is "explicit free: nothing left" "$(system_memory owner)" 0
ask holder alloc 64K 100
is "explicit free: allocations after it are counted again" "$(system_memory owner)" $((100 * 65536))
ask holder close
is "close without free: nothing left" "$(system_memory owner)" 0
tell holder exit
gone "$owner_pid"

begin "exit without free"
tell holder exit
check "exit without free: the process exits" gone "$owner_pid"
counted "exit without free: nothing left" 0

begin "crash"
tell holder crash
check "crash: the process crashes" gone "$owner_pid"
counted "crash: nothing left" 0

begin "SIGKILL"
kill -KILL "$owner_pid"
check "SIGKILL: the process dies" gone "$owner_pid"
counted "SIGKILL: nothing left" 0

begin "freed while mapped"
check "freed while mapped: an allocation is mapped" ask holder map 1
check "freed while mapped: all is freed" ask holder free all
is "freed while mapped: the mapped one is still counted" "$(system_memory owner)" $M4
ask holder unmap 1
is "freed while mapped: unmapped, it is still counted" "$(system_memory owner)" $M4
ask holder unmapclose 1
is "freed while mapped: closed, it is counted no more" "$(system_memory owner)" 0
tell holder exit
gone "$owner_pid"

begin "client closed while mapped"
ask holder map 0
ask holder unmapclose 0
is "client closed while mapped: the mapping alone changes nothing" "$(system_memory owner)" $M16
ask holder close
is "client closed while mapped: the mapped one is still counted" "$(system_memory owner)" $M4
tell holder exit
gone "$owner_pid"
counted "client closed while mapped: nothing left after the exit" 0

begin "killed while mapped"
ask holder map 3
kill -KILL "$owner_pid"
gone "$owner_pid"
counted "killed while mapped: nothing left" 0

begin "freed by a child"
fifos child
ask holder fork "$TEST_DIR/child"
child_pid=$(reply_field pid)
holders="$holders $child_pid"
answer child
cgroup_add other "$child_pid"
is "freed by a child: counted once" "$(system_memory owner)" $M16
check "freed by a child: the child frees from another cgroup" ask child free 0
is "freed by a child: the owner has one less" "$(system_memory owner)" $((M16 - M4))
is "freed by a child: the other cgroup has nothing" "$(system_memory other)" 0
tell holder exit
gone "$owner_pid"
is "freed by a child: what the child's file holds outlives the parent" "$(system_memory owner)" $((M16 - M4))
check "freed by a child: the child allocates" ask child alloc 4M
is "freed by a child: what the child allocates is its own cgroup's" "$(system_memory other)" $M4
is "freed by a child: what the child allocates is not its parent's" "$(system_memory owner)" $((M16 - M4))
tell child exit
gone "$child_pid"
counted "freed by a child: nothing left" 0
check "freed by a child: nothing left in the child's cgroup either" eventually system_is other 0

begin "passed on"
start_in other receiver
receiver_pid=$pid
ask receiver listen "$TEST_DIR/socket"
check "passed on: the file goes to another process" ask holder sendfd "$TEST_DIR/socket"
tell holder exit
gone "$owner_pid"
is "passed on: still counted while nobody has the file" "$(system_memory owner)" $M16
check "passed on: the other process takes the file" ask receiver recvfd
check "passed on: the other process frees with the file" ask receiver free 3
is "passed on: the first owner has one less" "$(system_memory owner)" $((M16 - M4))
is "passed on: the other owns nothing" "$(system_memory other)" 0
tell receiver exit
gone "$receiver_pid"
counted "passed on: nothing left" 0

begin "lost on the way"
rm -f "$TEST_DIR/socket"
start_in other receiver
receiver_pid=$pid
ask receiver listen "$TEST_DIR/socket"
ask holder sendfd "$TEST_DIR/socket"
tell holder exit
gone "$owner_pid"
is "lost on the way: counted while it lies in the socket" "$(system_memory owner)" $M16
kill -KILL "$receiver_pid"
gone "$receiver_pid"
counted "lost on the way: nothing left when the socket is closed" 0

is "the account has as many frees as allocations" "$(account owner frees)" "$(account owner allocs)"
is "no record was lost in any of these ways" "$(status_field untracked)" 0

done_testing
