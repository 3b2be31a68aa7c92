#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Managed memory (nvidia-uvm) is charged by the kernel already: umacct shows it
# apart, byte for byte, and never adds it to the usage.

. "$(dirname "$0")/../lib/helpers.sh"
needs_accounting
needs_uvm

managed() { account "$1" managed; }

cgroup_make top
cgroup_leaf top/leaf
start_in top/leaf holder uvmtool
holder_pid=$pid
ask holder open
ask holder map 64M
is "mapped but untouched, it takes nothing" "$(managed top/leaf)" 0
before=$(cgroup_read top/leaf memory.current)
ask holder touch 32M
is "32 MiB touched" "$(managed top/leaf)" $((32 * MIB))
ask holder touch
is "64 MiB touched" "$(managed top/leaf)" $((64 * MIB))
is "the parent has them too" "$(managed top)" $((64 * MIB))
is "they are no usage" "$(system_memory top/leaf)" 0
check "they are listed under the process's name" \
	sh -c "umacct ps --json | grep -Eq '\"comm\" *: *\"uvmtool\"'"
within "the kernel has charged as much" \
	$(($(cgroup_read top/leaf memory.current) - before)) $((64 * MIB)) $((2 * MIB))

start_in top/leaf second uvmtool
second_pid=$pid
ask second open
ask second map 16M
ask second touch
is "a second process adds its own" "$(managed top/leaf)" $((80 * MIB))
ask holder unmap
check "unmapping takes away the first's" eventually account_is top/leaf managed $((16 * MIB))
kill -KILL "$second_pid"
gone "$second_pid"
check "death takes away the second's" eventually account_is top/leaf managed 0

cgroup_leaf top/gone
start_in top/gone third uvmtool
third_pid=$pid
ask third open
ask third map 16M
ask third touch
cgroup_add top/leaf "$pid"
rmdir "$(cgroup_dir top/gone)"
is "a removed cgroup's are its parent's" "$(managed top)" $((16 * MIB))
ask third unmap
check "until they are unmapped" eventually account_is top managed 0

start_in top/leaf native
check "somebody takes memory of the driver's own" ask native open
check "8 MiB" ask native alloc 1M 8
kill -KILL "$holder_pid" "$third_pid"
check "nvidia-uvm goes" eventually rmmod nvidia_uvm
is "what the driver itself holds counts on" "$(system_memory top/leaf)" $((8 * MIB))
ask native free all
is "until it is freed" "$(system_memory top/leaf)" 0
check "nvidia-uvm comes back" load_uvm

done_testing
