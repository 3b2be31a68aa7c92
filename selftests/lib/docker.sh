# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# For the cases that run Docker, after containers.sh.

# shellcheck disable=SC2034 # who sources this uses it
SETTINGS=$WORLD/etc/docker/daemon.json
# As Docker itself calls it: by this umacct knows that what is below are its containers.
PARENT=docker

docker() {
	chroot "$WORLD" docker "$@"
}

# A second runtime, as nvidia-ctk registers its own. It is runc, and writes down that it was run.
SECOND=/usr/lib/second-runtime
second_up() {
	printf '#!/bin/sh\necho "$*" >>%s\nexec runc "$@"\n' "$TEST_DIR/second" >"$WORLD$SECOND"
	chmod 755 "$WORLD$SECOND"
}

# docker_up: with umacct set up beside what an administrator had in its settings, and an image.
docker_up() {
	second_up
	mkdir -p /etc/docker
	printf '{\n    "log-driver": "none",\n    "debug": false,\n    "runtimes": {"second": {"path": "%s"}}\n}' \
		"$SECOND" >/etc/docker/daemon.json
	cp /etc/docker/daemon.json "$TEST_DIR/daemon.json"
	set_up_inside docker /etc/docker/daemon.json /etc/cdi/umacct-memory.json || return 1
	cgroup_make "$PARENT"
	mkdir -p /var/lib/docker "$WORLD/var/lib/docker"
	mount --bind "$WORLD/var/lib/docker" /var/lib/docker
	daemons_up || return 1
	tar -C "$WORLD/rootfs" -c . | chroot "$WORLD" docker import - models/tiny:v1 >/dev/null
}

# A containerd that Docker starts by itself has fifteen seconds, which an emulated machine may not.
daemons_up() {
	containerd_up && dockerd_up
}

dockerd_up() {
	chroot "$WORLD" dockerd --containerd=/run/containerd/containerd.sock --iptables=false \
		--userland-proxy=false --bridge=none --storage-driver=vfs --exec-opt native.cgroupdriver=cgroupfs \
		--cgroup-parent "$(cgroup_path "$PARENT")" >"$TEST_DIR/dockerd.log" 2>&1 &
	dockerd=$!
	eventually docker version >/dev/null 2>&1 && return 0
	diag "$(tail -n 20 "$TEST_DIR/dockerd.log")"
	return 1
}

dockerd_down() {
	end_daemon "$dockerd"
}

# Docker may wait for ever for a container that was killed in its start. After PATIENCE the client is killed, and
# the exit code is 137.
docker_remove() { # NAME...
	[ $# -eq 0 ] || timeout -s KILL "$PATIENCE" chroot "$WORLD" docker rm --force "$@" >/dev/null 2>&1
}

# What Docker can't remove it can when it is started again, as an administrator would.
docker_again() { # NAME...
	diag "Docker did not remove what was killed within $PATIENCE s, and is started again"
	# shellcheck disable=SC2154 # containers.sh sets it
	kill -KILL "$dockerd" "$containerd"
	gone "$dockerd"
	gone "$containerd"
	daemons_up
	docker_remove "$@"
}

docker_down() {
	# shellcheck disable=SC2046 # each is a word
	docker_remove $(timeout -s KILL "$PATIENCE" chroot "$WORLD" docker ps --all --quiet)
	dockerd_down
	containerd_down
	umount /var/lib/docker
	umount "$WORLD/run/umacctd"
	umount -l "$WORLD"
	rm -rf /etc/docker /etc/cdi /var/lib/umacct/setup /etc/umacct.toml
}

# run_docker NAME OPTION...: a container that fills the driver's memory; what it printed is in
# $OUT.NAME.
run_docker() {
	run_name=$1
	shift
	docker run --rm --name "$run_name" --network=none --device /dev/nvidiactl "$@" \
		models/tiny:v1 /bin/busybox sh -c "$FILL" >"$OUT.$run_name" 2>&1 </dev/null
}

# hold_docker NAME OPTION...: one whose rmtool is a holder of this name.
hold_docker() {
	run_name=$1
	shift
	fifos "$run_name"
	docker run --detach --name "$run_name" --network=none --device /dev/nvidiactl \
		--volume "$TEST_DIR:/ctl" "$@" models/tiny:v1 /bin/rmtool -f "/ctl/$run_name" >"$TEST_DIR/id"
}

# Whatever runtime of Docker's a container asks for, it has its limit.
second_runtime() {
	check "a container that asks for another runtime runs" run_docker second --runtime second \
		--env NVIDIA_GPU_MEMORY_LIMIT="$LIMIT"
	check "a container that asks for another runtime gets no more, from its first instruction" \
		is_limited second
	check "the runtime that a container asks for creates it" grep -q ' create ' "$TEST_DIR/second"
}

# What Docker says of a container.
inspect() { # NAME KEY
	docker inspect --format "{{.$2}}" "$1"
}

# See printed.sh. The case has why_not.
try_command() { # COMMAND
	case $1 in
	"umacct setup "*) set_up_as_printed "$1" ;;
	*) starts_with_limit "$1" "--detach --name printed --network=none --device /dev/nvidiactl \
		--volume $TEST_DIR:/ctl models/tiny:v1 /bin/rmtool -f /ctl/printed" ;;
	esac
}
remove_printed() {
	quietly docker rm --force printed
}
NO_SYSTEMD="this machine has no systemd; Docker is started after the setup"

# See many, in containers.sh.
many_docker() {
	many_run() {
		run_docker "$1" --cgroup-parent "$(cgroup_path "$MANY")" --cidfile "/tmp/$1.id" \
			--env NVIDIA_GPU_MEMORY_LIMIT="$LIMIT"
	}
	many_cgroup() {
		cat "/tmp/$1.id" 2>/dev/null
	}
	many_end() {
		docker_remove "$@"
		[ $? -ne 137 ] || docker_again "$@"
		rm -f /tmp/m*.x.id
	}
	many Docker
	without_daemon Docker
}
