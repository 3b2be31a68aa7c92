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

# --- while one runs, and after ---------------------------------------------------------------

# Where a container's first process is, as the kernel says.
cgroup_of() { # ENGINE NAME
	sed -n 's/^0:://p' "/proc/$("$1" inspect --format '{{.State.Pid}}' "$2")/cgroup"
}

# exec_allocates ENGINE NAME: prints "ok" or "refused": what a program that is entered into a container and
# asks the driver for 1 MiB is told.
exec_allocates() {
	"$1" exec "$2" "$TEST_DIR/rmtool" 'alloc 1M' | cut -d ' ' -f 1
}

quietly() {
	"$@" >/dev/null
}

is_frozen() {
	grep -qx 'frozen 1' "$CGROUPS$1/cgroup.events"
}

# lives ENGINE: follows a container through exec, pause, restart and its end. ENGINE is docker or
# podman: their commands have the same names. The case has hold_ENGINE NAME OPTION..., which starts one whose
# rmtool is a holder of that name, and run_ENGINE NAME OPTION..., which runs one to its end.
lives() {
	lives_accounts=$(accounts)
	# What is entered into a container of a runtime in a chroot sees the machine's root.
	cp "$(command -v rmtool)" "$TEST_DIR/"
	check "$1 starts a container with a limit" "hold_$1" box --env NVIDIA_GPU_MEMORY_LIMIT="$LIMIT" \
		--volume "$TEST_DIR:$TEST_DIR"
	ask box fill 1M
	is "$1: the container's limit holds" "$(reply_field status)" "$NO_MEMORY"
	box=$(cgroup_of "$1" box)
	held=$(target "$box" system)
	check "$1: the container took what its limit allows" [ "$held" -ge $((LEAST * MIB)) ]
	is "$1 exec: what enters a container takes from its limit" "$(exec_allocates "$1" box)" refused
	check "$1 pauses a container" quietly "$1" pause box
	check "$1: the kernel has frozen a paused container" is_frozen "$box"
	is "$1: a paused container's memory is visible as before" "$(target "$box" system)" "$held"
	check "$1 unpauses a container" quietly "$1" unpause box
	ask box free all
	is "$1 exec: what enters a container gets what its limit has left" "$(exec_allocates "$1" box)" ok
	fifos entered
	check "$1 exec starts a program that stays" quietly "$1" exec --detach box \
		"$TEST_DIR/rmtool" -f "$TEST_DIR/entered"
	ask entered alloc 1M 5
	is "$1 exec: what entered a container is on the container's account" "$(target "$box" system)" $((5 * MIB))
	ask entered fill 1M
	is "$1 exec: what entered a container is refused at its limit" "$(reply_field status)" "$NO_MEMORY"
	lives_cgroup=$(stat -c %i "$CGROUPS$box")
	check "$1 restarts a container" quietly "$1" restart --time 0 box
	box=$(cgroup_of "$1" box)
	check "$1: a restarted container is another cgroup" [ "$(stat -c %i "$CGROUPS$box")" != "$lives_cgroup" ]
	ask box fill 1M
	is "$1: a restarted container's limit holds again" "$(reply_field status)" "$NO_MEMORY"
	check "$1: a restarted container gets no more than before" [ "$(reply_field count)" -le "$MOST" ]
	check "$1: a restarted container gets what its limit allows" [ "$(reply_field count)" -ge "$LEAST" ]
	check "$1 kills the container" quietly "$1" kill box
	check "$1 removes the container" quietly "$1" rm --force box
	check "$1: no account of the removed container is left" eventually accounts_are "$lives_accounts"
	check "$1 does not start a container without a program" \
		fails "run_$1" dead --env NVIDIA_GPU_MEMORY_LIMIT="$LIMIT" --entrypoint /no/such/program
	check "$1: no account of a container that died in start-up is left" eventually accounts_are "$lives_accounts"
	check "$1: no memory of the container is left" eventually system_is "" 0
}

# --- many ---------------------------------------------------------------------------------

