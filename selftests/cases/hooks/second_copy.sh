#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# There is one umacct. A second copy would count everything twice: it is refused,
# with a reason, and the first one works on.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it loads modules"
needs_accounting

cgroup_leaf leaf
start_in leaf holder
ask holder alloc 1M 4

check "the same module again is refused" fails load umacct

# The same under another name, which the kernel itself doesn't mind. The name is
# in the module's own structure, 24 bytes into a section aligned to 64.
copy=$TEST_DIR/copy.ko
cp "$MODULES/umacct.ko" "$copy"
strings -t d "$copy" | awk '$2 == "umacct" && $1 % 64 == 24 { print $1 }' |
	while read -r offset; do
		printf second | dd of="$copy" bs=1 seek="$offset" conv=notrunc 2>/dev/null
	done
dmesg -c >/dev/null
check "a copy under another name is refused" fails insmod "$copy"
dmesg >"$TEST_DIR/log"
check "the log says that there is another copy" grep -qi 'already\|second copy\|another copy' "$TEST_DIR/log"
sed 's/^/# /' "$TEST_DIR/log"

is "the first umacct still counts" "$(system_memory leaf)" $((4 * MIB))
ask holder free 0
is "the first umacct sees the frees" "$(system_memory leaf)" $((3 * MIB))

done_testing
