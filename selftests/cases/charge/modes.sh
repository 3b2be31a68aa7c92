#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Charging is switched per cgroup, inherited, and holds for what is allocated from
# then on; what is charged and what isn't stays right through every free.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it changes the machine's default"
needs_accounting
needs_kernel_alloc

# In MiB: the drivers' metadata is charged, too, and is much less than one here.
charged() { echo $(($(account "$1" charged) / MIB * MIB)); }

cgroup_make top
cgroup_leaf top/leaf
start_in top/leaf holder
allocator=$pid
ask holder open

ask holder alloc 1M 2
is "nothing is charged unless that is set" "$(charged top/leaf)" 0
check "charging is switched on in the parent" charge top on
is "what was held before charging stays uncharged" "$(charged top/leaf)" 0
ask holder alloc 1M 3
is "what comes after charging was switched on is charged" "$(charged top/leaf)" $((3 * MIB))
is "usage has both what is charged and what isn't" "$(system_memory top/leaf)" $((5 * MIB))
check "charging is switched off in the leaf" charge top/leaf off
ask holder alloc 1M 1
is "the nearest cgroup that says on or off decides" "$(charged top/leaf)" $((3 * MIB))
check "the leaf is set to inherit" charge top/leaf inherit
ask holder alloc 1M 1
is "a leaf that inherits charges as its parent" "$(charged top/leaf)" $((4 * MIB))
is "the parent's account has what its child is charged" "$(charged top)" $((4 * MIB))

ask holder free 0
is "the free of an uncharged page leaves the charge as it is" "$(charged top/leaf)" $((4 * MIB))
ask holder free 2
is "the free of a charged page takes its charge away" "$(charged top/leaf)" $((3 * MIB))
ask holder free 5
is "the free of a page from the time of off leaves the charge as it is" "$(charged top/leaf)" $((3 * MIB))
is "usage falls with each free, charged or not" "$(system_memory top/leaf)" $((4 * MIB))
charge top off
ask holder free 6
is "a charged page that is freed when charging is off takes its charge away" "$(charged top/leaf)" $((2 * MIB))
ask holder free all
is "nothing is left of usage or charge" "$(system_memory top/leaf) $(charged top/leaf)" "0 0"

charge top inherit
umacct charge on / 2>"$TEST_DIR/note"
is "charging is switched on for the root cgroup" $? 0
check "a note says that the root cgroup's own processes are never charged" grep -q 'root cgroup itself' "$TEST_DIR/note"
ask holder alloc 1M
is "cgroups below the root inherit its charging" "$(charged top/leaf)" $MIB
ask holder free all
# Who loaded nvidia-uvm has a client of the driver's for as long as that is loaded.
rooted_before=$(umacct show --json / | json_field local)
echo "$$" >"$CGROUPS/cgroup.procs"
start rooted rmtool
ask rooted alloc 1M
is "a process in the root cgroup is accounted" \
	$(($(umacct show --json / | json_field local) - rooted_before)) "$(with_metadata $MIB 1 1)"
is "a process in the root cgroup is not charged" "$(umacct show --json / | json_field charged)" 0
ask rooted free all
umacct charge inherit /
check "charging is switched on for the whole machine" umacct charge on
ask holder alloc 1M
is "a cgroup that says nothing is charged as the whole machine" "$(charged top/leaf)" $MIB
charge top off
ask holder alloc 1M
is "a cgroup that says off is not charged with the whole machine" "$(charged top/leaf)" $MIB
check "charging is switched off for the whole machine" umacct charge off
ask holder free all

# Off, while somebody is between the question whether he is charged and the driver's mask.
charge top/leaf on
start guard rmtool
check "a task is to sleep before the mask is computed" \
	ask guard kernel hold nvidia:nv_alloc_contig_pages
tell holder kernel alloc 4 $PAGE 1
sleeps() {
	grep -q held_call "/proc/$allocator/stack"
}
hooked() {
	hooked_functions | grep -q '^nv_compute_gfp_mask'
}
check "the task sleeps before the mask is computed" eventually sleeps
charge top/leaf off &
setter=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	sleep 0.1
	hooked || break
done
check "the hook stays for the task that sleeps before it" hooked
ask guard kernel release
wait "$setter"
answer holder
is "the task that slept gets what it asked for" "$(reply_field status)" 0x0
check "the task that slept is charged" [ "$(account top/leaf charged)" -ge $((4 * PAGE)) ]
check "the hook goes when the task is through" eventually fails hooked
ask holder kernel free
tell guard exit

if [ -c /dev/nvidia-uvm ]; then
	charge top on
	before=$(cgroup_read top/leaf memory.current)
	start_in top/leaf managed uvmtool
	ask managed open
	ask managed map 32M
	ask managed touch
	within "managed memory is charged once, not twice" \
		$(($(cgroup_read top/leaf memory.current) - before)) $((32 * MIB)) $((2 * MIB + CHARGED_AHEAD))
	is "umacct says that managed memory is charged once" "$(charged top/leaf)" $((32 * MIB))
fi

rmmod umacct
load umacct charge=1
ask holder alloc 1M
is "the module's parameter charge=1 is the default" "$(charged top/leaf)" $MIB
ask holder free all
rmmod umacct
load umacct

done_testing
