#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
# cell: amd64-6.12-*,arm64-6.12-16k-*
# long: also
#
# Podman, as Debian 12 ships it, set up by "umacct setup podman": a container never makes an
# allocation without its limit, however it comes to run.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it runs containers"
needs_accounting
needs_containers

OUT=$TEST_DIR/out

# run_podman NAME OPTION...: a container that fills the driver's memory; what it printed is in
# $OUT.NAME.
run_podman() {
	run_name=$1
	shift
	podman run --rm --name "$run_name" --network=none --cgroup-parent "$(cgroup_path "$inside")" \
		--device /dev/nvidiactl "$@" --rootfs /rootfs /bin/busybox sh -c "$FILL" \
		>"$OUT.$run_name" 2>&1 </dev/null
}
inside=

# hold_podman NAME OPTION...: one whose rmtool is a holder of this name.
hold_podman() {
	run_name=$1
	shift
	fifos "$run_name"
	podman run --detach --name "$run_name" --network=none --cgroup-parent "$(cgroup_path "")" \
		--device /dev/nvidiactl --volume "$TEST_DIR:/ctl" "$@" --rootfs /rootfs \
		/bin/rmtool -f "/ctl/$run_name" >/dev/null
}

trap 'rm -rf "$WORLD/etc/umacct.toml" "$WORLD/etc/cdi" "$WORLD/etc/containers/oci" \
		"$WORLD/etc/containers/containers.conf.d"
	umount "$WORLD/run/umacctd"
	world_down; clean_up' EXIT
world_up
hook_up
account_for_all
before=$(accounts)

check "podman is set up" set_up_inside podman /etc/containers/oci/hooks.d/umacct.json \
	/etc/containers/containers.conf.d/90-umacct.conf /etc/cdi/umacct-memory.json
check "podman runs a container with an annotation" run_podman p1 --annotation "org.umacct.hard=${LIMIT}m"
check "the annotation is the podman container's limit" is_limited p1
check "podman runs a container with NVIDIA's variables" run_podman p2 --env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT
check "NVIDIA's variables are the podman container's limit" is_limited p2
cat >"$WORLD/etc/umacct.toml" <<-END
	[[rule]]
	cgroup = "$(cgroup_path '**')"
	hard = "${LIMIT}M"
	[containers]
	from_memory_limit = true
END
check "podman runs a container that a rule is for" run_podman p3
check "the rule's limit is the podman container's" is_limited p3
check "podman runs a container that asks for more than the rule" run_podman p4 --annotation org.umacct.hard=max
check "a podman container that asks for more has the rule's limit" is_limited p4
printf '[containers]\nfrom_memory_limit = true\n' >"$WORLD/etc/umacct.toml"
check "podman runs a container with a memory limit alone" run_podman p5 --memory "${LIMIT}m"
check "a memory limit alone is the podman container's hard limit" is_limited p5
rm "$WORLD/etc/umacct.toml"
check "podman does not start a container whose limit can't be understood" \
	fails run_podman p6 --annotation org.umacct.hard=much
is "the container that podman did not start ran nothing" "$(given p6)" ""
check "no account of podman's containers is left" eventually accounts_are "$before"
check "podman runs a container that asks by a device" run_podman p7 --device umacct.io/memory=64m \
	--annotation "org.umacct.hard=${LIMIT}m"
check "a podman container may not exceed what its device says" is_limited p7

# --- as docs/containers.md has it --------------------------------------------------------

why_not() { # COMMAND
	:
}
try_command() { # COMMAND
	case $1 in
	"umacct setup "*) set_up_as_printed "$1" ;;
	*) starts_with_limit "$1" "--detach --name printed --network=none --cgroup-parent $(cgroup_path "") \
		--device /dev/nvidiactl --volume $TEST_DIR:/ctl --rootfs /rootfs /bin/rmtool -f /ctl/printed" ;;
	esac
}
remove_printed() {
	quietly podman rm --force --time 0 printed
}
try_printed Podman

lives podman

# --- many, and the end --------------------------------------------------------------------

many_run() { # NAME
	inside=$MANY
	run_podman "$1" --cidfile "/tmp/$1.id" --env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT
}
many_cgroup() { # NAME
	many_id=$(cat "$WORLD/tmp/$1.id" 2>/dev/null) && echo "libpod-$many_id"
}
many_end() { # NAME...
	for many_name; do
		podman rm --force --time 0 "$many_name" >/dev/null 2>&1
	done
	rm -f "$WORLD"/tmp/m*.x.id
}
many podman
without_daemon podman

check "the setup of podman is undone" umacct setup podman --undo
is "nothing is left of the setup of podman" "$(ls -d /etc/containers /etc/cdi 2>/dev/null)" ""

done_testing
