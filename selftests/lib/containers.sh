# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# For the cases that run containers, after helpers.sh: the runtimes' world is a small
# Debian of its own, which a chroot is enough for.

WORLD=/containers

# In a container that may hold so many MiB: three times as much, from its first instruction on.
# Each case sets OUT: what a container printed is in $OUT.NAME.
LIMIT=24
# shellcheck disable=SC2034 # who sources this uses it
FILL="/bin/rmtool 'alloc 1M $((LIMIT * 3))'; true"
# The limit allows this many allocations of 1 MiB, less what counts besides.
MOST=$LIMIT
LEAST=$((LIMIT - 3))

world_up() {
	cp "$(command -v rmtool)" "$WORLD/rootfs/bin/"
	# A container's root is pivoted to, and that takes a mount to come from.
	mount --bind "$WORLD" "$WORLD"
	mount --rbind /dev "$WORLD/dev"
	mount --rbind /sys "$WORLD/sys"
	mount -t proc proc "$WORLD/proc"
	mount -t tmpfs tmpfs "$WORLD/run"
	mount --bind /tmp "$WORLD/tmp"
}

world_down() {
	remove_containers
	umount -l "$WORLD"
}

# How many allocations it was given.
given() { # NAME
	sed -n 's/.* count=\([0-9]*\).*/\1/p' "$OUT.$1" 2>/dev/null | tail -n 1
}

is_limited() { # NAME
	was_given=$(given "$1")
	[ "${was_given:-0}" -ge "$LEAST" ] && [ "$was_given" -le "$MOST" ] && return 0
	diag "$(cat "$OUT.$1")"
	return 1
}

# The cgroup that all are in has its account, before accounts are counted.
account_for_all() {
	cgroup_leaf first
	in_cgroup first rmtool 'alloc 4K' >/dev/null
	cgroup_remove "$(cgroup_path first)"
}

accounts() {
	status_field accounts
}

accounts_are() { # N
	[ "$(accounts)" -eq "$1" ]
}

# --- many ---------------------------------------------------------------------------------

# The cgroup that they are in.
MANY=many
at_once=5

# many N RUNTIME: runs N containers, some at once, and kills every fourth while it starts: once it
# has a cgroup. The case has many_run NAME, which runs one whose limit is $LIMIT; many_cgroup NAME,
# which prints the name of its cgroup, in $MANY, or nothing yet; and many_end NAME, after which the
# runtime knows no more of it.
many() {
	many_of="$1 containers of $2"
	account_for_all
	many_accounts=$(accounts)
	killed=0
	cgroup_make "$MANY"
	start_many "$1"
	check "of $many_of, some at once and some killed in start-up, none was given more" none_above "$1"
	check "$many_of, of which $at_once ran at once, never held more than so many limits" \
		[ "$(account "$MANY" peak)" -le $((at_once * LIMIT * MIB)) ]
	diag "$(all_that_ran "$1") of them came to an end, $killed were killed"
	check "some of $many_of were killed" [ "$killed" -ge $(($1 / 5)) ]
	check "those of $many_of that weren't killed ran" [ "$(all_that_ran "$1")" -ge $(($1 * 3 / 4)) ]
	check "what the killed ones of $many_of left is removed" eventually tidy_up "$1"
	cgroup_remove "$(cgroup_path "$MANY")"
	check "no account of $many_of is left" eventually accounts_are "$many_accounts"
	check "no memory of $many_of is left" eventually system_is "" 0
}

start_many() { # N
	for i in $(seq "$1"); do
		many_run "m$i.x" &
		many_pids="$many_pids $!"
		[ $((i % 4)) -ne 0 ] || kill_in_start "m$i.x" $!
		[ $((i % at_once)) -ne 0 ] || wait_for_many
	done
	wait_for_many
}

# Not for the case's daemons.
wait_for_many() {
	for many_pid in $many_pids; do
		wait "$many_pid"
	done
	many_pids=
}
many_pids=