# The cgroup that they are in.
MANY=many
# So many every day, and so many in "make test-long".
MANY_OF=12
[ -z "${CASE_LONG-}" ] || MANY_OF=200
at_once=5

# many RUNTIME: runs $MANY_OF containers, some at once, and kills every fourth while it starts: once it
# has a cgroup. The case has many_run NAME, which runs one whose limit is $LIMIT; many_cgroup NAME,
# which prints the name of its cgroup, in $MANY, or nothing yet; and many_end NAME..., after which the
# runtime knows no more of those that were killed.
many() {
	many_of="$MANY_OF containers of $1"
	account_for_all
	many_accounts=$(accounts)
	many_killed=
	many_late=
	many_struck=0
	cgroup_make "$MANY"
	start_many
	is "none of $many_of takes longer than $PATIENCE s" "$many_late" ""
	check "of $many_of, some at once and some killed in start-up, none was given more" none_above
	check "$many_of, of which $at_once ran at once, never held more than so many limits" \
		[ "$(account "$MANY" peak)" -le $((at_once * LIMIT * MIB)) ]
	killed=$(echo "$many_killed" | wc -w)
	diag "$(all_that_ran) of them came to an end, $killed were killed, with $many_struck processes of $1"
	check "some of $many_of were killed" [ "$killed" -ge $((MANY_OF / 5)) ]
	check "processes of $1 itself were killed with those of $many_of" [ "$many_struck" -ge "$killed" ]
	check "those of $many_of that weren't killed ran" [ "$(all_that_ran)" -ge $((MANY_OF * 3 / 4)) ]
	check "what the killed ones of $many_of left is removed" eventually tidy_up
	cgroup_remove "$(cgroup_path "$MANY")"
	check "no account of $many_of is left" eventually accounts_are "$many_accounts"
	check "no memory of $many_of is left" eventually system_is "" 0
}

start_many() {
	for i in $(seq "$MANY_OF"); do
		many_run "m$i.x" &
		many_running="$many_running m$i.x:$!"
		[ $((i % 4)) -ne 0 ] || kill_in_start "m$i.x" $!
		[ $((i % at_once)) -ne 0 ] || wait_for_many
	done
	wait_for_many
}

# Waits for the containers alone, not for the case's daemons. One that takes longer than PATIENCE is ended.
wait_for_many() {
	eventually all_have_ended
	for many_one in $many_running; do
		if kill -0 "${many_one#*:}" 2>/dev/null; then
			many_late="$many_late ${many_one%:*}"
			tell_of "${many_one%:*}"
			kill_all_of "${many_one%:*}"
			kill -KILL "${many_one#*:}"
		fi
		wait "${many_one#*:}"
	done
	many_running=
}
many_running=

all_have_ended() {
	for many_one in $many_running; do
		! kill -0 "${many_one#*:}" 2>/dev/null || return 1
	done
}

