#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clock: instructions
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# umacct-hook, run as a container runtime does it, but without one: what a container asks for is
# there when it returns, never above what a rule says, and stays with umacctd beside it. It costs
# no more than 30 million instructions.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets limits by a policy of its own, in /etc"
needs_accounting

HOOK=/usr/lib/umacct/umacct-hook
LOG=$TEST_DIR/log
ERR=$TEST_DIR/err

bundle() { # JSON
	mkdir -p "$TEST_DIR/bundle"
	echo "$1" >"$TEST_DIR/bundle/config.json"
}

annotations() { # KEY VALUE [KEY VALUE]...
	annotations_text=
	while [ $# -gt 0 ]; do
		annotations_text="$annotations_text${annotations_text:+, }\"org.umacct.$1\": \"$2\""
		shift 2
	done
	bundle "{\"annotations\": {$annotations_text}}"
}

variables() { # NAME=VALUE...
	bundle "{\"process\": {\"env\": [$(printf '"%s",' "$@" | sed 's/,$//')]}}"
}

write_state() { # PID
	printf '{"ociVersion": "1.0.2", "id": "box", "status": "creating", "pid": %s, "bundle": "%s"}' \
		"$1" "$TEST_DIR/bundle" >"$TEST_DIR/state"
}

hook() {
	$HOOK <"$TEST_DIR/state" 2>"$ERR"
}

# It refuses, and says so in one line.
refuses() { # TEXT
	fails hook && is_one_line && grep -qF "$1" "$ERR"
}

is_one_line() {
	[ "$(wc -l <"$ERR")" -eq 1 ] && grep -q '^umacct-hook: ' "$ERR"
}


# As umacct's JSON has it: nltest has no word for it.
told() { # KEY
	umacct show --json "$(cgroup_path box)" | json_field "$1"
}

policy() {
	cat >/etc/umacct.toml
}

daemon_start() {
	/usr/sbin/umacctd 2>>"$LOG" &
	daemon=$!
	holders="$holders $daemon"
	eventually grep -q 'in force' "$LOG"
}

reload() {
	: >"$LOG"
	kill -HUP "$daemon"
	eventually grep -q 'was read again' "$LOG"
}

# Another one in the same place, which nothing was set on.
anew() {
	ask box free all
	cgroup_add aside "$box"
	cgroup_remove "$(cgroup_path box)"
	cgroup_leaf box
	cgroup_add box "$box"
}

trap 'rm -f /etc/umacct.toml; clean_up' EXIT
rm -f /etc/umacct.toml
cgroup_leaf aside
cgroup_leaf box
start_in box box
box=$pid
write_state "$box"

bundle '{}'
check "a container that asks for nothing starts" hook
is "a container that asks for nothing has no limit" "$(told hard)" null

annotations hard 24m soft 16m view on
check "a container that asks for limits starts" hook
is "a container that asks for limits has its hard limit" "$(told hard)" $((24 * MIB))
is "a container that asks for limits has its soft limit, and its view" "$(told soft) $(told view)" "$((16 * MIB)) true"
ask box fill 1M
is "a container's hard limit refuses" "$(reply_field status)" $NO_MEMORY
check "a container's hard limit lets no more than 24 MiB through" [ "$(reply_field count)" -le 24 ]
check "a container's hard limit refuses nothing before 22 MiB" [ "$(reply_field count)" -ge 22 ]

check "the cgroup is made anew for another container" anew
is "another container in the same place has no limit" "$(told hard)" null
variables NVIDIA_GPU_MEMORY_REQUEST=8 NVIDIA_GPU_MEMORY_LIMIT=16 UMACCT_CDI_HARD=1g
check "NVIDIA's variables are understood" hook
is "NVIDIA's variables are a container's soft and hard limit" "$(told soft) $(told hard)" "$((8 * MIB)) $((16 * MIB))"
check "the cgroup is made anew for a container with a device" anew
variables UMACCT_CDI_HARD=32m
check "a container that asks by a device starts" hook
is "a device is a container's hard limit" "$(told hard)" $((32 * MIB))

check "the cgroup is made anew for a container of a rule's" anew
policy <<-END
	[[rule]]
	name = "tenants"
	cgroup = "$(cgroup_path '*')"
	hard = "20M"
	keep = "4M"
	view = true
	charge = "off"
END
bundle '{}'
check "a container that asks for nothing starts where a rule is for it" hook
is "a container that asks for nothing gets what the rule says" "$(told hard) $(told keep) $(told view)" \
	"$((20 * MIB)) $((4 * MIB)) true"
annotations hard max soft 1g keep 1g view off
check "a container that asks for more than the rule starts" hook
is "a container that asks for more than the rule gets what the rule says" "$(told hard) $(told soft) $(told keep) $(told view)" \
	"$((20 * MIB)) $((20 * MIB)) $((4 * MIB)) true"
annotations hard 10m
check "a container that asks for less than the rule starts" hook
is "a container that asks for less than the rule gets less" "$(told hard)" $((10 * MIB))

check "umacctd starts beside a container that asked for less" daemon_start
is "umacctd leaves a container what it asked for" "$(told hard)" $((10 * MIB))
check "umacctd reads its policy again beside the container" reload
is "a policy that is read again leaves a container what it asked for" "$(told hard)" $((10 * MIB))
rm /etc/umacct.toml
check "umacctd reads its policy again, without the rule" reload
is "what a container asked for outlives the rule" "$(told hard) $(told view)" "$((10 * MIB)) false"
check "the cgroup is made anew after the rule is gone" anew
is "a container that asks for nothing has no limit when the rule is gone" "$(told hard)" null
check "the file that hooks lock is root's alone, so that no other can have a hook wait" [ "$(stat -c %a /run/umacctd/orders)" = 600 ]
kill "$daemon"
gone "$daemon"

# What a tenant may write.
bundle "$(printf '%0100000d' 0 | tr 0 '[')"
check "a configuration that is nested deeply is refused" refuses "not JSON"
annotations hard lots
check "a request that is no size is refused" refuses "org.umacct.hard=lots"
annotations hrad 1g
check "a request for no known setting is refused" refuses "there is no such annotation"
bundle '{"annotations": {"org.umacct.hard": ["1g"]}}'
check "a request that is no text is refused" refuses "is not a text"
variables NVIDIA_GPU_MEMORY_LIMIT=2g
check "a request that is no whole number of MiB is refused" refuses "whole number of MiB"
variables NVIDIA_GPU_MEMORY_REQUEST=5 NVIDIA_GPU_MEMORY_LIMIT=4
check "a request above the limit is refused" refuses "is above"
annotations keep 1t
policy <<-END
	[containers]
	keep = "1T"
END
check "a guarantee that the machine can't give is refused" refuses "would exceed the machine"
rm /etc/umacct.toml
annotations hard 1m
mv "$TEST_DIR/bundle/config.json" "$TEST_DIR/elsewhere"
ln -s "$TEST_DIR/elsewhere" "$TEST_DIR/bundle/config.json"
check "a link in place of the configuration is refused" refuses "regular file"
rm "$TEST_DIR/bundle/config.json"
annotations hard 1m
write_state $$
check "a container in the runtime's own cgroup is refused" refuses "no cgroup of its own"
write_state 4194303
check "a container whose process is gone is refused" refuses "its process"
head -c 2000000 /dev/zero | tr '\0' ' ' >"$TEST_DIR/state"
check "a state without end is refused" refuses "too large"
write_state "$box"
is "nothing of what was refused was set" "$(told hard)" null

# --- whose a container is --------------------------------------------------------------------

ID=$(printf '%063d' 0)a

# starts CGROUP BUNDLE [JSON]: whether the hook lets a container of that id start there. JSON is in its
# configuration.
starts() {
	cgroup_leaf "$1"
	cgroup_add "$1" "$box"
	mkdir -p "$2"
	starts_json=${3-}
	echo "${starts_json:-null}" | sed 's/^null$/{}/' >"$2/config.json"
	printf '{"ociVersion": "1.0.2", "id": "%s", "status": "creating", "pid": %s, "bundle": "%s"}' \
		"$ID" "$box" "$2" >"$TEST_DIR/state"
	hook
}
hard_of() { # CGROUP
	umacct show --json "$(cgroup_path "$1")" | json_field hard
}
named() { # CGROUP: the runtime and the name that "umacct" has for it
	echo "$(target "$(cgroup_path "$1")" runtime) $(target "$(cgroup_path "$1")" name)"
}

policy <<-END
	[[rule]]
	name = "big"
	container = "vllm"
	hard = "20M"
END
storage=$TEST_DIR/storage/overlay-containers
mkdir -p "$storage" "$TEST_DIR/docker/containers/$ID"
echo "[{\"id\":\"$ID\",\"names\":[\"vllm\"]}]" >"$storage/containers.json"
cgroup_make vllm.service
check "a container of a Quadlet, in a storage of its own, starts" \
	starts "vllm.service/libpod-payload-$ID" "$storage/$ID/userdata"
is "a container of a Quadlet has the limit of the rule for its name" \
	"$(hard_of "vllm.service/libpod-payload-$ID")" $((20 * MIB))
is "umacct knows the container of a Quadlet by its name" "$(named "vllm.service/libpod-payload-$ID")" "podman vllm"

docker_has() { # LABELS
	printf '{"ID":"%s","Name":"/vllm","Config":{"Image":"vllm","Labels":{%s}}}' "$ID" "$1" \
		>"$TEST_DIR/docker/containers/$ID/config.v2.json"
}
mounts="{\"mounts\": [{\"destination\": \"/etc/hostname\", \"source\": \"$TEST_DIR/docker/containers/$ID/hostname\"}]}"
cgroup_make batch
docker_has ''
check "a container below a --cgroup-parent, in another data-root, starts" \
	starts "batch/$ID" "$TEST_DIR/moby/$ID" "$mounts"
is "a container below a --cgroup-parent has the limit of the rule for its name" "$(hard_of "batch/$ID")" $((20 * MIB))
is "umacct knows the container below a --cgroup-parent by its name" "$(named "batch/$ID")" "docker vllm"
docker_has "\"x\":\"$(head -c $((9 * MIB)) /dev/zero | tr '\0' l)\""
cgroup_make labelled
check "a container with a label of 9 MiB starts" starts "labelled/$ID" "$TEST_DIR/moby/$ID" "$mounts"
is "a container with a label of 9 MiB has the limit of the rule for its name" "$(hard_of "labelled/$ID")" $((20 * MIB))

rm -r "$TEST_DIR/docker"
cgroup_make docker
check "a container whose name can't be found does not start" \
	fails starts "docker/$ID" "$TEST_DIR/moby/$ID" "$mounts"
check "that a container's name can't be found is said in one line" is_one_line
check "the rule that needs the name is named" grep -q 'big, .*its name cannot be found' "$ERR"
is "nothing is set on a container whose name can't be found" "$(hard_of "docker/$ID")" null
rm /etc/umacct.toml
check "a container whose name can't be found starts where no rule needs it" \
	starts "docker/$ID" "$TEST_DIR/moby/$ID" "$mounts"
cgroup_add box "$box"
annotations hard 1m
write_state "$box"

# A runtime that a user runs.
as_user() {
	runas "$UNPRIVILEGED" "$HOOK" <"$TEST_DIR/state" 2>"$ERR"
}
check "who isn't root can set nothing through the hook" fails as_user
check "who isn't root is told that a rule could" grep -q "a rule in /etc/umacct.toml" "$ERR"
policy <<-END
	[[rule]]
	container = "vllm"
	hard = "20M"
END
bundle '{}'
check "a container of a user's runtime, whose name the hook can't keep, starts" as_user
annotations hard 1m
rm /etc/umacct.toml

# What it costs, with the shell that runs it.
instructions() {
	cost sh -c "$HOOK <$TEST_DIR/state; exit \$?" | cut -d' ' -f1
}
cost=$(instructions)
diag "a start with a limit: $cost instructions"
check "the hook takes at most 30 million instructions" [ "$cost" -le 30000000 ]
policy <<-END
	[[rule]]
	cgroup = "/elsewhere"
	hard = "50%"
END
cost=$(instructions)
diag "with a policy to read: $cost"
check "the hook takes at most 30 million instructions with a policy" [ "$cost" -le 30000000 ]
bundle '{}'
diag "for who asks for nothing: $(instructions)"
# Docker's way: umacct-runtime is run to create a container and to start it, and the hook between the two.
through_runtime() {
	cost /usr/lib/umacct/umacct-runtime --umacct-runtime=true "$@" box | cut -d' ' -f1
}
annotations hard 1m
cost=$((cost + $(through_runtime create --bundle "$TEST_DIR/bundle") + $(through_runtime start)))
diag "a start of Docker's, with a policy to read: $cost"
check "umacct-runtime put the hook into the container's configuration" \
	grep -q umacct-hook "$TEST_DIR/bundle/config.json"
check "the hook and umacct-runtime together take at most 20 million instructions" [ "$cost" -le 20000000 ]
rm /etc/umacct.toml

# Without the module.
annotations hard 1m
ask box free all
check "the module is unloaded" eventually rmmod umacct
check "without the module a container that asks for a limit is refused" refuses "it may not start without its limits"
check "the refusal without the module says what to do" grep -q modprobe "$ERR"
policy <<-END
	[containers]
	without_module = "start"
END
check "without the module a container starts where the policy has it so" hook
check "that a container starts without its limits is said in one line" is_one_line
bundle '{}'
check "without the module a container that asks for nothing starts" hook
is "nothing is said of a container that asks for nothing" "$(cat "$ERR")" ""
load umacct

done_testing
