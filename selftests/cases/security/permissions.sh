#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who may see what and change what: everybody their own cgroup's subtree, from any
# network namespace; nobody but the administrator anything else.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

as_tenant() { # COMMAND...: as a user in the cgroup "tenant"
	in_cgroup tenant runas $UNPRIVILEGED "$@"
}

cgroup_make tenant
cgroup_leaf tenant/own
cgroup_leaf neighbour
start_in tenant/own own runas $UNPRIVILEGED rmtool
ask own alloc 1M 2
start_in neighbour neighbour
ask neighbour alloc 1M 3

# A process can't be beside a child cgroup with the memory controller; the tenant's
# shell is in a leaf of its own, and asks for its parent as a container's root would.
{ echo -memory >"$(cgroup_dir tenant)/cgroup.subtree_control"; } 2>/dev/null

is "a user sees the usage of its own cgroup's subtree" \
	"$(as_tenant umacct show --json "$(cgroup_path tenant)" | json_field system)" $((2 * MIB))
is "a user sees the usage of a child of its own cgroup" \
	"$(as_tenant umacct show --json "$(cgroup_path tenant/own)" | json_field system)" $((2 * MIB))
as_tenant umacct show --json "$(cgroup_path neighbour)" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
check "a user sees no usage of a neighbour" [ $? -ne 0 ]
check "a user is told that it may not see a neighbour" [ -s "$TEST_DIR/err" ]
diag "$(cat "$TEST_DIR/err")"
is "a user sees no number of a neighbour" "$(json_field system <"$TEST_DIR/out")" ""

as_tenant umacct ls --json >"$TEST_DIR/out"
check "a user's list has its own cgroup" grep -q "$(cgroup_path tenant/own)" "$TEST_DIR/out"
check "a user's list doesn't have the neighbour" fails grep -q neighbour "$TEST_DIR/out"
as_tenant umacct ps --json >"$TEST_DIR/out"
is "a user's list of processes has its own alone" "$(grep -o '"comm"' "$TEST_DIR/out" | wc -l)" 1

as_tenant timeout 20 umacct watch >/dev/null 2>"$TEST_DIR/err"
is "a user can't listen to what happens to others" $? 4
diag "$(cat "$TEST_DIR/err")"

is "another network namespace answers a user as well" \
	"$(unshare -n umacct show --json "$(cgroup_path neighbour)" | json_field system)" $((3 * MIB))

as_tenant nltest deny "$(cgroup_id tenant)" >"$TEST_DIR/out" 2>&1
check "whatever a user sends is refused unless it is its own to read" [ $? -eq 0 ]
sed 's/^/# /' "$TEST_DIR/out"

# Who may read every file may read every account, which is what an exporter of metrics needs; it
# changes nothing with that.
as_reader() { # COMMAND...: as a user with CAP_DAC_READ_SEARCH alone
	in_cgroup tenant runas -r $UNPRIVILEGED "$@"
}

settings() {
	umacct show --json "$(cgroup_path neighbour)" | grep -o '"hard_bytes":[^,}]*'
}

is "CAP_DAC_READ_SEARCH is enough to read what a neighbour holds" \
	"$(as_reader umacct show --json "$(cgroup_path neighbour)" | json_field system)" $((3 * MIB))
is "CAP_DAC_READ_SEARCH is enough to read the machine's reserve" "$(as_reader umacct reserve --json | json_field reserve_bytes)" 0
before=$(settings)
as_reader umacct limit "$(cgroup_path neighbour)" --hard 8M >/dev/null 2>"$TEST_DIR/err"
is "CAP_DAC_READ_SEARCH is not enough to limit anybody" "$?" 4
as_reader umacct reserve 64M >/dev/null 2>"$TEST_DIR/err"
is "CAP_DAC_READ_SEARCH is not enough to set the reserve" "$?" 4
is "no setting has changed for CAP_DAC_READ_SEARCH" "$(settings)" "$before"
check "the reserve has not changed for CAP_DAC_READ_SEARCH" status_is reserve 0
as_reader timeout 20 umacct watch >/dev/null 2>"$TEST_DIR/err"
is "CAP_DAC_READ_SEARCH is not enough to listen to what happens to others" "$?" 4
# How often the driver allocates tells what the neighbours do.
calls() {
	tr '{' '\n' | grep '"nvidia:nv_alloc_pages"' | json_field calls
}
check "root is told how often a function is called" [ "$(umacct --json | calls)" -gt 0 ]
is "a user is not told how often a function is called" "$(as_tenant umacct --json | calls)" null

# Where cgroups of version 2 aren't used, everybody's processes are in their root.
# shellcheck disable=SC2016 # expands in the inner shell
sh -c 'echo $$ >"$0/cgroup.procs" && exec runas "$@"' "$CGROUPS" $UNPRIVILEGED nltest nothing \
	>"$TEST_DIR/out" 2>&1
check "in the root, a user sees nothing of anybody" [ $? -eq 0 ]
sed 's/^/# /' "$TEST_DIR/out"

done_testing
