#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
#
# A container runtime's --memory holds for the driver's memory where charging is on,
# and its statistics show it; where it is off, neither. Containers are podman's and
# runc's, as Debian ships them, and umacct finds each by its id.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
needs_vm "it runs containers"
needs_accounting
needs_containers

# run_container NAME: a container with --memory=100m, whose rmtool is a holder of
# this name; $id is its id, $cgroup its cgroup's name.
run_container() {
	fifos "$1"
	id=$(podman run --detach --name "$1" --memory=100m --network=none \
		--cgroup-parent "$(cgroup_path "")" --device /dev/nvidiactl \
		--volume "$TEST_DIR:/ctl" --rootfs /rootfs /bin/rmtool -f "/ctl/$1")
	cgroup=libpod-$id
	[ -d "$(cgroup_dir "$cgroup")" ]
}

# What the runtime says a container uses, or may use.
runtime_memory() { # ID usage|limit
	chroot "$WORLD" runc events --stats "$1" |
		sed 's/.*"memory":{/{/; s/"usage":{//' | json_field "$2"
}

state() { # NAME KEY
	podman inspect --format "{{.State.$2}}" "$1"
}

# podman 4.0 to 5.5 show anonymous memory alone; others what the cgroup is charged.
show_podman_stats() { # NAME
	diag "podman stats: $(podman stats --no-stream --format '{{.MemUsage}}' "$1")"
}

trap 'world_down; clean_up' EXIT
world_up

check "a container starts with charging off" run_container blind
blind=$id
ask blind alloc 4M 50
is "with charging off a container takes 200 MiB, whatever its --memory=100m" "$(reply_field bytes)" $((200 * MIB))
check "with charging off the runtime sees next to nothing" [ "$(runtime_memory "$blind" usage)" -lt $((16 * MIB)) ]
show_podman_stats blind
is "with charging off umacct sees all of it, by the beginning of the container's id" \
	"$(umacct show --json "$(echo "$blind" | cut -c 1-12)" | json_field system)" $((200 * MIB))

check "charging is switched on for all of the containers" charge "" on
check "another container starts with charging on" run_container held
held=$id
is "the runtime's limit is 100 MiB" "$(runtime_memory "$held" limit)" $((100 * MIB))
ask held fill 4M
given=$(($(reply_field count) * 4 * MIB))
is "near the runtime's limit the driver's answer is NO_MEMORY" "$(reply_field status)" $NO_MEMORY
check "the runtime's limit refuses nothing before 88 MiB" [ "$given" -ge $((88 * MIB)) ]
used=$(runtime_memory "$held" usage)
diag "the program holds $given bytes, the runtime shows $used"
check "the runtime shows what the container holds" [ "$used" -ge "$given" ]
check "the runtime shows no more than its limit" [ "$used" -le $((100 * MIB)) ]
show_podman_stats held
is "nobody is killed at the runtime's limit" "$(cgroup_event "$cgroup" memory.events oom_kill)" 0
is "the container runs on at the runtime's limit" "$(state held Running) $(state held OOMKilled)" "true false"
check "a smaller allocation succeeds near the runtime's limit" ask held alloc 4K
ask held free all
check "the runtime shows what is freed no longer" \
	[ "$(runtime_memory "$held" usage)" -lt $((16 * MIB)) ]

check "umacct's own limit is set by the beginning of the container's id" \
	umacct limit "$(echo "$held" | cut -c 1-12)" --hard 50M
ask held fill 4M
is "umacct's own limit holds under the runtime's" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 12"

check "the containers are removed" remove_containers
check "nothing of the removed containers is left" eventually system_is "" 0

done_testing
