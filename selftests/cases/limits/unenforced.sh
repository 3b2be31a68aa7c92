#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What nothing enforces is taken, and the answer says so: while there is no driver,
# and while there is one that isn't followed.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads an altered driver"
needs_accounting
needs_kernel_alloc

ABSENT=0
UNKNOWN=2

answers() { # DESCRIPTION STATE
	nltest enforced "$2" >"$TEST_DIR/out" 2>&1
	check "$1: a change is answered with the driver's state, and why" [ $? -eq 0 ]
	sed 's/^/# /' "$TEST_DIR/out"
}

# The command runs, and what it says comes after what is said of its limit.
runs_unlimited() { # DESCRIPTION WORDS
	umacct run -q --hard 1M sh -c 'echo begins >&2; exit 7' 2>"$TEST_DIR/err"
	is "$1: a command runs, and ends as it ends" $? 7
	sed 's/^/# /' "$TEST_DIR/err"
	check "$1: that its limit isn't enforced is said, however quiet it is to be" \
		grep -q "$2" "$TEST_DIR/err"
	is "$1: it is said before the command begins" "$(tail -n 1 "$TEST_DIR/err")" begins
	is "$1: nothing is said of a command without a limit" "$(umacct run -q true 2>&1)" ""
}

# Writes a module of the driver's that says that it is of version 999.
of_unknown_version() { # MODULE
	cp "$MODULES/$1.ko" "$TEST_DIR/$1.ko"
	strings -t d "$MODULES/$1.ko" | awk '$2 ~ /^version=/ { print $1 + length("version=") }' |
		while read -r at; do
			printf 999 | dd of="$TEST_DIR/$1.ko" bs=1 seek="$at" conv=notrunc 2>/dev/null
		done
}

unenforced() {
	umacct --json | json_field unenforced
}

cgroup_leaf leaf
limit leaf --hard 1M
is "with a driver, what is set is enforced" "$(unenforced)" false
is "with a driver, nothing is said of a command with a limit" "$(umacct run -q --hard 1M true 2>&1)" ""

# What a hook that failed is wanted for may go at any moment, also while the status is told: here
# from the second time on that somebody asks whether it is wanted.
start_in leaf breaker
ask breaker open
ask breaker kernel fail register_kprobe 1000 -12
limit leaf --view 2>"$TEST_DIR/err"
ask breaker kernel fail umacct:view_wanted 1000 0 1
check "a hook failed for want of memory, which is said" grep -q 'out of memory' "$TEST_DIR/err"
runas $UNPRIVILEGED umacct --json >"$TEST_DIR/out"
is "anybody is told so by the status, though it isn't wanted any more" \
	"$(json_field reason <"$TEST_DIR/out")" "out of memory"
ask breaker kernel fail umacct:view_wanted 0
umacct view off "$(cgroup_path leaf)"
tell breaker exit
gone "$pid"

# Managed memory is taken through another module, which may be one that isn't followed.
if [ -c /dev/nvidia-uvm ]; then
	rmmod nvidia_uvm
	is "without nvidia-uvm, all is enforced" "$(unenforced)" false
	of_unknown_version nvidia-uvm
	insmod "$TEST_DIR/nvidia-uvm.ko"
	is "with an unknown nvidia-uvm, the status says that not all is enforced" "$(unenforced)" true
	umacct limit "$(cgroup_path leaf)" --hard 1M 2>"$TEST_DIR/err"
	check "with an unknown nvidia-uvm, a change is answered so" \
		grep -q 'not enforced: nvidia_uvm 999' "$TEST_DIR/err"
	rmmod nvidia_uvm
	load_uvm
	is "with a known nvidia-uvm, all is enforced again" "$(unenforced)" false
fi
unload_driver
answers "no driver" $ABSENT
umacct limit "$(cgroup_path leaf)" --hard 2M 2>"$TEST_DIR/err"
is "no driver: a limit is set for when there is one" $? 0
check "no driver: it is said that the driver is not loaded" grep -q '^note: the driver is not loaded' "$TEST_DIR/err"
runs_unlimited "no driver" '^note: the driver is not loaded'

of_unknown_version nvidia
check "a driver of an unknown version loads" insmod "$TEST_DIR/nvidia.ko"
answers "unknown driver" $UNKNOWN
runs_unlimited "unknown driver" '^umacct: set, but not enforced: .*999'
is "the status says that nothing is enforced" "$(unenforced)" true
rmmod nvidia
load_driver

done_testing
