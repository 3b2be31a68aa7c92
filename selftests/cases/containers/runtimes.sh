#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
# cell: amd64-6.12-*,arm64-6.12-16k-*
# long: also
#
# With umacct-hook as a createRuntime hook of real runtimes (runc, crun) a container never makes an
# allocation without its limit: one that fills the driver's memory from its first instruction gets
# what its limit allows. So do many at a time, of which some are killed while they start; and none
# of them leaves an account.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
needs_vm "it runs containers"
needs_accounting
needs_containers

OUT=$TEST_DIR/out
major=$((0x$(stat -c %t /dev/nvidiactl)))
minor=$((0x$(stat -c %T /dev/nvidiactl)))

hooks_json() {
	echo '{"createRuntime": [{"path": "/usr/lib/umacct/umacct-hook", "args": ["umacct-hook"]}]}'
}

# bundle NAME ANNOTATIONS HOOKS COMMAND: what runc and crun take, with the driver's device.
bundle() {
	mkdir -p "$WORLD/tmp/bundles/$1"
	cat >"$WORLD/tmp/bundles/$1/config.json" <<-END
		{
			"ociVersion": "1.0.2",
			"process": {
				"user": {"uid": 0, "gid": 0}, "cwd": "/", "noNewPrivileges": true,
				"args": ["/bin/busybox", "sh", "-c", "$4"],
				"env": ["PATH=/bin", $env "A=b"]
			},
			"root": {"path": "/rootfs"},
			"hostname": "$1",
			"annotations": {$2},
			"hooks": $3,
			"mounts": [
				{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
				{"destination": "/proc", "type": "proc", "source": "proc"},
				{"destination": "/ctl", "type": "bind", "source": "$TEST_DIR",
				 "options": ["rbind", "rw"]}
			],
			"linux": {
				"cgroupsPath": "$(cgroup_path "$inside$1")",
				"resources": {"devices": [{"allow": true, "access": "rwm"}]},
				"devices": [{"path": "/dev/nvidiactl", "type": "c", "major": $major,
					"minor": $minor, "fileMode": 438}],
				"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "uts"},
					{"type": "ipc"}]
			}
		}
	END
}

in_world() {
	chroot "$WORLD" "$@"
}

# run_bundle RUNTIME NAME: what the container printed is in $OUT.NAME.
run_bundle() {
	in_world "$1" run --bundle "/tmp/bundles/$2" "$2" >"$OUT.$2" 2>&1 </dev/null
}

hard() { # MIB
	echo "\"org.umacct.hard\": \"$1m\""
}

containers_down() {
	for each in $(in_world runc list --quiet 2>/dev/null); do
		in_world runc delete --force "$each"
	done
	for each in $(in_world crun list --quiet 2>/dev/null); do
		in_world crun delete --force "$each"
	done
}

trap 'containers_down
	umount "$WORLD/run/umacctd"
	world_down; clean_up' EXIT
world_up
hook_up
env=
inside=
account_for_all
before=$(accounts)

for runtime in runc crun; do
	bundle bare "$(hard $LIMIT)" '{}' "$FILL"
	check "$runtime runs a container without the hook" run_bundle $runtime bare
	check "$runtime: a container without the hook takes more than $LIMIT MiB" [ "$(given bare)" -gt $((LIMIT * 2)) ]

	bundle held "$(hard $LIMIT)" "$(hooks_json)" "$FILL"
	check "$runtime runs a container with the hook" run_bundle $runtime held
	check "$runtime: a container with the hook gets no more, from its first instruction" is_limited held

	env="\"NVIDIA_GPU_MEMORY_REQUEST=8\", \"NVIDIA_GPU_MEMORY_LIMIT=$LIMIT\","
	bundle variables '' "$(hooks_json)" "$FILL"
	check "$runtime runs a container with NVIDIA's variables" run_bundle $runtime variables
	check "$runtime: NVIDIA's variables hold" is_limited variables
	env=

	bundle wrong '"org.umacct.hard": "much"' "$(hooks_json)" "$FILL"
	check "$runtime does not start a container whose limit can't be understood" fails run_bundle $runtime wrong
	is "$runtime: the container that was not started ran nothing" "$(given wrong)" ""
	# crun says that the hook failed; what the hook said is in the journal.
	[ $runtime = crun ] || check "$runtime says why the container was not started" \
		grep -q 'container wrong: org.umacct.hard=much' "$OUT.wrong"
	check "$runtime leaves no cgroup of the container that was not started" [ ! -d "$(cgroup_dir wrong)" ]
done
check "no account of runc's and crun's containers is left" eventually accounts_are "$before"

# --- many ----------------------------------------------------------------------------
many_run() { # NAME
	inside=$MANY/
	bundle "$1" "$(hard $LIMIT)" "$(hooks_json)" "$FILL"
	run_bundle "$runtime" "$1"
}
many_cgroup() { # NAME
	echo "$1"
}
many_end() { # NAME...
	for many_name; do
		in_world "$runtime" delete --force "$many_name" 2>/dev/null
	done
}
runtime=runc
many runc
for runtime in runc crun; do
	without_daemon $runtime
done

done_testing
