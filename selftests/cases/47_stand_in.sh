#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: *-7
#
# What umacct does on any kernel, whether NVIDIA's driver can be had for it or not: a
# module that has the driver's functions, and no memory, is followed. What somebody takes
# of it counts, limits bind, events tell, the view shows, and nothing is left. Where there
# is a driver, the other cases show all of this, and more.

. "$(dirname "$0")/../lib/helpers.sh"
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
is "and is followed" "$(status_field driver_state)" hooked
check "nv_alloc_pages is hooked" sh -c "echo '$(hooked_functions | xargs)' | grep -qw nv_alloc_pages"
diag "$(hooked_functions | xargs)"

cgroup_make parent
cgroup_leaf parent/leaf
cgroup_leaf neighbour
check "somebody takes 8 MiB" take parent/leaf 8
is "it counts" "$(system_memory parent/leaf)" $((8 * MIB))
is "for the parent, too" "$(system_memory parent)" $((8 * MIB))
is "and is one record" "$(status_field records)" 1
check "the tool lists it" sh -c "umacct ls --json 2>/dev/null | grep -q '$(cgroup_path parent/leaf)'"
take parent/leaf 0
is "what was given back doesn't" "$(system_memory parent)" 0

watch_events
# It says that the stand-in lacks what the driver has beside.
limit parent --hard "$(with_metadata $((4 * MIB)) 1 0)" >/dev/null 2>&1
check "a limit refuses" fails take parent/leaf 5
is "and counts that" "$(account parent refusals)" 1
check "it is an event" eventually events_are "" 1
is "of its type" "$(json_field type <"$EVENTS")" hard_refused
check "what fits is let through" take parent/leaf 4
is "and counts" "$(system_memory parent)" $((4 * MIB))
check "who has no limit has none" take neighbour 64
is "but an account" "$(system_memory neighbour)" $((64 * MIB))
take neighbour 0

truth=$(total_for neighbour)
limit parent --hard 256M --view >/dev/null 2>&1
is "with the view, who has a limit sees that" "$(total_for parent/leaf)" $((256 * MIB))
is "others see the machine" "$(total_for neighbour)" "$truth"

check "somebody takes memory" take parent/leaf 16
rmdir "$(cgroup_dir parent/leaf)"
is "a removed cgroup's is its parent's" "$(system_memory parent)" $((16 * MIB))
# But two of them take a crowd of accounts, and a driver that has an ioctl to throttle.
nltest root >"$TEST_DIR/out" 2>&1
is "bad netlink requests are refused" "$(grep '^not ok' "$TEST_DIR/out" |
	grep -v -e 'a dump of more accounts' -e 'a throttle of more')" ""
check "dozens of them" [ "$(grep -c '^ok' "$TEST_DIR/out")" -gt 24 ]
check "umacct goes while something is held" rmmod umacct
is "and leaves no hook" "$(hooked_functions)" ""
check "it comes back" load umacct
is "and follows again" "$(status_field driver_state)" hooked
take neighbour 0
check "a kprobe serves as well" sh -c "rmmod umacct && insmod '$MODULES/umacct.ko' direct_calls=0"
check "somebody takes memory" take neighbour 2
is "it counts" "$(system_memory neighbour)" $((2 * MIB))
take neighbour 0
rmmod umacct
load umacct

rmmod nvidia
is "without a driver nothing is held" "$(status_field system)" 0
[ ! "$had_driver" ] || check "the driver loads" load_driver
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
