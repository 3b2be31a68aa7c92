#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: mitigations=auto
# cell: *-550
#
# The other machines boot without mitigations, which makes emulation faster. With them, returns and
# indirect branches take other ways, and umacct's own assembly has to go along: by direct calls, and by
# kprobes.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has a kernel booted for it"
needs_accounting
needs_uvm

complaints=$(kernel_complaints)
check "the kernel mitigates indirect branches" \
	grep -q '^Mitigation' /sys/devices/system/cpu/vulnerabilities/spectre_v2
diag "$(grep . /sys/devices/system/cpu/vulnerabilities/* | sed 's/.*\///' | grep Mitigation | tr '\n' ' ')"

cgroup_leaf leaf
for direct_calls in 1 0; do
	way="with direct_calls=$direct_calls"
	rmmod umacct
	check "$way umacct loads" insmod "$MODULES/umacct.ko" direct_calls=$direct_calls
	start_in leaf holder
	limit leaf --hard "$(with_metadata $((16 * MIB)) 4 1)"
	quiesce
	before=$(unowned)
	check "$way 16 MiB fit below the limit" ask holder alloc 4M 4
	settles "$way 16 MiB are gone, by MemFree" $((16 * MIB)) $((MIB / 2)) unowned_since "$before"
	check "$way a page more is refused" fails ask holder alloc 4K
	ask holder free all
	tell holder exit
	gone "$pid"
	limit leaf --hard max
	start_in leaf manager uvmtool
	ask manager open
	ask manager map 4M
	ask manager touch
	is "$way 4 MiB of managed memory count" "$(account leaf managed)" $((4 * MIB))
	limit leaf --hard 1G --view
	is "$way the view has the limit" "$(in_cgroup leaf meminfo | awk '$1 == "sysinfo" { print $2 }')" \
		$((1024 * MIB))
	limit leaf --hard max --no-view
	tell manager exit
	gone "$pid"
done
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
