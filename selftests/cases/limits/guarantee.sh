#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A guarantee: what a cgroup has not used of it nobody else gets from the driver, however much
# they ask for; and it gets it, with or without a reserve.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills the machine's memory"
needs_accounting

GUARANTEE=$((32 * MIB))

cgroup_make tenants
cgroup_leaf tenants/guest
cgroup_make servers
cgroup_leaf servers/server
start_in tenants/guest guest
start_in servers/server server
ask guest open
ask server open

check "a guarantee of 32 MiB is taken" limit servers --keep 32M
is "the guarantee reads back" "$(account servers keep)" $GUARANTEE
is "all of the guarantee that is not used is kept" "$(status_field kept)" \
	$((GUARANTEE - $(account servers usage)))
fails umacct limit "$(cgroup_path servers/server)" --keep 1M 2>"$TEST_DIR/said"
check "a guarantee within another is refused" grep -q 'do not nest' "$TEST_DIR/said"
fails umacct limit "$(cgroup_path tenants)" --keep 100% 2>"$TEST_DIR/said"
check "guarantees that the machine can't keep are refused" \
	grep -q "exceed the machine's memory" "$TEST_DIR/said"
check "the refusal says what others are guaranteed" grep -q 'others are guaranteed 32.00 MiB' "$TEST_DIR/said"

fails umacct reserve 100% 2>"$TEST_DIR/said"
check "a reserve that guarantees leave no room for is refused" \
	grep -q "exceed the machine's memory" "$TEST_DIR/said"

# Without a reserve: the guest takes all that it can, and what is kept is still there. Where memory is
# in pieces, large blocks end before it does.
ask guest fill 1M
ask guest fill 64K
check "a guest that takes all it can is refused at last" lacks_memory "$(reply_field status)"
check "what is kept is still available when the guest is refused" [ "$(available)" -ge $((GUARANTEE - 12 * MIB)) ]
check "preflight says that a guarantee is in the way" sh -c \
	"$(command -v umacct) preflight 16M | grep -q 'what guarantees keep for others'"

# The server sleeps and wakes, and the guest goes on asking: pages go and come. What is guaranteed
# are bytes: in blocks this small, pieces that others left do not hinder.
tell guest insist 256K 1000000
refused=0
round=0
while [ $round -lt 100 ]; do
	ask server alloc 64K 450 || {
		refused=$((refused + 1))
		diag "round $round: $reply; available $(available), failed $(account servers failed)"
	}
	ask server free all
	round=$((round + 1))
done
is "of 100 times that the server wakes, none is refused" $refused 0
is "the server's account counts no refusal" "$(account servers refusals)" 0

# Free pages in the processors' lists, which MemAvailable leaves out, are there for it, too.
ask server fill 64K
diag "$reply; usage $(account servers usage), available $(available)"
check "the server has its guarantee to the last blocks of 64 KiB" \
	[ "$(account servers usage)" -ge $((GUARANTEE - 256 * KIB)) ]
ask server free all

ask server alloc 64K 450
is "what the server uses of its guarantee is not kept any more" "$(status_field kept)" $((GUARANTEE - $(account servers usage)))
check "the guarantee is taken back" limit servers --keep off
is "nothing is kept when the guarantee is taken back" "$(status_field kept)" 0

done_testing