# The processes that have one of these words in their command line. Its words are separated by zeros: without -z
# the grep of busybox sees only the first.
processes_of() { # WORD...
	grep -lszF "$(printf '%s\n' "$@")" /proc/[0-9]*/cmdline | while read -r process_file; do
		process_file=${process_file#/proc/}
		echo "${process_file%/cmdline}"
	done
}

# Counts them in many_struck.
kill_all_of() { # WORD...
	for kill_pid in $(processes_of "$@"); do
		! kill -KILL "$kill_pid" 2>/dev/null || many_struck=$((many_struck + 1))
	done
}

# Prints what each of them runs, and what that waits for.
tell_of() { # WORD...
	processes_of "$@" | while read -r tell_pid; do
		diag "$tell_pid, in $(cat "/proc/$tell_pid/wchan"): $(tr '\0' ' ' <"/proc/$tell_pid/cmdline")"
	done 2>/dev/null
}

# Whatever has its name or its id in its command, and what is in its cgroup. Podman's cgroups are
# named libpod-ID.
kill_in_start() { # NAME PID
	read_seconds
	# shellcheck disable=SC2154 # read_seconds sets it
	kill_until=$((seconds + PATIENCE))
	until many_at=$(many_cgroup "$1") && [ "$many_at" ] && [ -d "$(cgroup_dir "$MANY/$many_at")" ]; do
		read_seconds
		! process_is_gone "$2" && [ "$seconds" -le "$kill_until" ] || return
	done
	many_killed="$many_killed $1"
	kill_all_of "$1" "${many_at#libpod-}"
	echo 1 >"$(cgroup_dir "$MANY/$many_at")/cgroup.kill"
}

none_above() {
	for i in $(seq "$MANY_OF"); do
		[ "$(given "m$i.x")" ] || continue
		[ "$(given "m$i.x")" -le "$MOST" ] || return 1
	done
}

all_that_ran() {
	ran=0
	for i in $(seq "$MANY_OF"); do
		[ ! "$(given "m$i.x")" ] || ran=$((ran + 1))
	done
	echo "$ran"
}

tidy_up() {
	# shellcheck disable=SC2086 # each is a word
	many_end $many_killed
	for many_at in "$(cgroup_dir "$MANY")"/*/; do
		echo 1 >"$many_at/cgroup.kill"
		rmdir "$many_at"
	done 2>/dev/null
	[ ! "$(find "$(cgroup_dir "$MANY")" -mindepth 1 -type d)" ]
}

# --- without umacctd ------------------------------------------------------------------------

# without_daemon RUNTIME: starts $MANY_OF containers, or 100 in "make test-long", while umacctd is killed
# again and again. It uses what the case has for many.
without_daemon() {
	[ -z "${CASE_LONG-}" ] || MANY_OF=100
	many_of="$MANY_OF containers of $1, with umacctd killed again and again,"
	rm -f "$OUT".m*.x "$TEST_DIR/enough" "$TEST_DIR/deaths"
	many_end
	many_killed=
	many_late=
	many_struck=0
	cgroup_make "$MANY"
	for policy_file in /etc/umacct.toml "$WORLD/etc/umacct.toml"; do
		printf '[[rule]]\ncgroup = "%s/*"\nhard = "%sM"\n' "$(cgroup_path "$MANY")" "$LIMIT" >"$policy_file"
	done
	daemon_dies_again_and_again &
	many_killer=$!
	for i in $(seq "$MANY_OF"); do
		many_run "m$i.x" &
		many_running="$many_running m$i.x:$!"
		[ $((i % at_once)) -ne 0 ] || wait_for_many
	done
	wait_for_many
	touch "$TEST_DIR/enough"
	wait "$many_killer"
	deaths=$(wc -l <"$TEST_DIR/deaths")
	diag "umacctd was killed $deaths times"
	is "none of $many_of takes longer than $PATIENCE s" "$many_late" ""
	check "umacctd was killed at least as often as $at_once of $many_of ran at once" \
		[ "$deaths" -ge $((MANY_OF / at_once)) ]
	check "none of $many_of was given more than its limit" none_above
	is "all of $many_of ran" "$(all_that_ran)" "$MANY_OF"
	check "what is left of $many_of is removed" eventually tidy_up
	rm -f /etc/umacct.toml "$WORLD/etc/umacct.toml"
	cgroup_remove "$(cgroup_path "$MANY")"
}

# How long it lives, up to 1.3 s, and how long there is none, up to 2.6 s, is by chance: that is what is
# tried. Started at once each time, it left containers too little of an emulated processor.
daemon_dies_again_and_again() {
	while [ ! -e "$TEST_DIR/enough" ]; do
		/usr/sbin/umacctd >/dev/null 2>&1 &
		usleep $(($(od -An -N2 -tu2 /dev/urandom) * 20))
		kill -KILL $!
		wait $! 2>/dev/null
		echo >>"$TEST_DIR/deaths"
		usleep $(($(od -An -N2 -tu2 /dev/urandom) * 40))
	done
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
	end_daemon "$containerd"
}

# A daemon that waits for a container's end may not heed SIGTERM.
end_daemon() { # PID
	kill "$1"
	eventually process_is_gone "$1" || kill -KILL "$1"
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
