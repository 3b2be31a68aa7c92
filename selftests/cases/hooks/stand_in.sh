#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: *-7
#
# What umacct does on any kernel, whether NVIDIA's driver can be had for it or not: a
# module that has the driver's functions, and no memory, is followed. What somebody takes
# of it counts, limits bind, events tell, the view shows, and nothing is left. Where there
# is a driver, the other cases show all of this, and more.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it takes another module for the driver"
needs_root
needs_cgroups
needs_umacct

take() { # CGROUP MIB: or what is held goes
	# shellcheck disable=SC2016 # the inner shell expands it
	in_cgroup "$1" sh -c 'echo "$0" >/sys/module/nvidia/parameters/take' \
		$(($2 * MIB / PAGE)) 2>/dev/null
}

total_for() { # CGROUP
	in_cgroup "$1" meminfo | awk '$1 == "sysinfo" { print $2 }'
}

complaints=$(kernel_complaints)
had_driver=
[ ! -c /dev/nvidiactl ] || had_driver=1
[ ! "$had_driver" ] || unload_driver
is "without a driver nothing is hooked" "$(hooked_functions)" ""

stand_in_without nothing
check "the stand-in loads" insmod "$TEST_DIR/nvidia.ko"
is "the stand-in is followed" "$(status_field driver_state)" hooked
check "nv_alloc_pages is hooked" sh -c "echo '$(hooked_functions | xargs)' | grep -qw nv_alloc_pages"
diag "$(hooked_functions | xargs)"

cgroup_make parent
cgroup_leaf parent/leaf
cgroup_leaf neighbour
check "somebody takes 8 MiB of the stand-in" take parent/leaf 8
is "what was taken of the stand-in counts" "$(system_memory parent/leaf)" $((8 * MIB))
is "what was taken of the stand-in counts for the parent" "$(system_memory parent)" $((8 * MIB))
is "what was taken of the stand-in is one record" "$(status_field records)" 1
check "the tool lists who took of the stand-in" sh -c "umacct ls --json 2>/dev/null | grep -q '$(cgroup_path parent/leaf)'"
take parent/leaf 0
is "what was given back to the stand-in doesn't count" "$(system_memory parent)" 0

watch_events
# It says that the stand-in lacks what the driver has beside.
limit parent --hard "$(with_metadata $((4 * MIB)) 1 0)" >/dev/null 2>&1
check "a limit refuses what is too much of the stand-in" fails take parent/leaf 5
is "a refusal of the stand-in's memory is counted" "$(account parent refusals)" 1
check "a refusal of the stand-in's memory is an event" eventually events_are "" 1
is "the event is of the type hard_refused" "$(json_field type <"$EVENTS")" hard_refused
check "what fits below the limit is let through" take parent/leaf 4
is "what fits below the limit counts" "$(system_memory parent)" $((4 * MIB))
check "who has no limit is let through beside it" take neighbour 64
is "who has no limit has an account" "$(system_memory neighbour)" $((64 * MIB))
take neighbour 0

truth=$(total_for neighbour)
limit parent --hard 256M --view >/dev/null 2>&1
is "with the view, who has a limit sees the limit" "$(total_for parent/leaf)" $((256 * MIB))
is "with the view, others see the machine" "$(total_for neighbour)" "$truth"

check "somebody takes memory in a cgroup that will go" take parent/leaf 16
rmdir "$(cgroup_dir parent/leaf)"
is "a removed cgroup's memory is its parent's" "$(system_memory parent)" $((16 * MIB))
# But two of them take a crowd of accounts, and a driver that has an ioctl to throttle.
nltest root >"$TEST_DIR/out" 2>&1
is "bad netlink requests are refused" "$(grep '^not ok' "$TEST_DIR/out" |
	grep -v -e 'a dump of more accounts' -e 'a throttle of more')" ""
check "dozens of bad netlink requests are refused" [ "$(grep -c '^ok' "$TEST_DIR/out")" -gt 24 ]
check "umacct is unloaded while something is held" rmmod umacct
is "umacct leaves no hook on the stand-in" "$(hooked_functions)" ""
check "umacct is loaded again beside the stand-in" load umacct
is "umacct that is loaded again follows the stand-in" "$(status_field driver_state)" hooked
take neighbour 0
check "umacct is loaded to use kprobes on the stand-in" sh -c "rmmod umacct && insmod '$MODULES/umacct.ko' direct_calls=0"
check "somebody takes memory with umacct on kprobes" take neighbour 2
is "by kprobes what was taken of the stand-in counts" "$(system_memory neighbour)" $((2 * MIB))
take neighbour 0
rmmod umacct
load umacct

rmmod nvidia
is "without a driver nothing is held" "$(status_field system)" 0
[ ! "$had_driver" ] || check "the driver loads after the stand-in" load_driver
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
