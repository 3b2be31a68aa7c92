#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kernel's own users of the figures that a view changes get the truth, also in
# the context of a task that has a view.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it calls the kernel's functions from a test module"
needs_accounting
needs_kernel_alloc

LIMIT=$((64 * MIB))

ask_kernel() { # CGROUP: what a kernel function hears that a task of it calls
	# shellcheck disable=SC2016 # expands in the inner shell
	in_cgroup "$1" sh -c 'exec 3<>"$0" && echo memory >&3 && cat <&3' "$KERNEL_ALLOC" \
		>"$TEST_DIR/reply"
	reply="ok $(cat "$TEST_DIR/reply")"
}

total_of() { # CGROUP: what a task of it reads
	in_cgroup "$1" cat /proc/meminfo | awk '$1 == "MemTotal:" { print $2 * 1024 }'
}

cgroup_leaf neighbour
total=$(total_of neighbour)
cgroup_leaf viewed
limit viewed --hard $LIMIT --view
is "a task with a view asks, and hears its limit" "$(total_of viewed)" $LIMIT

ask_kernel viewed
is "the kernel asks in the context of a task with a view, and hears the machine's total" "$(reply_field total)" "$total"
check "what is free for the kernel is more than the limit" [ "$(reply_field free)" -gt $LIMIT ]
check "what is available for the kernel is more than the limit" [ "$(reply_field available)" -gt $LIMIT ]
is "the view was on while the kernel asked" "$(account viewed view)" true

done_testing
