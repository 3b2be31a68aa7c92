#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# What each verb prints with --json, on a machine that has everything in it, is what
# docs/umacct.schema.json says.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets limits and a reserve"
needs_accounting
command -v check_json >/dev/null || skip_all "no check_json in PATH"

documented() { # VERB FILE
	check_json "$SELFTESTS/umacct.schema.json" "$1" <"$2"
	is "$1: the JSON is as documented" $? 0
}

prints() { # VERB [ARGUMENT...]
	umacct "$@" --json >"$TEST_DIR/$1"
	documented "$1" "$TEST_DIR/$1"
}

cgroup_make parent
cgroup_leaf parent/leaf
limit parent --soft 2M --hard 8M --throttle 1ms --view
watch_events
start_in parent/leaf holder
ask holder fill 1M
start_in parent/leaf gone
ask gone open

umacct --json >"$TEST_DIR/summary"
documented summary "$TEST_DIR/summary"
umacct --version --json >"$TEST_DIR/version"
documented version "$TEST_DIR/version"
# The next file that the tool opens would take the place of a closed one.
umacct ls >&- 2>/dev/null
check "output to a closed file is a failure" [ $? -ne 0 ]
prints ls
# The other cases read by nltest what this shows to be the same.
FIGURES="path system usage managed metadata local peak charged allocs frees failures refusals"
tr '{' '\n' <"$TEST_DIR/ls" | awk -F, -v figures="$FIGURES" '
/"path":/ {
	for (i = 1; i <= NF; i++) {
		split($i, pair, ":")
		gsub(/"|_bytes"/, "", pair[1])
		gsub(/"/, "", pair[2])
		value[pair[1]] = pair[2]
	}
	nr = split(figures, wanted, " ")
	for (i = 1; i <= nr; i++)
		printf "%s%s", value[wanted[i]], i < nr ? " " : "\n"
}' >"$TEST_DIR/told"
nltest accounts | cut -d ' ' -f 2-13 >"$TEST_DIR/nltest"
check "ls: an account at least" [ -s "$TEST_DIR/told" ]
is "ls: the figures are those that netlink has" "$(grep -vxFf "$TEST_DIR/nltest" "$TEST_DIR/told")" ""
prints ps
prints show "$(cgroup_path parent)"
prints top -n 2 -d 0.1
prints top -n 1 --processes
prints ls -o +pressure
prints limit
prints view
prints reserve
prints charge
prints audit
cp "$TEST_DIR/audit" "$TEST_DIR/before"
ask holder free all
prints audit --diff "$TEST_DIR/before"
prints doctor
prints verify --size 8M
umacct run --json --hard 1M -- rmtool "alloc 64K 4" >/dev/null 2>"$TEST_DIR/run"
is "run ends as its command, with --json" $? 0
documented run "$TEST_DIR/run"

check "the refusals were told while watch listened" eventually grep -q '"hard_refused"' "$EVENTS"
documented watch "$EVENTS"

cgroup_write parent cgroup.kill 1
check "the driver is unloaded" eventually unload_driver
umacct --json >"$TEST_DIR/summary"
documented summary "$TEST_DIR/summary"
prints charge
rmmod umacct
umacct --version --json >"$TEST_DIR/version"
documented version "$TEST_DIR/version"
prints doctor
echo '{"schema":1}' >"$TEST_DIR/wrong"
check "a document that isn't documented is noticed" fails \
	check_json "$SELFTESTS/umacct.schema.json" ls <"$TEST_DIR/wrong"
load umacct
load_driver

done_testing
