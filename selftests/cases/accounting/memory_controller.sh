#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What umacct says of the kernel's own memory controller is what the controller says,
# and no list follows a cgroup that is going into freed memory.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it makes and removes cgroups for a while"
needs_accounting

cgroup_make parent
cgroup_leaf parent/leaf
cgroup_write parent/leaf memory.max 64M
start_in parent/leaf holder
ask holder alloc 1M

is "memory.max is told, to the byte" "$(account parent/leaf memory_max)" $((64 * MIB))
is "a cgroup without a memory.max has none told" "$(account parent memory_max)" null
in_cgroup parent/leaf dd if=/dev/zero of=/dev/shm/umacct.$$ bs=1M count=16 2>/dev/null
current_is_the_kernels() {
	current=$(account parent/leaf memory_current)
	between=$((current - $(cgroup_read parent/leaf memory.current)))
	[ "${between#-}" -le $((16 * PAGE)) ]
}
check "memory.current is what the kernel has there" eventually current_is_the_kernels
check "memory.current has what the process put there" [ "$(account parent/leaf memory_current)" -ge $((16 * MIB)) ]
rm /dev/shm/umacct.$$
is "the root has no memory.current" "$(umacct show / --json | json_field memory_current)" null

cgroup_make bare
echo -memory >"$(cgroup_dir bare)/cgroup.subtree_control"
cgroup_leaf bare/leaf
start_in bare/leaf other
ask other alloc 1M
is "a cgroup without the controller has no memory.current" "$(account bare/leaf memory_current)" null
is "a cgroup without the controller has driver memory all the same" "$(account bare/leaf system)" $MIB

# The kernel charges managed memory to the nearest cgroup that has the controller. It counts
# where the program is all the same, and the limit there holds.
ended_or_answered() {
	[ -s "$TEST_DIR/said" ] || process_is_gone "$pid"
}

managed_without_controller() { # COMMAND
	cgroup_make "bare_$1"
	echo -memory >"$(cgroup_dir "bare_$1")/cgroup.subtree_control"
	cgroup_leaf "bare_$1/leaf"
	limit "bare_$1/leaf" --hard 16M
	start_in "bare_$1/leaf" tourist uvmtool
	ask tourist open
	ask tourist mm
	ask tourist map 64M
	tell tourist "$1"
	cat <>"$TEST_DIR/tourist.out" >"$TEST_DIR/said" &
	reader=$!
	holders="$holders $reader"
	eventually ended_or_answered
	kill "$reader"
	peak=$(cgroup_read "bare_$1" memory.peak)
	diag "$1: $(cat "$TEST_DIR/said") memory.peak $((peak / KIB)) KiB"
	check "$1: the limit of a cgroup without the controller holds for managed memory" \
		[ "$peak" -le $((24 * MIB)) ]
	within "$1: managed memory counts for a cgroup without the controller, up to its limit" \
		"$(account "bare_$1/leaf" peak)" $((16 * MIB)) $((64 * KIB))
	kill -KILL "$pid" 2>/dev/null
	gone "$pid"
}

if [ -c /dev/nvidia-uvm ]; then
	managed_without_controller touch
	managed_without_controller migrate
else
	skip "managed memory in a cgroup without the controller" "nvidia-uvm is not loaded"
fi

# Removed as fast as they are made, while others look; not so hard that they are all that
# runs.
lookers=
for _ in 1 2 3; do
	nice -n 10 sh -c 'while umacct ls --json --all; do :; done' >/dev/null &
	lookers="$lookers $!"
done
holders="$holders $lookers"
for i in $(seq 150); do
	cgroup_leaf "gone$i"
	in_cgroup "gone$i" rmtool "alloc 4K" >/dev/null
	rmdir "$(cgroup_dir "gone$i")"
done
for looker in $lookers; do
	kill "$looker"
	wait "$looker"
done
is "150 cgroups that came and went leave their memory to the parent" "$(system_memory "")" $((2 * MIB))
check "150 cgroups that came and went leave no account" fails sh -c 'umacct ls --all --json | grep -q gone'

done_testing
