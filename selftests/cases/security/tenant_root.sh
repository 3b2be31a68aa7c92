#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A tenant who is root in a container, with namespaces of its own, and with or without
# CAP_SYS_ADMIN in there. He reads, lifts, escapes, exhausts and floods: each attempt is a
# check, and ends as docs/security.md says.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets limits for everyone"
needs_accounting

HARD=$((4 * MIB))

# As a runtime leaves it to a container: a limited cgroup, and below it the tenant's own.
cgroup_make container
cgroup_leaf container/own
cgroup_leaf neighbour
for file in . cgroup.procs cgroup.subtree_control; do
	chown $UNPRIVILEGED "$(cgroup_dir container/own)/$file"
done
limit container --hard $HARD >/dev/null
start_in neighbour neighbour
ask neighbour alloc 1M 3

inside() { # COMMAND...: as the container's root
	# shellcheck disable=SC2086 # one word or none
	in_cgroup container/own contained $mode $UNPRIVILEGED "$@"
}

# 126 and 127 are the container's own.
check_refused() { # DESCRIPTION COMMAND...: to the container's root
	check_what=$1
	shift
	inside "$@" >/dev/null 2>"$TEST_DIR/err"
	check_code=$?
	case $check_code in
	0 | 126 | 127)
		diag "$check_code: $(cat "$TEST_DIR/err")"
		check "$check_what" false
		;;
	*) check "$check_what" true ;;
	esac
}

settings() {
	umacct ls --all --json | tr '{' '\n' | sed 's/"usage.*//' | grep -E '"(hard|soft)'
	umacct --json | json_field reserve
}

# --- reads -------------------------------------------------------------------

reads() {
	start_in container/own own runas $UNPRIVILEGED rmtool
	ask own alloc 64K
	is "$who is root in its container" "$(inside id -u)" 0
	is "$who sees what is its own, by its path in the container" \
		"$(inside umacct show --json / | json_field system)" 65536
	is "$who sees no neighbour among the accounts" \
		"$(inside umacct ls --all --json | grep -c neighbour)" 0
	is "$who sees no neighbour among the processes, where it has one" \
		"$(inside umacct ps --json | grep -o '"comm":' | wc -l)" 1
	for path in "$(cgroup_path neighbour)" /../../neighbour; do
		inside umacct show --json "$path" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
		check "$who may not see $path" [ $? -ne 0 ]
		is "$who sees no number of $path" "$(json_field system <"$TEST_DIR/out")" ""
	done
	for type in debugfs tracefs; do
		check_refused "$who can't mount $type" mount -t $type none /tmp
	done
	check_refused "$who can't read debugfs" cat /mnt/kernel/debug/umacct/status
	is "$who gets no more by raw messages" \
		"$(inside nltest deny "$(cgroup_id container/own)" | grep '^not ok')" ""
	tell own exit
}

# His network namespace lets him join the group of events: they are told to the first alone.
eavesdrops() {
	nltest listen >"$TEST_DIR/told" 2>"$TEST_DIR/listener" &
	holders="$holders $!"
	listener=$!
	for ear in listen eavesdrop; do
		inside nltest $ear >"$TEST_DIR/$ear.told" 2>"$TEST_DIR/$ear.listener" &
		holders="$holders $!"
		check "$who may listen: $ear" eventually grep -q listening "$TEST_DIR/$ear.listener"
	done
	eventually grep -q listening "$TEST_DIR/listener"
	limit neighbour --hard 3M >/dev/null
	ask neighbour alloc 1M
	check "an event of the neighbour's is heard outside" \
		eventually grep -q "/neighbour" "$TEST_DIR/told"
	is "an event of the neighbour's is heard by nobody inside" "$(cat "$TEST_DIR/listen.told" "$TEST_DIR/eavesdrop.told")" ""
	limit neighbour --hard max >/dev/null
	kill $listener
	echo 1 >"$(cgroup_dir container/own)/cgroup.kill"
}

# --- lifts and escapes ---------------------------------------------------------

