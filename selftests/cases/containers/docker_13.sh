#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: docker-13
# cell: amd64-6.12-550
# long: also
#
# Docker, as Debian 13 ships it, which has annotations and CDI: limits by either hold from a
# container's first instruction; and a container starts with its limit where NVIDIA's hook, which
# fails where no GPU has memory of its own, is beside umacct's.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
. "$(dirname "$0")/../../lib/docker.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it runs Docker"
needs_accounting
[ -x /containers/usr/bin/dockerd ] || skip_all "no Docker in /containers"

OUT=$TEST_DIR/out

# Stands in for nvidia-cdi-hook's apply-cuda-memory-limits, in a CDI specification as its own is: it
# does nothing unless both variables are there, and fails then, as no GPU has memory to limit.
nvidia_up() {
	cat >"$WORLD/usr/lib/nvidia-hook" <<-'END'
		#!/bin/busybox sh
		bundle=$(sed -n 's/.*"bundle": *"\([^"]*\)".*/\1/p')
		for variable in NVIDIA_GPU_MEMORY_REQUEST NVIDIA_GPU_MEMORY_LIMIT; do
			grep -q "\"$variable=" "$bundle/config.json" || exit 0
		done
		echo 'failed to set memory limits for gpu "GPU-0": Not Supported' >&2
		exit 1
	END
	chmod 755 "$WORLD/usr/lib/nvidia-hook"
	cat >"$WORLD/etc/cdi/nvidia.json" <<-'END'
		{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "all",
			"containerEdits": {"hooks": [{"hookName": "createRuntime",
				"path": "/usr/lib/nvidia-hook", "args": ["nvidia-cdi-hook",
				"apply-cuda-memory-limits", "--gpu-id", "GPU-0"]}]}}]}
	END
}

trap 'docker_down; clean_up' EXIT
world_up
hook_up
cp "$WORLD/rootfs/bin/busybox" "$WORLD/bin/"
check "Docker starts with what umacct set up, and has an image" docker_up
[ "$test_failed" -eq 0 ] || done_testing
check "a container with an annotation runs" run_docker a1 --annotation "org.umacct.hard=${LIMIT}m"
check "a container with an annotation gets no more, from its first instruction" is_limited a1
check "a container with a device and an annotation runs" run_docker d1 \
	--device umacct.io/memory=64m --annotation "org.umacct.hard=${LIMIT}m"
check "an annotation may lower what a device has" is_limited d1
check "a container that asks for more than its device has runs" run_docker d2 \
	--device umacct.io/memory=64m --env UMACCT_CDI_HARD=1g --annotation org.umacct.hard=1g
check "a container that asks for more than its device has gets no more than that" \
	[ "$(given d2)" -le 64 ]
check "a container that asks for more than its device has gets that" [ "$(given d2)" -ge 60 ]
check "a container whose annotation can't be understood does not start" \
	fails run_docker a2 --annotation org.umacct.hard=much
check "Docker says why the container doesn't start" grep -q 'org.umacct.hard=much' "$OUT.a2"

why_not() { # COMMAND
	case $1 in
	"systemctl "*) echo "$NO_SYSTEMD" ;;
	esac
}
try_printed Docker

second_runtime

check "NVIDIA's hook is put beside umacct's" nvidia_up
check "with both of NVIDIA's variables a container fails to start" fails run_docker n1 \
	--device nvidia.com/gpu=all --env NVIDIA_GPU_MEMORY_REQUEST=8 \
	--env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT
check "it is NVIDIA's hook by which it fails" grep -q 'failed to set memory limits' "$OUT.n1"
check "with NVIDIA_GPU_MEMORY_LIMIT alone a container runs beside NVIDIA's hook" run_docker n2 \
	--device nvidia.com/gpu=all --env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT
check "with NVIDIA_GPU_MEMORY_LIMIT alone a container has its limit" is_limited n2

# Docker reads its runtimes again.
instead_of_nvidia() {
	sed -i '/"umacct": {/,/}/s|"path": "[^"]*umacct-runtime"|&, "runtimeArgs": ["--umacct-instead-of-nvidia"]|' \
		"$SETTINGS"
	kill -HUP "$dockerd"
	eventually docker_has_arguments
}
docker_has_arguments() {
	docker info --format '{{json .Runtimes}}' | grep -q instead-of-nvidia
}
check "umacct's runtime is told to take NVIDIA's place" instead_of_nvidia
check "with both of NVIDIA's variables a container runs then" run_docker n3 \
	--device nvidia.com/gpu=all --env NVIDIA_GPU_MEMORY_REQUEST=8 \
	--env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT
check "with both of NVIDIA's variables a container has its limit then" is_limited n3

many_docker

# --- undone ----------------------------------------------------------------------------------

# Docker keeps a runtime's name with each container.
docker_without_umacct() {
	cp /etc/docker/daemon.json "$SETTINGS"
	dockerd_down
	dockerd_up
}
check "Docker creates a container" quietly docker create --name left \
	--network=none models/tiny:v1 /bin/busybox true
check "Docker creates a container of another runtime" quietly docker create --name other \
	--runtime second --network=none models/tiny:v1 /bin/busybox true
check "the setup of Docker is undone" eval "umacct setup docker --undo >$TEST_DIR/undone"
is "undoing lists the containers that do not start any more" \
	"$(sed -n "s/^container \(.*\) was created with Docker's runtime umacct .*/\1/p" "$TEST_DIR/undone")" left
check "Docker's settings are what they were, byte by byte" \
	cmp "$TEST_DIR/daemon.json" /etc/docker/daemon.json
check "Docker starts with the settings that it had" docker_without_umacct
check "a container that was created with umacct's runtime does not start any more" \
	fails eval "docker start left >$OUT.left 2>&1"
check "Docker says that the runtime is not there" \
	grep -q 'unknown or invalid runtime name: umacct' "$OUT.left"
check "a container of another runtime starts" quietly docker start --attach other

done_testing
