#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who suffers: how long tasks are in the driver's allocator, by the kernel's clock, and the
# pressure that the kernel sees in a cgroup.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

shown() { # NAME KEY
	umacct show --json "$(cgroup_path "$1")" | json_field "$2"
}

cgroup_make parent
cgroup_leaf parent/leaf
cgroup_leaf parent/other
start_in parent/leaf holder
start_in parent/other small
ask holder open
ask small alloc 4K 1

# Until some ticks have fallen into it: pages have to be found and cleared.
takes_its_time() {
	ask holder alloc 1M 64
	ask holder free all
	[ "$(shown parent/leaf alloc_time)" -ge 20000000 ]
}
of_other=$(shown parent/other alloc_time)
before=$(now_ms)
check "time in the allocator is counted" eventually takes_its_time
took=$(($(now_ms) - before + 10))
sum=$(shown parent/leaf alloc_time)
max=$(shown parent/leaf alloc_time_max)
diag "in the allocator for $sum ns of $took ms, $max ns at most"
check "the time in the allocator is no more than has passed" [ "$sum" -le $((took * 1000000)) ]
check "the longest time in the allocator is a part of the sum" [ "$max" -le "$sum" ]
check "the longest time in the allocator is a tick at least" [ "$max" -ge 1000000 ]
is "the time in the allocator is the parent's too" "$(shown parent alloc_time)" \
	$(($(shown parent/leaf alloc_time) + $(shown parent/other alloc_time)))
is "the time in the allocator is none of the other cgroup's" \
	"$(shown parent/other alloc_time)" "$of_other"
check "a column has the time in the allocator" fails \
	sh -c "umacct ls --no-header -o alloc-time $(cgroup_path parent/leaf) | grep -q '^ *0 s'"

# With charging, a cgroup that is full of page cache has to reclaim before it gets any.
LOOP=/dev/loop0
if [ ! -e "$(cgroup_dir parent/leaf)/memory.pressure" ] || ! [ -b $LOOP ] || ! in_vm; then
	skip "the kernel's pressure" "no memory.pressure, no loop device, or not in a virtual machine"
	done_testing
fi
# A file of zeros that takes no memory itself: what is read of it is page cache.
truncate -s 1G "$TEST_DIR/zeros"
losetup $LOOP "$TEST_DIR/zeros"
exec 5<$LOOP
cgroup_write parent/leaf memory.max 64M
check "charging is switched on" charge parent/leaf on
in_cgroup parent/leaf dd of=/dev/null bs=1M count=100 <&5 2>/dev/null
check "a charged cgroup is filled with page cache" [ "$(cgroup_read parent/leaf memory.current)" -gt $((48 * MIB)) ]
ask holder alloc 1M 40
is "the driver gets what it asks for in a cgroup full of page cache" "$(system_memory parent/leaf)" $((40 * MIB))
pressed() {
	[ "$(cgroup_pressure)" -gt 0 ]
}
cgroup_pressure() {
	sed -n 's/^some .*total=//p' "$(cgroup_dir parent/leaf)/memory.pressure"
}
check "the kernel saw pressure in the full cgroup" eventually pressed
check "show tells the kernel's pressure" [ "$(shown parent/leaf some_total_us)" -gt 0 ]
is "show tells no more pressure than the kernel does" \
	"$(($(shown parent/leaf some_total_us) <= $(cgroup_pressure)))" 1
check "a list tells the pressure where it is asked to" \
	sh -c "umacct ls --no-header -o name,pressure $(cgroup_path parent) | grep -q leaf.*%"
is "a list opens no file for the pressure unless asked" \
	"$(umacct ls --json "$(cgroup_path parent)" | grep -c some_avg10)" 0
umacct top -n 1 --json "$(cgroup_path parent)" >"$TEST_DIR/top"
check "top's JSON tells the pressure" grep -q '"some_avg10_percent":' "$TEST_DIR/top"

exec 5<&-
losetup -d $LOOP

done_testing
