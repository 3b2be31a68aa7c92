#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
# cell: amd64-6.12-550
# long: also
#
# containerd, as Debian 12 ships it, set up by "umacct setup containerd", and told by CRI to start
# pods, as kubelet tells it: a pod's container never makes an allocation without the limit that the
# pod's annotation, or the device plugin, has for it. The pod's names are in the metrics.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it runs containers"
needs_accounting
needs_containers

OUT=$TEST_DIR/out
SOCKET=$WORLD/run/containerd/containerd.sock
SETTINGS=/etc/containerd/config.toml
SPEC=/etc/containerd/umacct-base.json
IMAGE=docker.io/models/tiny:v1
POD_UID=8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab
PODS=/kubepods/burstable/pod$POD_UID
# As kubelet calls the folder of a pod's logs.
LOGS=/var/log/pods/prod_llm-0_$POD_UID

# --- containerd -----------------------------------------------------------------------------

# umacct runs outside, and has containerd's own program print what containers are made from.
world_of_containerd_up() {
	mkdir -p /run/containerd /etc/containerd "$LOGS" "$WORLD/run/containerd"
	mount --bind "$WORLD/run/containerd" /run/containerd
	printf '#!/bin/sh\nexec chroot %s ctr "$@"\n' "$WORLD" >/usr/bin/ctr
	chmod 755 /usr/bin/ctr
	touch "$WORLD/etc/hosts" "$WORLD/etc/resolv.conf"
	mv "$WORLD$SETTINGS" "$TEST_DIR/without-cri.toml"
	write_settings >"$TEST_DIR/config.toml"
	cp "$TEST_DIR/config.toml" "$SETTINGS"
	cp "$TEST_DIR/config.toml" "$WORLD$SETTINGS"
	containerd_up
}

# Without the snapshotters that the machine has no file system for.
write_settings() {
	cat <<-END
		version = 2   # as the administrator has it
		disabled_plugins = [
		  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
		  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper",
		  "io.containerd.snapshotter.v1.overlayfs"]

		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "$IMAGE"
		  [plugins."io.containerd.grpc.v1.cri".containerd]
		    snapshotter = "native"
	END
}

world_of_containerd_down() {
	remove_pods
	containerd_down
	mv "$TEST_DIR/without-cri.toml" "$WORLD$SETTINGS"
	umount -l /run/containerd
	umount "$WORLD/run/umacctd"
	rm -rf /usr/bin/ctr /etc/containerd /var/lib/umacct/setup "$LOGS" "$WORLD$SPEC"
	cgroup_remove /kubepods
}

containerd_restarts() {
	containerd_down
	containerd_up
}

# By this umacct-device-plugin knows whether containerd has read what was set up.
socket_is_older() {
	[ "$(find /var/lib/umacct/setup/containerd.json -newer "$SOCKET")" ]
}

# What is its own program, and its pause, of which every pod has one.
import_image() {
	mkdir "$TEST_DIR/image"
	tar -C "$WORLD/rootfs" -cf "$TEST_DIR/image/layer.tar" .
	cat >"$TEST_DIR/image/config.json" <<-END
		{"architecture": "amd64", "os": "linux",
		 "config": {"Cmd": ["/bin/busybox", "sleep", "1000000"]},
		 "rootfs": {"type": "layers", "diff_ids": [
			"sha256:$(sha256sum "$TEST_DIR/image/layer.tar" | cut -d ' ' -f 1)"]}}
	END
	echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$IMAGE\"], \"Layers\": [\"layer.tar\"]}]" \
		>"$TEST_DIR/image/manifest.json"
	tar -C "$TEST_DIR/image" -cf "$TEST_DIR/image.tar" .
	ctr -n k8s.io images import --snapshotter native "$TEST_DIR/image.tar" >/dev/null || return 1
	rm -r "$TEST_DIR/image" "$TEST_DIR/image.tar"
	eventually has_image
}

