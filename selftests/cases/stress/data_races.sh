#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# cell: amd64-6.12-kcsan
#
# Nothing in umacct accesses memory that another changes meanwhile, but where both say so:
# the kernel's own detector watches each of its functions during the storms. That it finds
# races at all, one on purpose shows.
#
# SEED and SECONDS_OF_STORM say which storm, and how long it lasts.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it watches a kernel that is made for it"
needs_accounting
needs_kernel_alloc
KCSAN=/sys/kernel/debug/kcsan
[ -e $KCSAN ] || skip_all "a kernel without KCSAN"
: "${SEED:=1}" "${SECONDS_OF_STORM:=60}"

# watch_functions MODULE [NAME]
watch_functions() {
	awk -v module="[$1]" -v name="$2" '
		tolower($2) == "t" && $4 == module && (name == "" || $3 == name) { print "!" $3 }
	' /proc/kallsyms | sort -u | while read -r watched; do
		# What initialises the module is gone by now.
		{ echo "$watched" >$KCSAN; } 2>/dev/null || diag "not watched: $watched"
	done
}

# In other functions than the one that has one on purpose.
races() {
	dmesg | grep 'BUG: KCSAN: data-race in' | grep -v race_on_purpose
}

watch_functions umacct
watched=$(grep -c '^ ' $KCSAN)
check "umacct's functions are watched ($watched)" [ "$watched" -gt 100 ]
watch_functions umacct_test_alloc race_on_purpose
echo whitelist >$KCSAN
echo on >$KCSAN

cgroup_leaf leaf
start_in leaf racer
ask racer open
expect_warning race_on_purpose
check "a program runs into a race on purpose" ask racer kernel race 100000
check "the race on purpose is found" sh -c 'dmesg | grep -q "data-race in race_on_purpose"'
dmesg -c >/dev/null
tell racer exit
gone "$pid"

for storm in ledger netlink; do
	SEED=$SEED SECONDS_OF_STORM=$SECONDS_OF_STORM TMPDIR=$TEST_DIR \
		sh "$SELFTESTS/storms/$storm.sh" >"$TEST_DIR/storm" 2>&1
	code=$?
	[ $code -eq 0 ] || sed 's/^/# /' "$TEST_DIR/storm"
	is "$storm: the storm ends well" $code 0
	check "$storm: the storm ends without a race" fails races
	diag "$(races | sort | uniq -c)"
done
echo off >$KCSAN

done_testing
