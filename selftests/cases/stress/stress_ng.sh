#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: stress-ng
# cell: amd64-6.12-550
# long: yes
#
# stress-ng takes memory, asks how much there is, and forks, some of it below a limit with a
# view and some while cgroups come and go: what is held through the driver beside it stays
# counted to the byte, and the view says what it said.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it fills the machine's memory"
needs_accounting
command -v stress-ng >/dev/null || skip_all "no stress-ng"

: "${SECONDS_OF_STRESS:=45}"
LIMIT=$((256 * MIB))

# Whom the kernel kills for want of memory it tells with a trace of the stack.
other_complaints() {
	dmesg | grep -cE 'WARNING:|BUG:|Oops|refcount_t:'
}
complaints=$(other_complaints)
dmesg -n 2
memory_before=$(unowned)

cgroup_leaf viewed
cgroup_leaf beside
limit viewed --hard $LIMIT --view >/dev/null
start_in viewed holder
ask holder open
ask holder alloc 64K 256
start_in beside churner
tell churner churn 64K

total() {
	# shellcheck disable=SC2016 # awk's
	in_cgroup viewed awk '$1 == "MemTotal:" { print $2 * 1024 }' /proc/meminfo
}

# stress WHERE STRESSORS...: it has 3 for its code where this machine can't do what it asks for.
stress() {
	stress_where=$1
	shift
	mkdir -p "$TEST_DIR/stress"
	in_cgroup "$stress_where" stress-ng --timeout "$SECONDS_OF_STRESS" --temp-path "$TEST_DIR/stress" \
		--no-rand-seed --oomable --verify "$@" >"$TEST_DIR/told" 2>&1
	stress_code=$?
	[ $stress_code -eq 0 ] || sed 's/^/# /' "$TEST_DIR/told"
	is "$stress_where: $*" $stress_code 0
	is "$stress_where: $1: what is held is counted" "$(system_memory viewed)" $((16 * MIB))
	is "$stress_where: $1: the view is what it was" "$(total)" $LIMIT
}

while_cgroups_come_and_go() { # COMMAND...
	(while :; do
		mkdir "$(cgroup_dir viewed)/child" "$(cgroup_dir beside)/child"
		in_cgroup viewed/child true
		in_cgroup beside/child rmtool "alloc 64K 4" "free 1"
		rmdir "$(cgroup_dir viewed)/child" "$(cgroup_dir beside)/child"
	done) >/dev/null 2>&1 &
	coming=$!
	holders="$holders $coming"
	"$@"
	kill "$coming"
	wait "$coming" 2>/dev/null
	eventually rmdir_all
}
rmdir_all() {
	rmdir "$(cgroup_dir viewed)/child" "$(cgroup_dir beside)/child" 2>/dev/null
	[ ! -d "$(cgroup_dir viewed)/child" ] && [ ! -d "$(cgroup_dir beside)/child" ]
}

is "the view is of the limit" "$(total)" $LIMIT
stress viewed --vm 1 --vm-bytes 48M --mmap 1 --mmap-bytes 16M --brk 1
stress viewed --sysinfo 2 --procfs 1 --get 1
stress beside --malloc 1 --malloc-bytes 32M --mremap 1 --mremap-bytes 16M --brk 1
while_cgroups_come_and_go stress beside --fork 1 --vfork 1

check "somebody used the driver beside stress-ng" [ "$(account beside allocs)" -gt 1000 ]
tell holder exit
echo 1 >"$(cgroup_dir beside)/cgroup.kill"
check "all is given back after stress-ng" eventually status_is system 0
check "no record is left after stress-ng" eventually status_is records 0
settles "the machine's memory is as before stress-ng" 0 $((4 * MIB)) unowned_since "$memory_before"
is "the kernel has nothing to complain of" "$(other_complaints)" "$complaints"
dmesg -n 7

done_testing
