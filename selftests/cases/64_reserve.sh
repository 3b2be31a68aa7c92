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
check "the driver itself is not refused" ask holder kernel thread alloc 1024 4096 1 4
check "nothing that was held was touched" usage_is leaf $((given * MIB))
check "the reserve is switched off" umacct reserve off
check "and there is more" ask holder alloc 4M 4

done_testing
