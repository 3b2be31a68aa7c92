#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: docker
# cell: amd64-6.12-*,arm64-6.12-16k-*
# long: yes
#
# Docker, as Debian 12 ships it, set up by "umacct setup docker": a container never makes an
# allocation without its limit, however it comes to run, and --memory holds with charging on.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
. "$(dirname "$0")/../../lib/docker.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it runs Docker"
needs_accounting
[ -x /containers/usr/bin/dockerd ] || skip_all "no Docker in /containers"

OUT=$TEST_DIR/out

trap 'docker_down; clean_up' EXIT
world_up
hook_up
check "Docker starts with what umacct set up, and has an image" docker_up
[ "$test_failed" -eq 0 ] || done_testing
check "what was in Docker's settings before still is" grep -q '^    "log-driver": "none",$' "$SETTINGS"
is "umacct's runtime is Docker's default" "$(docker info --format '{{.DefaultRuntime}}')" umacct
check "a container that asks for nothing runs" run_docker free
check "a container that asks for nothing takes more than $LIMIT MiB" [ "$(given free)" -gt $((LIMIT * 2)) ]
before=$(accounts)
check "a container with NVIDIA's variable runs" run_docker one --env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT
check "a container with NVIDIA's variable gets no more, from its first instruction" is_limited one
check "a container whose limit can't be understood does not start" \
	fails run_docker wrong --env NVIDIA_GPU_MEMORY_LIMIT=much
check "Docker says why the container doesn't start" grep -q 'NVIDIA_GPU_MEMORY_LIMIT=much' "$OUT.wrong"
second_runtime
printf '[containers]\nfrom_memory_limit = true\n' >"$WORLD/etc/umacct.toml"
check "a container with --memory alone runs" run_docker memory --memory "${LIMIT}m"
check "a container with --memory alone gets no more" is_limited memory
rm "$WORLD/etc/umacct.toml"
check "no account is left of containers that ended" eventually accounts_are "$before"

# --- names ---------------------------------------------------------------

check "a container with a label starts" \
	hold_docker vllm --env NVIDIA_GPU_MEMORY_LIMIT=$LIMIT --label team=vision
ask vllm fill 1M
is "the limit of a container with a label holds" "$(reply_field status)" $NO_MEMORY
is "a container's account is found by its name in Docker" \
	"$(target vllm runtime) $(target vllm container_id)" "docker $(cat "$TEST_DIR/id")"
is "a container's image is Docker's" "$(umacct config explain --json vllm | json_field image)" \
	models/tiny:v1
printf '[[rule]]\nname = "labelled"\nlabel = "team=vision"\nhard = "1G"\n' >/etc/umacct.toml
is "a container's label is Docker's" "$(umacct config explain --json vllm | json_field rule)" labelled
rm /etc/umacct.toml
check "Docker removes the container with a label" docker rm --force vllm
check "no account of the container with a label is left" eventually accounts_are "$before"

why_not() { # COMMAND
	case $1 in
	"systemctl "*) echo "$NO_SYSTEMD" ;;
	*--annotation* | *--device*) echo "Docker of Debian 12 has neither annotations nor CDI; docker_13 tries it" ;;
	esac
}
try_printed Docker

lives docker

# --- charging ----------------------------------------------------------------------------

shows_at_least() { # MIB
	stats_mib=$(docker stats --no-stream --format '{{.MemUsage}}' charged |
		sed -n 's/^\([0-9]*\)[0-9.]*MiB.*/\1/p')
	[ "${stats_mib:-0}" -ge "$1" ]
}
check "charging is switched on for Docker's containers" charge $PARENT on
check "a container with --memory 64m starts" hold_docker charged --memory 64m
ask charged fill 1M
count=$(reply_field count)
is "a program that is charged is stopped by its --memory" "$(reply_field status)" $NO_MEMORY
check "a program that is charged gets 64 MiB at the most" [ "$count" -le 64 ]
check "a program that is charged gets at least 52 of its 64 MiB" [ "$count" -ge 52 ]
is "a program that is stopped by its --memory is not killed" \
	"$(inspect charged State.Running) $(inspect charged State.OOMKilled)" "true false"
check "docker stats shows what a container took through the driver" shows_at_least "$count"
diag "$count MiB given, docker stats shows $stats_mib MiB"
check "Docker removes the charged container" docker rm --force charged
check "charging is as it was" charge $PARENT inherit
check "no account of the charged container is left" eventually accounts_are "$before"

# --- what limits of MPS are documented to get wrong -------------------------------------------

kept_is() { # BYTES
	[ "$(status_field kept)" = "$1" ]
}
check "all of Docker's containers are limited together" limit $PARENT --hard ${LIMIT}M
check "a container without a limit runs below one" run_docker leaf
check "a container without a limit has the one above it" is_limited leaf
check "a container with a higher limit runs below a lower one" \
	run_docker higher --env NVIDIA_GPU_MEMORY_LIMIT=512
check "a container with a higher limit has the lower one above it" is_limited higher
check "the limit of all of Docker's containers goes" limit $PARENT --hard max
printf '[[rule]]\ncgroup = "%s/*"\nkeep = "8M"\n' "$(cgroup_path $PARENT)" >"$WORLD/etc/umacct.toml"
check "a container with a guarantee starts" hold_docker kept
is "a container's guarantee is kept" "$(status_field kept)" $((8 * MIB))
rm "$WORLD/etc/umacct.toml"
check "Docker removes the container with a guarantee" docker rm --force kept
check "nothing is kept for a container that was removed" eventually kept_is 0

# --- many, and the end --------------------------------------------------------------------

many_docker
check "the setup of Docker is undone" umacct setup docker --undo
check "Docker's settings are what they were, byte by byte" \
	cmp "$TEST_DIR/daemon.json" /etc/docker/daemon.json
is "nothing is left beside Docker's settings" "$(find /etc/cdi /etc/docker -type f 2>/dev/null)" \
	/etc/docker/daemon.json

done_testing