# Whatever has its cgroup's name in its command, and what is in that cgroup.
kill_in_start() { # NAME PID
	until many_at=$(many_cgroup "$1") && [ "$many_at" ] && [ -d "$(cgroup_dir "$MANY/$many_at")" ]; do
		! process_is_gone "$2" || return
	done
	killed=$((killed + 1))
	grep -lsF -e "$many_at" /proc/[0-9]*/cmdline | while read -r kill_file; do
		kill_pid=${kill_file#/proc/}
		kill -KILL "${kill_pid%/cmdline}" 2>/dev/null
	done
	echo 1 >"$(cgroup_dir "$MANY/$many_at")/cgroup.kill"
}

none_above() { # N
	for i in $(seq "$1"); do
		[ "$(given "m$i.x")" ] || continue
		[ "$(given "m$i.x")" -le "$MOST" ] || return 1
	done
}

all_that_ran() { # N
	ran=0
	for i in $(seq "$1"); do
		[ ! "$(given "m$i.x")" ] || ran=$((ran + 1))
	done
	echo "$ran"
}

tidy_up() { # N
	for i in $(seq "$1"); do
		many_end "m$i.x"
	done
	for many_at in "$(cgroup_dir "$MANY")"/*/; do
		echo 1 >"$many_at/cgroup.kill"
		rmdir "$many_at"
	done 2>/dev/null
	[ ! "$(find "$(cgroup_dir "$MANY")" -mindepth 1 -type d)" ]
}

# --- runtimes -----------------------------------------------------------------------------

ctr() {
	chroot "$WORLD" ctr "$@"
}

containerd_up() {
	chroot "$WORLD" containerd >"$TEST_DIR/containerd.log" 2>&1 &
	containerd=$!
	eventually ctr version >/dev/null 2>&1 && return 0
	diag "$(tail -n 20 "$TEST_DIR/containerd.log")"
	return 1
}

containerd_down() {
	kill "$containerd"
	gone "$containerd"
}

podman() {
	chroot "$WORLD" podman "$@"
}

# podman gives up on who takes long to die.
remove_containers() {
	eventually podman rm --all --force --time 0 >/dev/null
}

# umacct's programs in the runtimes' world, where they are installed, with the libraries that they
# have outside: those may be newer. The hook is looked for beside the runtime, which is started by
# the loader that lies among these.
hook_up() {
	hook_libraries=/umacct/lib
	mkdir -p "$WORLD$hook_libraries" "$WORLD/run/umacctd" /run/umacctd "$WORLD/usr/lib/umacct"
	[ -e "$WORLD/bin/sh" ] || cp "$WORLD/rootfs/bin/busybox" "$WORLD/bin/sh"
	for hook_file in /lib/*.so*; do
		cp -L "$hook_file" "$WORLD$hook_libraries/"
	done
	for hook_loader in "$WORLD$hook_libraries"/ld-linux*; do
		hook_loader=$hook_libraries/${hook_loader##*/}
	done
	for hook_file in umacct-hook umacct-runtime; do
		cp -L "/usr/lib/umacct/$hook_file" "$WORLD/umacct/"
		for hook_place in "$WORLD/usr/lib/umacct" "$WORLD$hook_libraries"; do
			printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$hook_loader" \
				"$hook_libraries" "/umacct/$hook_file" >"$hook_place/$hook_file"
			chmod 755 "$hook_place/$hook_file"
		done
	done
	# What umacctd and the hook both look at.
	mount --bind /run/umacctd "$WORLD/run/umacctd"
}

# What "umacct setup" made outside, for the runtimes inside.
set_up_inside() { # PART FILE...
	set_up_part=$1
	shift
	umacct setup "$set_up_part" >/dev/null || return 1
	for set_up_file in "$@"; do
		mkdir -p "$WORLD${set_up_file%/*}"
		cp "$set_up_file" "$WORLD$set_up_file"
	done
}