has_image() {
	[ "$(cri "$SOCKET" ImageService/ImageStatus "1{1\"$IMAGE\"}" 1.1)" != 0 ]
}

# --- pods, as kubelet has them ---------------------------------------------------------------------

runtime() { # METHOD MESSAGE [FIELD]
	cri "$SOCKET" "RuntimeService/$1" "$2" ${3:+"$3"}
}

annotation() { # FIELD KEY=VALUE
	[ ! "$2" ] || echo "$1{1\"${2%%=*}\" 2\"${2#*=}\"}"
}

# pod NAME CGROUP [ANNOTATION]: sets $pod, its id, and $pod_config. It has the machine's network: there
# are no plugins for another one.
pod() {
	pod_config="1{1\"$1\" 2\"$POD_UID\" 3\"prod\"} 3\"$TEST_DIR\" $(annotation 7 "$3")
		8{1\"$2\" 2{1{1=2}}}"
	pod=$(runtime RunPodSandbox "1{$pod_config}" 1)
}

# container LOG ANNOTATION ENVIRONMENT COMMAND...: sets $container, the id of one in $pod that is not
# started yet.
container() {
	container_config="1{1\"server\"} 2{1\"$IMAGE\"} 7{1\"/ctl\" 2\"$TEST_DIR\"}
		8{1\"/dev/nvidiactl\" 2\"/dev/nvidiactl\" 3\"rw\"} 11\"$1\" $(annotation 10 "$2")
		$(annotation 6 "$3") 15{2{3{1=2 2=1}}}"
	shift 3
	for container_word; do
		container_config="$container_config 3\"$container_word\""
	done
	container=$(runtime CreateContainer "1\"$pod\" 2{$container_config} 3{$pod_config}" 1)
}

has_exited() { # CONTAINER
	[ "$(runtime ContainerStatus "1\"$1\"" 1.3)" = 2 ]
}

remove_pod() { # POD
	runtime StopPodSandbox "1\"$1\"" && runtime RemovePodSandbox "1\"$1\""
}

# Those that a case that failed has left, too.
remove_pods() {
	while left=$(runtime ListPodSandbox "" 1.1) && [ "$left" != 0 ]; do
		remove_pod "$left" || break
	done
}

# run_pod NAME POD-ANNOTATION CONTAINER-ANNOTATION [ENVIRONMENT [COMMAND]]: a pod whose container fills
# the driver's memory; what it printed is in $OUT.NAME.
run_pod() {
	pod "$1" "${run_in:-$PODS}" "$2" 2>"$TEST_DIR/refused" || return 1
	container "out.$1" "$3" "${4-}" /bin/busybox sh -c "${5-$FILL}" &&
		runtime StartContainer "1\"$container\"" 2>"$TEST_DIR/refused" && eventually has_exited "$container"
	run_status=$?
	remove_pod "$pod"
	return "$run_status"
}

said() { # PATTERN
	grep -q "$1" "$TEST_DIR/containerd.log"
}

# What a container may do, by the kernel's account.
RIGHTS="grep -E '^(Cap|Seccomp|NoNewPrivs)' /proc/self/status; cat /proc/self/limits /proc/self/attr/current"

# Without the time at which each line was written, and what was allocated before.
rights() { # NAME
	cut -d ' ' -f 2- "$OUT.$1" | grep -v ' alloc '
}

trap 'world_of_containerd_down; world_down; clean_up' EXIT
world_up
hook_up
check "containerd starts, with CRI" world_of_containerd_up
check "containerd has an image" import_image
[ "$test_failed" -eq 0 ] || done_testing

check "without umacct's settings a pod with an annotation runs" \
	run_pod bare "org.umacct.hard=${LIMIT}m" "" "" "$FILL; $RIGHTS"
check "without umacct's settings an annotation limits nothing" [ "$(given bare)" -gt $((LIMIT * 2)) ]
check "without umacct's settings a container prints its rights" [ "$(rights bare | wc -l)" -gt 20 ]

check "umacct sets containerd up" set_up_inside containerd $SETTINGS $SPEC
check "what the administrator wrote in containerd's settings is still there" \
	grep -qxF 'version = 2   # as the administrator has it' $SETTINGS
check "containerd's socket is older than what umacct set up" socket_is_older
check "containerd starts with what umacct set up" containerd_restarts
check "containerd's socket is no older than what umacct set up, once it has started again" \
	fails socket_is_older
check "a second setup changes nothing" set_up_inside containerd $SETTINGS $SPEC
check "containerd's socket is no older than a second setup" fails socket_is_older
is "containerd is set up" "$(umacct setup | sed -n 's/^containerd: \([^;]*\);.*/\1/p')" "set up"
[ "$test_failed" -eq 0 ] || done_testing

check "a pod that asks for nothing runs" run_pod free "" "" "" "$FILL; $RIGHTS"
is "a container has the same rights with umacct's settings as without" "$(rights free)" "$(rights bare)"
check "a pod that asks for nothing takes more than $LIMIT MiB" [ "$(given free)" -gt $((LIMIT * 2)) ]
before=$(accounts)
check "a pod with an annotation runs" run_pod a1 "org.umacct.hard=${LIMIT}m" ""
check "a pod with an annotation gets no more, from its first instruction" is_limited a1
check "a container to which the device plugin allocated memory runs" \
	run_pod d1 "" "umacct.io/allocated=${LIMIT}m" UMACCT_CDI_HARD=allocated
check "a container to which the device plugin allocated memory gets no more" is_limited d1
check "a pod whose annotation asks for more than was allocated runs" \
	run_pod d2 org.umacct.hard=1g "umacct.io/allocated=${LIMIT}m"
check "a pod whose annotation asks for more than was allocated gets what was" is_limited d2
check "a pod that says itself what was allocated runs" run_pod d3 umacct.io/allocated=16m ""
check "a pod can't say itself what was allocated: containerd doesn't pass it on" \
	[ "$(given d3)" -gt $((LIMIT * 2)) ]
check "a container whose limit can't be understood does not start" fails run_pod wrong "" org.umacct.hard=much
is "a container whose limit can't be understood runs nothing" "$(given wrong)" ""
check "containerd's log says why the container doesn't start" said 'org.umacct.hard=much'
check "no account of those pods is left" eventually accounts_are "$before"

# --- the names ---------------------------------------------------------------------------

check "a pod starts" pod llm-0 $PODS "org.umacct.hard=${LIMIT}m"
fifos server
check "the pod's container is made" container server.log "" "" /bin/rmtool -f /ctl/server
check "the pod's container starts" runtime StartContainer "1\"$container\""
ask server fill 1M
is "the limit of the pod's container holds" "$(reply_field status)" $NO_MEMORY
held=$(target prod/llm-0/server system)
check "the pod's container gets what its limit allows" [ "$held" -ge $((LEAST * MIB)) ]
is "the pod's container is found by its names, at its cgroup" "$(target prod/llm-0/server path)" "$PODS/$container"
is "the pod is found by its names, with all that its containers hold" "$(target prod/llm-0 system)" "$held"
is "the image of the pod's container is CRI's" \
	"$(umacct config explain --json prod/llm-0/server | json_field image)" $IMAGE
# A runtime in a chroot enters a container's cgroup, but the machine's root.
is "who enters the pod's container takes from its limit" \
	"$(runtime ExecSync "1\"$container\" 2\"$SELFTESTS_BIN/rmtool\" 2\"alloc 1M\"" 1 |
		grep -o 'status=[0-9a-fx]*')" \
	"status=$NO_MEMORY"

scraped() {
	wget -q -O "$TEST_DIR/metrics" http://127.0.0.1:9752/metrics 2>/dev/null
}
if [ -x /usr/sbin/umacct-exporter ]; then
	ip link set lo up
	/usr/sbin/umacct-exporter --port 9752 2>"$TEST_DIR/exporter.log" &
	holders="$holders $!"
	check "the exporter answers a scrape" eventually scraped
	for label in 'namespace="prod"' 'pod="llm-0"' 'container="server"'; do
		check "the metric of the pod's container has the label $label" \
			grep -q "^umacct_account_local_bytes{.*$PODS/$container.*$label" "$TEST_DIR/metrics"
	done
else
	skip "the metrics' labels" "no exporter for this architecture"
fi
check "the pod is removed" remove_pod "$pod"
check "no account of the removed pod is left" eventually accounts_are "$before"

# --- containers without Kubernetes ----------------------------------------------------------

check "ctr runs a container with umacct's runtime" sh -c "chroot $WORLD ctr run --rm \
	--runc-binary /usr/lib/umacct/umacct-runtime --annotation org.umacct.hard=${LIMIT}m \
	--cgroup $(cgroup_path plain) --device /dev/nvidiactl --rootfs /rootfs plain \
	/bin/busybox sh -c \"$FILL\" >$OUT.plain 2>&1 </dev/null"
check "a container of ctr's has its limit" is_limited plain

why_not() { # COMMAND
	case $1 in
	"systemctl "*) echo "this machine has no systemd; containerd is started again after the setup" ;;
	esac
}
try_command() { # COMMAND
	case $1 in
	"umacct setup "*) set_up_as_printed "$1" ;;
	*) starts_with_limit "$1" "--detach --cgroup $(cgroup_path printed) --device /dev/nvidiactl \
		--mount type=bind,src=$TEST_DIR,dst=/ctl,options=rbind:rw --rootfs /rootfs printed \
		/bin/rmtool -f /ctl/printed" ;;
	esac
}
remove_printed() {
	quietly ctr task delete --force printed
	quietly ctr container delete printed
}
before=$(accounts)
try_printed containerd
check "no account of the container as printed is left" eventually accounts_are "$before"

# --- many, and the end ----------------------------------------------------------------------

many_run() { # NAME
	pod "$1" "$(cgroup_path $MANY)" "org.umacct.hard=${LIMIT}m" || return 1
	echo "$pod" >"$TEST_DIR/$1.pod"
	container "out.$1" "" "" /bin/busybox sh -c "$FILL" || return 1
	echo "$container" >"$TEST_DIR/$1.id"
	runtime StartContainer "1\"$container\"" && eventually has_exited "$container"
	many_end "$1"
} 2>/dev/null
many_cgroup() { # NAME
	cat "$TEST_DIR/$1.id" 2>/dev/null
}
many_end() { # NAME...
	for many_name; do
		[ ! -e "$TEST_DIR/$many_name.pod" ] || ! remove_pod "$(cat "$TEST_DIR/$many_name.pod")" 2>/dev/null ||
			rm -f "$TEST_DIR/$many_name.pod"
	done
}
many containerd
without_daemon containerd

check "the setup of containerd is undone" umacct setup containerd --undo
check "containerd's settings are what they were, byte by byte" cmp "$TEST_DIR/config.toml" $SETTINGS
is "nothing is left beside containerd's settings" "$(find /etc/containerd -type f)" $SETTINGS

done_testing
