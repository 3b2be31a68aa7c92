#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The reserve keeps the machine alive: what would push MemAvailable under it is
# refused, for everybody but the driver itself.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it fills the machine's memory"
needs_accounting
needs_kernel_alloc

cgroup_leaf leaf
start_in leaf holder
ask holder open
reserve=$(($(available) - 64 * MIB))
check "a reserve of 64 MiB less than there is" umacct reserve "$reserve"
is "reads back" "$(status_field reserve)" "$reserve"
ask holder fill 1M
given=$(reply_field count)
is "an allocation is refused at last" "$(reply_field status)" $NO_MEMORY
within "after the 64 MiB" "$given" 64 8
check "what is available is not under the reserve" [ "$(available)" -ge $((reserve - MIB)) ]
check "it is counted" [ "$(status_field reserve_count)" -ge 1 ]
is "for the cgroup too" "$(account leaf reserve_count)" 1
check "the driver itself is not refused" ask holder kernel thread alloc $((4 * MIB / PAGE)) $PAGE 1 4
check "nothing that was held was touched" system_is leaf $((given * MIB))
check "the reserve is switched off" umacct reserve off
check "and there is more" ask holder alloc 4M 4
ask holder free all

# What somebody else has been promised, and has not taken yet, is not there any more.
start guard rmtool
start_in leaf first
start_in leaf second
umacct reserve $(($(available) - 300 * MIB))
check "who was let in sleeps in the driver" ask guard kernel hold nvidia:nv_alloc_system_pages
tell first kernel alloc $((160 * MIB / PAGE)) $PAGE 0
first_sleeps() {
	grep -qs held_call /proc/[0-9]*/stack
}
check "with 160 MiB of 300" eventually first_sleeps
ask second kernel alloc $((160 * MIB / PAGE)) $PAGE 0
is "another's 160 MiB are refused" "$(reply_field status)" $NO_MEMORY
ask guard kernel release
check "the first one has them" answer first
ask first kernel free
check "and when they are back, the other" ask second kernel alloc $((160 * MIB / PAGE)) $PAGE 0
is "all of it" "$(reply_field status)" 0x0
umacct reserve off

done_testing
