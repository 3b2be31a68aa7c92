#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# Containers are known by the names that people gave them, whichever runtime runs
# them: podman's, containerd's own, and containerd's as Kubernetes has them laid out.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
needs_vm "it runs containers"
needs_accounting
needs_containers

POD_UID=8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab
POD_CGROUP=/kubepods/burstable/pod$POD_UID
SERVER_ID=4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab
LOGS=/var/log/pods/prod_llm-0_$POD_UID

# The runtimes' state is in the chroot; umacct looks where it usually is.
names_up() {
	mkdir -p /run/containerd /etc/containers "$WORLD/run/containerd" "$LOGS"
	mount --bind "$WORLD/run/containerd" /run/containerd
	echo "graphroot = \"$WORLD/var/lib/containers\"" >/etc/containers/storage.conf
	containerd_up
}

names_down() {
	kill_tasks
	containerd_down
	umount -l /run/containerd
	rm -rf /etc/containers "$LOGS"
	cgroup_remove /kubepods
	cgroup_remove /default
}

# run_podman NAME: a container whose rmtool is a holder of this name.
run_podman() {
	fifos "$1"
	podman run --detach --name "$1" --network=none --cgroup-parent "$(cgroup_path "")" \
		--device /dev/nvidiactl --volume "$TEST_DIR:/ctl" \
		--rootfs /rootfs /bin/rmtool -f "/ctl/$1" >"$TEST_DIR/id"
}

# The same of an image.
run_image() { # NAME
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$WORLD/etc/containers/policy.json"
	tar -C "$WORLD/rootfs" -c . | podman import --quiet - localhost/models/tiny:v1 >/dev/null
	fifos "$1"
	podman run --detach --name "$1" --network=none --cgroup-parent "$(cgroup_path "")" \
		--volume "$TEST_DIR:/ctl" localhost/models/tiny:v1 /bin/rmtool -f "/ctl/$1" >/dev/null
}

# run_ctr NAMESPACE ID HOLDER [OPTION]...: the same, of containerd's.
run_ctr() {
	run_namespace=$1
	run_id=$2
	run_holder=$3
	shift 3
	fifos "$run_holder"
	ctr -n "$run_namespace" run --detach --null-io --device /dev/nvidiactl \
		--mount "type=bind,src=$TEST_DIR,dst=/ctl,options=rbind:rw" "$@" \
		--rootfs /rootfs "$run_id" /bin/rmtool -f "/ctl/$run_holder"
}

kill_tasks() {
	for namespace in default k8s.io; do
		for task in $(ctr -n "$namespace" tasks list --quiet); do
			remove_ctr "$namespace" "$task"
		done
	done
}

remove_ctr() { # NAMESPACE ID
	ctr -n "$1" tasks kill --signal KILL "$2"
	eventually ctr -n "$1" tasks delete "$2" >/dev/null 2>&1
	ctr -n "$1" containers delete "$2"
}

listed() { # NAME
	umacct ls | grep -q "^ *$1 "
}

trap 'names_down; world_down; clean_up' EXIT
world_up
check "containerd starts" names_up

check "podman starts a container" run_podman vllm
ask vllm alloc 4M 10
is "a podman container's name finds what it holds" "$(target vllm system)" $((40 * MIB))
is "a podman container is found with its id" "$(target vllm container_id)" "$(cat "$TEST_DIR/id")"
check "ls has the podman container by its name" listed "podman vllm"
if [ -z "$OBSERVED" ]; then
	check "the podman container is limited by its name" umacct limit vllm --hard "$(with_metadata $((60 * MIB)) 15 1)"
	ask vllm fill 4M
	is "the limit of the podman container holds" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 5"
fi
check "ps has the podman container by its name" sh -c "umacct ps vllm | grep -q 'rmtool.*podman vllm'"

check "podman starts a container of an image" run_image tiny
is "the image of a podman container can be told" "$(umacct config explain --json tiny | json_field image)" \
	localhost/models/tiny:v1

check "containerd starts a container by itself" run_ctr default web web
ask web alloc 4M 5
is "a containerd container's name finds what it holds, at a path that says nothing of containers" \
	"$(target web path) $(target web system)" "/default/web $((20 * MIB))"
is "a containerd container is found with its runtime" "$(target web runtime)" containerd
check "ls has the containerd container by its name" listed "containerd web"

check "containerd starts a container of a pod" run_ctr k8s.io $SERVER_ID server --cgroup "$POD_CGROUP/$SERVER_ID" \
	--annotation io.kubernetes.cri.container-type=container \
	--annotation io.kubernetes.cri.container-name=server \
	--annotation io.kubernetes.cri.image-name=docker.io/models/tiny:v1 \
	--annotation io.kubernetes.cri.sandbox-name=llm-0 \
	--annotation io.kubernetes.cri.sandbox-namespace=prod
ask server alloc 4M 15
for name in prod/llm-0/server server prod/llm-0 llm-0 4f5a9c0b; do
	is "$name finds what the pod's container holds" "$(target $name system)" $((60 * MIB))
done
is "a pod's container is found with its namespace and pod" "$(target server namespace) $(target server pod)" "prod llm-0"
printf '[[rule]]\nname = "tiny"\nimage = "models/tiny"\nhard = "1G"\n' >/etc/umacct.toml
is "a rule by its image is for the pod's container" "$(umacct config explain --json server | json_field rule)" tiny
rm /etc/umacct.toml
check "ls has the pod by name" listed "pod prod/llm-0"
if [ -z "$OBSERVED" ]; then
	check "the pod is limited by its name" umacct limit prod/llm-0 \
		--hard "$(with_metadata $((80 * MIB)) 20 1)"
	ask server fill 4M
	is "the pod's limit binds its container" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 5"
fi
vllm_holds=$(target vllm system)

check "containerd starts a second container of the name" run_ctr default vllm other
umacct show vllm 2>"$TEST_DIR/ambiguous"
is "a name of two containers is refused" "$?" 1
for choice in 'names 2 cgroups' '(containerd vllm)' '(podman vllm)'; do
	check "the refusal of a name of two containers has the choice $choice" grep -qF "$choice" "$TEST_DIR/ambiguous"
done
if [ -z "$OBSERVED" ]; then
	check "a limit for a name of two containers is refused" fails umacct limit vllm --hard 1M 2>/dev/null
	is "a limit for a name of two containers changes nothing" "$(target /default/vllm hard)" null
fi
check "the second container of the name goes" remove_ctr default vllm
is "the name is unique again when the second container is gone" "$(target vllm runtime)" podman

check "a container is renamed" podman rename vllm served
is "a renamed container is found by its new name" "$(target served system)" "$vllm_holds"
check "a renamed container is not found by its old name" fails umacct show vllm 2>/dev/null

check "a container is removed" podman rm --force --time 0 served
umacct show served 2>"$TEST_DIR/removed"
is "a removed container's name is nobody's" "$?" 1
check "the refusal of a removed container's name says so" grep -q "TARGET 'served': there is no such cgroup" "$TEST_DIR/removed"
check "no list has the removed container" fails listed "podman served"
check "the memory of the containers is back" eventually system_is "" 0

done_testing
