#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: cgroup-tests
# long: yes
#
# The kernel's own tests of cgroups end with umacct as without it, while it charges
# everybody, and while somebody uses the driver beside them.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "the tests fill the machine's memory"
needs_accounting
[ -x /cgroup-tests/test_core ] || skip_all "no tests of the kernel's in /cgroup-tests"

# Whom the kernel kills for want of memory it tells with a trace of the stack.
other_complaints() {
	dmesg | grep -cE 'WARNING:|BUG:|Oops|refcount_t:'
}

complaints=$(other_complaints)
dmesg -n 2

# A line for each: its result and name. They fork with lines that are not written yet.
run_tests() {
	for run_test in /cgroup-tests/*; do
		timeout 300 "$run_test" 2>&1
		echo
	done | sed -n 's/^\(ok\|not ok\) [0-9]* /\1 /p'
}

# Some fail in this machine whatever is loaded: it has no disk, and few programs. Others
# do now and then, where a machine is slow: what passes once passes.
best() { # FILE
	sort -u "$1" | awk '
	{ name = $0; sub(/^(not )?ok /, "", name) }
	!(name in result) || /^ok/ { result[name] = $0 }
	END { for (name in result) print result[name] }' | sort
}

compare() {
	rmmod umacct
	run_tests >>"$TEST_DIR/without"
	load umacct charge=1
	run_tests >>"$TEST_DIR/with"
	best "$TEST_DIR/without" >"$TEST_DIR/best_without"
	best "$TEST_DIR/with" >"$TEST_DIR/best_with"
	cmp -s "$TEST_DIR/best_without" "$TEST_DIR/best_with"
}

use_driver() {
	in_cgroup beside sh -c '
		while :; do
			rmtool "alloc 64K 8" "free 1" "free 1"
		done' >/dev/null 2>&1 &
	user=$!
	holders="$holders $user"
}

cgroup_leaf beside
use_driver
cd /tmp || exit
compare || compare || compare
sed 's/^/# /' "$TEST_DIR/best_without"
echo 1 >"$(cgroup_dir beside)/cgroup.kill"
check "30 and more of the kernel's tests pass without umacct" [ "$(grep -c '^ok' "$TEST_DIR/best_without")" -ge 30 ]
is "the kernel's tests end with umacct as without it" \
	"$(diff "$TEST_DIR/best_without" "$TEST_DIR/best_with")" ""
check "somebody used the driver beside the kernel's tests" [ "$(account beside allocs)" -gt 0 ]
is "charging is on for the kernel's tests" "$(cat /sys/module/umacct/parameters/charge)" Y
is "the kernel has nothing else to complain of" "$(other_complaints)" "$complaints"
dmesg -n 7
rmmod umacct
load umacct

done_testing
