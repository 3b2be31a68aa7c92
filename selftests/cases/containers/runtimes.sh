#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# With umacct-hook as a createRuntime hook of real runtimes (runc, crun, podman, containerd) a
# container never makes an allocation without its limit: one that fills the driver's memory from
# its first instruction gets what its limit allows. So do many at a time, of which some are killed
# while they start; and none of them leaves an account.

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
				"cgroupsPath": "$(cgroup_path "$1")",
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

trap 'rm -f /etc/umacct.toml "$WORLD/etc/umacct.toml"
	containers_down
	umount "$WORLD/run/umacctd"
	world_down; clean_up' EXIT
world_up
hook_up
env=
# So that the cgroup that they are all in has its account.
cgroup_leaf first
in_cgroup first rmtool 'alloc 4K' >/dev/null
cgroup_remove "$(cgroup_path first)"
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
many=20

# Five run at a time. The runtime of every fourth is killed while it starts the container: once
# there is a cgroup.
start_many() { # RUNTIME
	for i in $(seq "$many"); do
		bundle "m$i" "$(hard $LIMIT)" "$(hooks_json)" "$FILL"
		in_world "$1" run --bundle "/tmp/bundles/m$i" "m$i" >"$OUT.m$i" 2>&1 </dev/null &
		if [ $((i % 4)) -eq 0 ]; then
			start_pid=$!
			until [ -d "$(cgroup_dir "m$i")" ] || process_is_gone "$start_pid"; do
				:
			done
			kill -KILL "$start_pid" && killed=$((killed + 1))
		fi
		[ $((i % 5)) -ne 0 ] || wait
	done
	wait
}
killed=0

none_above() {
	for i in $(seq "$many"); do
		[ "$(given "m$i")" ] || continue
		[ "$(given "m$i")" -le "$MOST" ] || return 1
	done
}

all_that_ran() {
	ran=0
	for i in $(seq "$many"); do
		[ ! "$(given "m$i")" ] || ran=$((ran + 1))
	done
	echo "$ran"
}

cgroups_left() {
	find "$(cgroup_dir "")" -mindepth 1 -maxdepth 1 -type d | wc -l
}

tidy_up() {
	containers_down >/dev/null 2>&1
	for i in $(seq "$many"); do
		echo 1 >"$(cgroup_dir "m$i")/cgroup.kill"
	done 2>/dev/null
	find "$(cgroup_dir "")" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
	[ "$(cgroups_left)" -eq 0 ]
}

start_many runc
check "of $many containers, some at once and some killed in start-up, none was given more" none_above
diag "$(all_that_ran) of them came to an end, $killed were killed"
check "some of $many containers were killed" [ "$killed" -ge $((many / 4)) ]
check "those of $many containers that weren't killed ran" [ "$(all_that_ran)" -ge $((many * 3 / 4)) ]
check "what the killed containers left is removed" eventually tidy_up
check "no account of $many containers is left" eventually accounts_are "$before"
check "no memory of $many containers is left" eventually system_is "" 0

# --- podman, by a folder of hooks ------------------------------------------------------
run_podman() { # NAME OPTION...
	run_name=$1
	shift
	podman run --rm --name "$run_name" --network=none --cgroup-parent "$(cgroup_path "")" \
		--device /dev/nvidiactl "$@" --rootfs /rootfs /bin/busybox sh -c "$FILL" >"$OUT.$run_name" 2>&1
}

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
	from-memory-limit = true
END
check "podman runs a container that a rule is for" run_podman p3
check "the rule's limit is the podman container's" is_limited p3
check "podman runs a container that asks for more than the rule" run_podman p4 --annotation org.umacct.hard=max
check "a podman container that asks for more has the rule's limit" is_limited p4
printf '[containers]\nfrom-memory-limit = true\n' >"$WORLD/etc/umacct.toml"
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
check "the setup of podman is undone" umacct setup podman --undo
is "nothing is left of the setup of podman" "$(ls -d /etc/containers /etc/cdi 2>/dev/null)" ""

done_testing
