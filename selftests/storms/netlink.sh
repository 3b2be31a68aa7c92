#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Requests at random, right, nearly right and senseless, from root and from somebody
# without privilege, while the ledger changes under them: each is answered, nobody
# without privilege changes anything, and afterwards every count is as it should be.
#
# SEED and SECONDS_OF_STORM say which storm, and how long it lasts.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it changes settings at random"
needs_accounting

: "${SEED:=1}" "${SECONDS_OF_STORM:=30}"
complaints=$(kernel_complaints)
# Drivers that are loaded may keep some for themselves.
records=$(status_field records)

cgroup_leaf busy
cgroup_leaf tenant
for i in 1 2 3; do
	start_in busy "churner$i"
	tell "churner$i" insist $((4 << (i * 2)))K
done
umacct watch --json >"$TEST_DIR/events" &
holders="$holders $!"

in_cgroup tenant runas $UNPRIVILEGED nltest storm "$SEED" "$SECONDS_OF_STORM" \
	>"$TEST_DIR/nobody" &
nobody=$!
nltest storm "$((SEED + 1))" "$SECONDS_OF_STORM" >"$TEST_DIR/root"
wait "$nobody"

field() { # WHO KEY
	sed -n "s/.*\b$2=\([0-9]*\).*/\1/p" "$TEST_DIR/$1"
}

for who in root nobody; do
	diag "$who: $(cat "$TEST_DIR/$who")"
	check "$who: messages were sent" [ "$(field $who messages)" -gt 0 ]
	check "$who: some were right" [ "$(field $who 'done')" -gt 0 ]
	is "$who: every one was answered" "$(field $who unanswered)" 0
done
check "root: settings were changed" [ "$(field root changed)" -gt 0 ]
is "nobody: none was" "$(field nobody changed)" 0
diag "operations=$(($(field root messages) + $(field nobody messages)))"

echo 1 >"$(cgroup_dir busy)/cgroup.kill"
for pid in $holders; do
	kill "$pid" 2>/dev/null
done
check "nothing is held" eventually system_is busy 0
check "as many records are left as there were before" eventually status_is records "$records"
# What was set at random goes with the module.
check "umacct is unloaded" eventually rmmod umacct
load umacct
cgroup_leaf after
start_in after holder
check "and loaded again, all is as ever" ask holder alloc 1M 4
is "to the byte" "$(system_memory after)" $((4 * MIB))
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"

done_testing
