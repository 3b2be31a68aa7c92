#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Whatever is sent to the netlink family, nothing breaks and nothing changes.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

complaints=$(kernel_complaints)

# One process that has taken memory in each of more cgroups than one message holds.
cgroup_leaf home
start_in home holder
for i in $(seq 150); do
	cgroup_leaf "crowd$i"
	cgroup_add "crowd$i" "$pid"
	ask holder alloc 4K
done
is "150 cgroups hold one page each" "$(system_memory "")" $((150 * PAGE))

nltest root >"$TEST_DIR/out" 2>&1
check "bad requests are refused with a reason, and change nothing" [ $? -eq 0 ]
sed 's/^/# /' "$TEST_DIR/out"

nltest enforced 1 >"$TEST_DIR/out" 2>&1
check "a change is answered with the state of the driver, which enforces it" [ $? -eq 0 ]
sed 's/^/# /' "$TEST_DIR/out"

# Dumps while accounts come and go: every one is whole, or says that it isn't.
cgroup_leaf coming
start_in coming mover
mover_pid=$pid
(
	while mkdir "$(cgroup_dir going)" && cgroup_add going "$mover_pid"; do
		ask mover alloc 4K
		cgroup_add coming "$mover_pid"
		rmdir "$(cgroup_dir going)"
	done
) 2>/dev/null &
storm=$!
short=0
for i in $(seq 30); do
	umacct ls --json >"$TEST_DIR/listed"
	crowd=$(grep -o "$(cgroup_path crowd)[0-9]*" "$TEST_DIR/listed" | sort -u | wc -l)
	[ "$crowd" -eq 150 ] || short=$((short + 1))
done
kill "$storm"
is "30 listings while accounts come and go have all that stay" $short 0
[ "$short" -eq 0 ] || diag "in the last one $crowd: $(cut -c 1-2000 "$TEST_DIR/listed")"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
