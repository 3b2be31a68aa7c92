#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: ynl
# cell: amd64-6.12-550
#
# docs/netlink/specs/umacct.yaml is what the kernel's schema asks for and what the module
# does: the kernel's own generic client, which knows nothing else of us, reads by it what
# umacct reads.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets limits"
needs_accounting
[ -d /ynl ] || skip_all "no YNL"

cp "$SELFTESTS/umacct.yaml" /ynl/Documentation/netlink/specs/

cgroup_make parent
cgroup_leaf parent/leaf
limit parent --hard 1G
start_in parent/leaf holder
ask holder alloc 4M 3
python3 "$SELFTESTS/programs/ynl.py" /ynl/tools/net/ynl /ynl/Documentation/netlink/specs/umacct.yaml \
	"$(stat -c %i "$(cgroup_dir parent/leaf)")" "$TEST_DIR/holder.in" \
	"$(with_metadata $((8 * MIB)) 1 0)" >"$TEST_DIR/results" 2>&1
is "the kernel's generic client reads by the specification what umacct reads" $? 0
while read -r verdict what; do
	case $verdict in
	ok | not_ok) result "$verdict" "$what" ;;
	*) diag "$verdict $what" ;;
	esac
done <"$TEST_DIR/results"

done_testing
