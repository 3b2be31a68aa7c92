#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What nothing enforces is taken, and the answer says so: while there is no driver,
# and while there is one that isn't followed.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it loads an altered driver"
needs_accounting

ABSENT=0
UNKNOWN=2

answers() { # DESCRIPTION STATE
	nltest enforced "$2" >"$TEST_DIR/out" 2>&1
	check "$1: a change is answered with that, and why" [ $? -eq 0 ]
	sed 's/^/# /' "$TEST_DIR/out"
}

unenforced() {
	umacct --json | json_field unenforced
}

cgroup_leaf leaf
limit leaf --hard 1M
is "with a driver, what is set is enforced" "$(unenforced)" false
unload_driver
answers "no driver" $ABSENT
umacct limit "$(cgroup_path leaf)" --hard 2M 2>"$TEST_DIR/err"
is "no driver: a limit is set for when there is one" $? 0
check "no driver: which is said" grep -q '^note: the driver is not loaded' "$TEST_DIR/err"

cp "$MODULES/nvidia.ko" "$TEST_DIR/nvidia.ko"
strings -t d "$MODULES/nvidia.ko" | awk '$2 ~ /^version=/ { print $1 + length("version=") }' |
	while read -r at; do
		printf 999 | dd of="$TEST_DIR/nvidia.ko" bs=1 seek="$at" conv=notrunc 2>/dev/null
	done
check "a driver of an unknown version loads" insmod "$TEST_DIR/nvidia.ko"
answers "unknown driver" $UNKNOWN
is "the status says that nothing is enforced" "$(unenforced)" true
rmmod nvidia
load_driver

done_testing
