#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A processor goes offline with records of managed memory in its stock, and comes back: what was
# taken there is freed elsewhere, and every figure stays right.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it takes a processor offline"
needs_accounting
needs_uvm

CPU=/sys/devices/system/cpu/cpu1
[ -e "$CPU/online" ] || skip_all "the machine has no second processor that can go offline"
complaints=$(kernel_complaints)
records=$(status_field records)

managed() { account leaf managed; }

cgroup_leaf leaf
start_in leaf holder uvmtool
holder=$pid
ask holder open
ask holder map 64M
is "the holder runs on the second processor alone" "$(taskset -p 2 "$holder" >/dev/null && taskset -p "$holder" | sed 's/.*: //')" 2
ask holder touch 32M
is "32 MiB of managed memory that were touched there are counted" "$(managed)" $((32 * MIB))
# What is freed there fills the processor's stock.
start_in leaf second uvmtool
second=$pid
taskset -p 2 "$second" >/dev/null
ask second open
ask second map 8M
ask second touch
kill -KILL "$second"
gone "$second"
check "what a second program took there goes with it" eventually account_is leaf managed $((32 * MIB))

check "the second processor goes offline" sh -c "echo 0 >$CPU/online"
is "what was taken on a processor that is offline stays counted" "$(managed)" $((32 * MIB))
ask holder touch
is "what is touched elsewhere is counted beside it" "$(managed)" $((64 * MIB))
check "the second processor comes back" sh -c "echo 1 >$CPU/online"
taskset -p 2 "$holder" >/dev/null
ask holder unmap
check "what was taken on both is freed on the one that came back" eventually account_is leaf managed 0
ask holder map 16M
ask holder touch
is "what is touched there then is counted" "$(managed)" $((16 * MIB))
kill -KILL "$holder"
gone "$holder"
check "nothing is counted after the exit" eventually account_is leaf managed 0
check "no record is left" eventually status_is records "$records"
check "umacct is unloaded with all of its records" rmmod umacct
is "the kernel does not complain" "$(kernel_complaints)" "$complaints"
load umacct

done_testing
