#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A cgroup of version 1 may have the same id as one of version 2. Its removal is
# nothing to the account of the other.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it mounts another hierarchy of cgroups"
needs_accounting

V1=$TEST_DIR/v1
mkdir "$V1"
mount -t cgroup -o none,name=umacct_test cgroup "$V1" ||
	skip_all "this kernel has no cgroups of version 1"

figures_told() { # NAME
	nltest figures "$(cgroup_id "$1")" >/dev/null
}

# Ids are given in order, some to files: with a few to meet, one is met soon. Those in
# "bare" have fewer files, so that the distances differ.
cgroup_leaf home
cgroup_make bare
echo -memory >"$(cgroup_dir bare)/cgroup.subtree_control"
start_in home holder
holder_pid=$pid
for i in $(seq 30); do
	cgroup_leaf "bare/$i"
	cgroup_leaf "met$i"
	cgroup_add "met$i" "$holder_pid"
	ask holder alloc 4K
	echo "$(cgroup_id "met$i") met$i" >>"$TEST_DIR/ids"
done
last=$(tail -n 1 "$TEST_DIR/ids" | cut -d' ' -f1)
met=
id=0
nr=0
# So many at a time: each program that is started takes longer than a cgroup.
while [ "$id" -le "$last" ] && [ ! "$met" ]; do
	names=$(seq $((nr + 1)) $((nr + 64)))
	nr=$((nr + 64))
	# shellcheck disable=SC2086 # each is a word
	(cd "$V1" && mkdir $names && stat -c '%i %n' $names) >"$TEST_DIR/made"
	id=$(tail -n 1 "$TEST_DIR/made" | cut -d' ' -f1)
	read -r id_met i met <<-END
		$(awk 'NR == FNR { name[$1] = $2; next } $1 in name { print $1, $2, name[$1]; exit }' \
			"$TEST_DIR/ids" "$TEST_DIR/made")
	END
done

if [ "$met" ]; then
	diag "cgroup $i of version 1 has the id of $met: $id_met"
	cgroup_add home "$holder_pid"
	check "the account whose namesake will go has its cgroup's figures" figures_told "$met"
	check "the namesake, a cgroup of version 1, is removed" rmdir "$V1/$i"
	sleep 1
	is "the account of its namesake has what it had" "$(account "$met" system)" $PAGE
	check "the account of the removed cgroup's namesake has its cgroup's figures" figures_told "$met"
	check "a limit can be set on the removed cgroup's namesake" limit "$met" --hard 1M
else
	skip "a removal of another hierarchy" "no id was met among $nr"
fi
rmdir "$V1"/*/
umount "$V1"

done_testing
