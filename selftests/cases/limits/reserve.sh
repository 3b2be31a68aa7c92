#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The reserve keeps the machine alive: what would push MemAvailable under it is
# refused, for everybody but the driver itself.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills the machine's memory"
needs_accounting
needs_kernel_alloc

short_lists
cgroup_leaf leaf
start_in leaf holder
ask holder open
reserve=$(($(available) - 64 * MIB))
check "a reserve of 64 MiB less than what is available is set" umacct reserve "$reserve"
is "the reserve reads back" "$(status_field reserve)" "$reserve"
ask holder fill 2M
given=$(reply_field count)
is "an allocation that would go under the reserve is refused" "$(reply_field status)" $NO_MEMORY
within "the reserve lets the 64 MiB through that are above it" "$given" 32 4
check "what is available is not under the reserve" [ "$(available)" -ge $((reserve - 4 * MIB)) ]
check "the refusal is counted for the machine" [ "$(status_field reserve_count)" -ge 1 ]
is "the refusal is counted for the cgroup" "$(account leaf reserve_count)" 1
check "the driver itself is not refused" ask holder kernel thread alloc $((4 * MIB / PAGE)) $PAGE 1 4
check "nothing that was held is touched by the reserve" system_is leaf $((given * 2 * MIB))

# With nothing left above the reserve, what is small still goes on, down to half of it.
cgroup_leaf other
check "another user opens the driver, below the reserve" in_cgroup other runas $UNPRIVILEGED rmtool open
start_in other other
check "another cgroup makes 64 objects of 64 KiB below the reserve" ask other alloc 64K 64
check "another cgroup gets 16 times 1 MiB below the reserve" ask other alloc 1M 16
refusals=$(account other refusals)
check "another cgroup gets no 2 MiB below the reserve" fails ask other alloc 2M
is "the 2 MiB below the reserve are a refusal" "$(account other refusals)" $((refusals + 1))
ask other free all
umacct reserve $(($(available) + 16 * MIB))
ask other fill 1M
is "what is small is refused below half of the reserve" "$(reply_field status)" $NO_MEMORY
within "what is small comes down to half of the reserve" "$(available)" \
	$(($(status_field reserve) / 2)) $((8 * MIB))
ask other free all
tell other exit
gone "$pid"
check "the reserve is switched off" umacct reserve off
check "without the reserve there is more" ask holder alloc 4M 4
ask holder free all

# What somebody else has been promised, and has not taken yet, is not there any more.
start guard rmtool
start_in leaf first
start_in leaf second
umacct reserve $(($(available) - 300 * MIB))
check "a task is to sleep in the driver, let in by the reserve" ask guard kernel hold nvidia:nv_alloc_system_pages
tell first kernel alloc $((160 * MIB / PAGE)) $PAGE 0
first_sleeps() {
	grep -qs held_call /proc/[0-9]*/stack
}
check "the task let in sleeps with 160 MiB of 300" eventually first_sleeps
ask second kernel alloc $((160 * MIB / PAGE)) $PAGE 0
is "another task's 160 MiB are refused while the first is in the driver" "$(reply_field status)" $NO_MEMORY
ask guard kernel release
check "the task let in gets its 160 MiB" answer first
ask first kernel free
check "the other task is answered when the 160 MiB are back" ask second kernel alloc $((160 * MIB / PAGE)) $PAGE 0
is "the other task gets its 160 MiB when they are back" "$(reply_field status)" 0x0
umacct reserve off

done_testing
