#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot: cma=256M
#
# Free pages that are kept for devices (CMA) are no pages for the driver, whose own
# can't be moved: the reserve doesn't count them as available.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it has a machine booted for it"
needs_accounting

meminfo() { # KEY
	awk -v key="$1:" '$1 == key { print $2 * 1024 }' /proc/meminfo
}

cma=$(meminfo CmaFree)
[ "${cma:-0}" -gt $((128 * MIB)) ] || skip_all "this kernel sets no memory aside for CMA"
diag "$((cma / MIB)) MiB of CMA are free"

cgroup_leaf leaf
start_in leaf holder
ask holder open
umacct reserve $(($(meminfo MemAvailable) - cma - 64 * MIB))
ask holder fill 1M
is "an allocation is refused at last" "$(reply_field status)" $NO_MEMORY
within "after the 64 MiB that are there for the driver" "$(reply_field count)" 64 8
umacct reserve off

done_testing
