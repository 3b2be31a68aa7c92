#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Where page cache fills the memory, a view reports as free what the driver could really
# get, and everything that is combined with it still adds up; for one cgroup or for
# everybody, with a reserve and without.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills the machine's page cache"
needs_accounting

LOOP=/dev/loop0
[ -b $LOOP ] || skip_all "no loop device"

meminfo_of() { # CGROUP KEY
	in_cgroup "$1" cat /proc/meminfo | awk -v key="$2:" '$1 == key { print $2 * 1024 }'
}

# What could be had, by the kernel's own account: from where no view is. What a driver keeps in
# its pools could be had as well, and is in the account when it has been given back.
obtainable() {
	give_back_pools
	in_cgroup truth cat /proc/meminfo | available_of
}

# About two per cent of the machine: free pages come and go.
near() { # DESCRIPTION GOT WANTED
	within "$1" "$2" "$3" $(($(meminfo_of truth MemTotal) / 40 + KEPT_FOR_DEBUGGING))
}

# busybox's and procps's free: total, used, free, shared, buff/cache, available.
told() { # CGROUP free|procps-free COLUMN
	in_cgroup "$1" "$2" -b | awk -v column="$3" '$1 == "Mem:" { print $(column + 1) }'
}

cgroup_leaf truth
cgroup_leaf viewed

# A file of zeros that takes no memory itself; what is read of it is page cache, for as
# long as somebody has the device open.
truncate -s 8G "$TEST_DIR/zeros"
losetup $LOOP "$TEST_DIR/zeros"
exec 5<$LOOP
for _ in $(seq 100); do
	[ "$(meminfo_of truth MemFree)" -gt $((200 * MIB)) ] || break
	dd of=/dev/null bs=1M count=64 <&5 2>/dev/null
done
check "page cache fills the machine's memory" [ "$(meminfo_of truth MemFree)" -lt $((250 * MIB)) ]
check "the page cache could nearly all be had" [ "$(obtainable)" -gt $((1000 * MIB)) ]

umacct view "$(cgroup_path viewed)" on >/dev/null
near "free is in a view what could be had" "$(meminfo_of viewed MemFree)" "$(obtainable)"
near "free is in a view what is available" "$(meminfo_of viewed MemFree)" "$(meminfo_of viewed MemAvailable)"
near "free is in a view by sysinfo what could be had" "$(in_cgroup viewed meminfo | awk '$1 == "sysinfo" { print $3 }')" "$(obtainable)"
near "free is in a view by the node's meminfo what could be had" "$(in_cgroup viewed meminfo | awk '$1 == "node0" { print $3 }')" "$(obtainable)"
check "a neighbour without a view is told the truth" [ "$(meminfo_of truth MemFree)" -lt $((300 * MIB)) ]
for free in free procps-free; do
	near "$free: free" "$(told viewed $free 3)" "$(obtainable)"
	check "$free: used is no more than what can't be had" [ "$(told viewed $free 2)" -le \
		$(($(meminfo_of truth MemTotal) - $(obtainable) + 50 * MIB)) ]
done
near "free: used, free and cache are the total" \
	$(($(told viewed free 2) + $(told viewed free 3) + $(told viewed free 5))) \
	"$(meminfo_of truth MemTotal)"
start_in viewed holder
ask holder open
portion=$(($(meminfo_of viewed MemFree) * 9 / 10 / (64 * KIB)))
check "a program that takes nine tenths of what its view says has it" ask holder alloc 64K $portion
diag "$reply"
ask holder free all
settle_counters

umacct reserve 256M >/dev/null
near "a reserve is not free in a view" "$(meminfo_of viewed MemFree)" $(($(obtainable) - 256 * MIB))
umacct reserve off >/dev/null
limit viewed --hard 128M
# What the driver keeps of the process that holds nothing is metadata, and is used.
used=$((($(account viewed usage) + PAGE - 1) / PAGE * PAGE))
is "with a limit, free is in a view what is left of the limit" "$(meminfo_of viewed MemFree)" $((128 * MIB - used))
is "with a limit, nothing is cache in a view" "$(meminfo_of viewed Cached)" 0
is "busybox's free: as much is used as the account holds" "$(told viewed free 2)" $used
limit viewed --hard max
umacct view "$(cgroup_path viewed)" off >/dev/null

could_be_had=$(obtainable)
check "a view for everybody" umacct view on
near "with a view for everybody, everybody is told what could be had" "$(meminfo_of truth MemFree)" "$could_be_had"
check "the view for everybody is listed" sh -c 'umacct view --no-header | grep -q "^/ "'
umacct view off
check "without the view for everybody, the truth is told again" \
	[ "$(meminfo_of truth MemFree)" -ne "$(meminfo_of truth MemAvailable)" ]
exec 5<&-
losetup -d $LOOP

done_testing