lifts() {
	settings >"$TEST_DIR/before"
	for target in / "$(cgroup_path container)" /..; do
		check_refused "$who lifts no limit of $target" umacct limit "$target" --hard max
		check_refused "$who doesn't charge $target another way" umacct charge off "$target"
	done
	check_refused "$who has no reserve and no reclaim" \
		sh -c 'umacct reserve 1G || umacct preflight --fix'
	# shellcheck disable=SC2016 # the inner shell expands it
	check_refused "$who can't write the module's parameters" sh -c '
		for file in /sys/module/umacct/parameters/*; do
			{ echo 0 >$file; } 2>/dev/null && exit
		done
		exit 1'
	check_refused "$who can't remove the module" rmmod umacct
	check_refused "$who can't switch probes off" \
		sh -c 'echo 0 >/mnt/kernel/debug/kprobes/enabled'
	settings >"$TEST_DIR/after"
	check "all settings are what they were before $who tried" cmp "$TEST_DIR/before" "$TEST_DIR/after"
}

# In cgroups of his own making he is still below the container's. With a cgroup file
# system that he mounts he sees no other.
escapes() {
	# shellcheck disable=SC2016 # the inner shell expands it
	filled=$(inside sh -c '
		cd /sys/fs/cgroup || exit
		mkdir made && echo $$ >made/cgroup.procs || exit
		contained 0 rmtool "fill 64K" pause >/tmp/within &
		rmtool "fill 64K" pause >/tmp/beside &
		until [ "$(cat /tmp/within /tmp/beside | grep -c fill)" -eq 2 ]; do
			sleep 0.1
		done
		cat /tmp/within /tmp/beside
		rm /tmp/within /tmp/beside' 2>&1)
	total=$(echo "$filled" | sed -n 's/.*fill .*count=\([0-9]*\).*/\1/p' |
		awk '{ sum += $1 } END { print sum * 65536 }')
	diag "$filled"
	check "$who gets something in a cgroup of its own, in namespaces within" [ "$total" -gt 0 ]
	check "$who gets no more than the container's limit, all together" [ "$total" -le $HARD ]
	rmdir "$(cgroup_dir container/own/made)"
	check "$who sees the neighbour's cgroup" inside [ -d "/mnt/fs/cgroup$(cgroup_path neighbour)" ]
	check_refused "$who doesn't move to the neighbour's cgroup" sh -c \
		"echo \$\$ >/mnt/fs/cgroup$(cgroup_path neighbour)/cgroup.procs"
	check_refused "$who doesn't move out of its own cgroup" sh -c \
		"echo \$\$ >/mnt/fs/cgroup$(cgroup_path container)/cgroup.procs"
	is "a cgroup file system that $who mounts has no neighbour in it" "$(inside find /sys/fs/cgroup -name neighbour)" ""
}

# --- exhausts and floods ---------------------------------------------------------

exhausts() {
	records=$(status_field records)
	# shellcheck disable=SC2016 # the inner shell expands it
	inside sh -c '
		cd /sys/fs/cgroup || exit
		for i in $(seq 40); do
			mkdir many || exit
			sh -c "echo \$\$ >many/cgroup.procs && exec rmtool \"alloc 4K 20\"" >/dev/null 2>&1
			until rmdir many 2>/dev/null; do
				sleep 0.1
			done
		done'
	is "of 40 cgroups that came and went no account is left" \
		"$(umacct ls --all --json | grep -c container/own/many)" 0
	check "of 40 cgroups that came and went no record is left" eventually status_is records "$records"
	is "the container holds nothing when its cgroups are gone" "$(system_memory container)" 0
}

floods() {
	settings >"$TEST_DIR/before"
	inside nltest storm 1 2 >"$TEST_DIR/flood" 2>&1
	diag "$(cat "$TEST_DIR/flood")"
	check "whatever $who sends is answered" grep -q ' unanswered=0' "$TEST_DIR/flood"
	check "whatever $who sends changes nothing" grep -q ' changed=0' "$TEST_DIR/flood"
	settings >"$TEST_DIR/after"
	check "whatever $who sends leaves the settings as they were" cmp "$TEST_DIR/before" "$TEST_DIR/after"
	check "the neighbour is served while $who sends" ask neighbour alloc 4K
	ask neighbour free 1
}

for mode in "" --no-admin; do
	who="a container's root${mode:+ without CAP_SYS_ADMIN}"
	reads
	eavesdrops
	lifts
	escapes
	exhausts
	floods
done

done_testing
