#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Charging is switched per cgroup, inherited, and holds for what is allocated from
# then on; what is charged and what isn't stays right through every free.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it changes the machine's default"
needs_accounting
needs_kernel_alloc

charged() { account "$1" charged; }

cgroup_make top
cgroup_leaf top/leaf
start_in top/leaf holder
allocator=$pid
ask holder open

ask holder alloc 1M 2
is "off unless set" "$(charged top/leaf)" 0
check "on in the parent" charge top on
is "what is held stays as it is" "$(charged top/leaf)" 0
ask holder alloc 1M 3
is "what comes is charged" "$(charged top/leaf)" $((3 * MIB))
is "usage has both" "$(system_memory top/leaf)" $((5 * MIB))
check "off in the leaf" charge top/leaf off
ask holder alloc 1M 1
is "the nearest that says decides" "$(charged top/leaf)" $((3 * MIB))
check "inherit in the leaf" charge top/leaf inherit
ask holder alloc 1M 1
is "asks the parent again" "$(charged top/leaf)" $((4 * MIB))
is "the parent's account has them" "$(charged top)" $((4 * MIB))

ask holder free 0
is "an uncharged one freed: charged is the same" "$(charged top/leaf)" $((4 * MIB))
ask holder free 2
is "a charged one freed: one less" "$(charged top/leaf)" $((3 * MIB))
ask holder free 5
is "the one from off freed: the same" "$(charged top/leaf)" $((3 * MIB))
is "usage went with each" "$(system_memory top/leaf)" $((4 * MIB))
charge top off
ask holder free 6
is "freed when it's off again: one less all the same" "$(charged top/leaf)" $((2 * MIB))
ask holder free all
is "nothing left of either" "$(system_memory top/leaf) $(charged top/leaf)" "0 0"

charge top inherit
umacct charge on / 2>"$TEST_DIR/note"
is "on for the root cgroup" $? 0
check "it is said that its own processes are never charged" grep -q 'root cgroup itself' "$TEST_DIR/note"
ask holder alloc 1M
is "the cgroups below inherit it" "$(charged top/leaf)" $MIB
ask holder free all
echo "$$" >"$CGROUPS/cgroup.procs"
start rooted rmtool
ask rooted alloc 1M
is "a process in the root cgroup is accounted" \
	"$(umacct show --json / | json_field local)" "$(with_metadata $MIB 1 1)"
is "and not charged" "$(umacct show --json / | json_field charged)" 0
ask rooted free all
umacct charge inherit /
check "on for the whole machine" umacct charge on
ask holder alloc 1M
is "is inherited by who says nothing" "$(charged top/leaf)" $MIB
charge top off
ask holder alloc 1M
is "and overruled by who does" "$(charged top/leaf)" $MIB
check "off again" umacct charge off
ask holder free all

# Off, while somebody is between the question whether he is charged and the driver's mask.
charge top/leaf on
start guard rmtool
check "who allocates sleeps before the mask is computed" \
	ask guard kernel hold nvidia:nv_alloc_contig_pages
tell holder kernel alloc 4 $PAGE 1
sleeps() {
	grep -q held_call "/proc/$allocator/stack"
}
hooked() {
	hooked_functions | grep -q '^nv_compute_gfp_mask'
}
check "he comes" eventually sleeps
charge top/leaf off &
setter=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	sleep 0.1
	hooked || break
done
check "the hook stays for him" hooked
ask guard kernel release
wait "$setter"
answer holder
is "he gets what he asked for" "$(reply_field status)" 0x0
is "and is charged" "$(charged top/leaf)" $((4 * PAGE))
check "then the hook goes" eventually fails hooked
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
		$(($(cgroup_read top/leaf memory.current) - before)) $((32 * MIB)) $((2 * MIB))
	is "which umacct says, too" "$(charged top/leaf)" $((32 * MIB))
fi

rmmod umacct
load umacct charge=1
ask holder alloc 1M
is "a module parameter gives the default" "$(charged top/leaf)" $MIB
ask holder free all
rmmod umacct
load umacct

done_testing
