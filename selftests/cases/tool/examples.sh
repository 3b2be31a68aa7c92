#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
#
# Every command that README.md, docs/problems.md, the manual and the tool's own help show as an example
# works as it is printed there; so does each part of a policy in docs/problems.md.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets limits and a reserve, and makes cgroups that runtimes would"
needs_accounting

DOCKER_ID=4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab
SERVER_ID=77aa9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab
POD_UID=8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab
MADE="demo/vllm demo/llama system.slice/ollama.service system.slice/docker-$DOCKER_ID.scope
user.slice/user-1000.slice kubepods.slice kubepods/burstable/pod$POD_UID/$SERVER_ID"

# The cgroups that examples name, as systemd, Docker and the kubelet leave them.
machine_up() {
	for made in $MADE; do
		mkdir -p "/sys/fs/cgroup/$made"
	done
	for made in demo system.slice user.slice kubepods kubepods/burstable "kubepods/burstable/pod$POD_UID"; do
		echo +memory >"/sys/fs/cgroup/$made/cgroup.subtree_control"
	done
	mkdir -p "/var/lib/docker/containers/$DOCKER_ID"
	echo '{"Name":"/vllm"}' >"/var/lib/docker/containers/$DOCKER_ID/config.v2.json"
	# The policy is the manual's own.
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/{/^\./d;p;}' "$SELFTESTS/docs/umacct.toml.5" >/etc/umacct.toml
}

# Names the pod for who asks for it by name: else "vllm" would be two.
name_pod() { # COMMAND-LINE
	rm -rf /var/log/pods /var/log/containers
	case $1 in
	*llm-0*)
		mkdir -p "/var/log/pods/default_llm-0_$POD_UID" /var/log/containers
		: >"/var/log/containers/llm-0_default_vllm-$SERVER_ID.log"
		;;
	esac
}

machine_down() {
	umacct setup docker --undo >/dev/null
	umacct setup spark --undo >/dev/null
	for made in demo system.slice user.slice kubepods kubepods.slice; do
		cgroup_remove "/$made"
	done
	rm -rf /var/lib/docker /var/lib/umacctd /var/log/pods /var/log/containers /etc/umacct.toml /etc/umacct.toml.d /run/umacct.toml.d
}

# The programs of others that examples run, or that need what this machine lacks: systemd, apt, DKMS, EFI.
others() {
	mkdir "$TEST_DIR/bin"
	for other in python3 pytest serve jq systemctl apt dkms mokutil journalctl; do
		printf '#!/bin/sh\nexec cat >/dev/null\n' >"$TEST_DIR/bin/$other"
	done
	# shellcheck disable=SC2016 # expands there
	printf '#!/bin/sh\nexec "$@"\n' >"$TEST_DIR/bin/sudo"
	chmod 755 "$TEST_DIR" "$TEST_DIR/bin" "$TEST_DIR"/bin/*
	ln -s bin/serve "$TEST_DIR/serve"
}

# The documents are for a machine of 128 GiB. This one has a small part of that, and so has what it is asked for.
scaled() {
	awk '{
		line = ""
		while (match($0, /[0-9]+G/)) {
			line = line substr($0, 1, RSTART - 1) substr($0, RSTART, RLENGTH - 1) * 8 "M"
			$0 = substr($0, RSTART + RLENGTH)
		}
		print line $0
	}'
}

# inline_commands FILE: umacct's command lines in its text, such as those that check a result; with an example
# in place of SIZE and TIME, and less patience.
inline_commands() {
	# shellcheck disable=SC2016 # backquotes of Markdown
	awk '/^```/ { block = !block; next } !block && !/^    /' "$1" | tr '\n' ' ' | grep -o '`sudo umacct[^`]*`' |
		tr -d '`' | sed 's/SIZE/96G/; s/TIME/03:12/; s/10min/5s/'
}

# Their command lines. What follows two spaces is said about one. "make" is for a clone.
examples() {
	sed -n 's/^    \([a-z].*\)/\1/p' "$SELFTESTS/docs/README.md" "$SELFTESTS/docs/problems.md" |
		grep -vE '^(sudo )?(make|apt install \./)' | sed 's/  .*//' | scaled
	inline_commands "$SELFTESTS/docs/problems.md" | scaled
	sed -n 's/^\.It Li \(.*umacct.*\)/\1/p' "$SELFTESTS"/docs/*.1
	for verb in $(umacct --help | sed -n '/^See:/,/^TARGET/s/^  \([a-z]*\) .*/\1/p') help; do
		umacct "$verb" --help | sed -n '/^Examples:/,/^$/s/^  \(.*umacct.*\)/\1/p'
	done
}

# Whether it works, or is still at it after a second. A preflight's status says that it would have to reclaim or compact
# first, or that the memory isn't there; that of headroom, that umacctd doesn't run.
works() { # COMMAND-LINE
	setsid sh -c "cd '$TEST_DIR' && $1" >"$TEST_DIR/said" 2>&1 </dev/null &
	works_pid=$!
	case $1 in
	*"umacct watch"* | "umacct top --json"* | *"umacct web"*)
		eventually kill -0 "-$works_pid" 2>/dev/null && sleep 1 &&
			kill -TERM "-$works_pid"
		;;
	*) wait "$works_pid" ;;
	esac
	works_code=$?
	case $1 in
	*"umacct preflight "*) [ "$works_code" -lt 6 ] || [ "$works_code" -gt 8 ] || works_code=0 ;;
	*"umacct headroom"*) [ "$works_code" != 5 ] || works_code=0 ;;
	esac
	[ "$works_code" = 0 ] || diag "$(cat "$TEST_DIR/said")"
	return "$works_code"
}

# A history to tell of.
remember() {
	mkdir -p /var/lib/umacctd
	/usr/sbin/umacctd 2>"$TEST_DIR/umacctd" &
	daemon=$!
	holders="$holders $daemon"
	eventually [ -s /var/lib/umacctd/history.db ]
	eventually umacct history >/dev/null 2>&1
	kill "$daemon"
	wait "$daemon"
}

others
remember
umacct config save >"$TEST_DIR/settings.toml"
machine_up
export PATH="$TEST_DIR/bin:$PATH" USER=nobody
examples | sed 's/  .*//' | grep -v VERB | awk '!seen[$0]++' >"$TEST_DIR/examples"
check "there are examples" [ "$(wc -l <"$TEST_DIR/examples")" -gt 40 ]
while read -r example <&3; do
	case $example in
	*"modprobe umacct" | *reboot)
		skip "$example" "busybox takes its own program"
		continue
		;;
	esac
	name_pod "$example"
	works "$example"
	example_code=$?
	if grep -qE "more than the machine's memory|and the machine has" "$TEST_DIR/said"; then
		skip "$example" "this machine has less memory"
	elif grep -q "there is no libnvidia-ml.so.1" "$TEST_DIR/said"; then
		skip "$example" "this machine has no NVML of NVIDIA's"
	elif grep -q "1 start of the machine is in the history" "$TEST_DIR/said"; then
		skip "$example" "this machine was started once"
	elif grep -q "is not in the history of this boot" "$TEST_DIR/said"; then
		skip "$example" "this cgroup has held nothing"
	elif grep -q "docker: not found" "$TEST_DIR/said"; then
		skip "$example" "this machine has no Docker"
	else
		is "$example" "$example_code" 0
	fi
	umacct reserve off >/dev/null
	umacct charge off >/dev/null
	umacct view off >/dev/null
	rm -rf /run/umacct.toml.d
	umacct setup spark --undo >/dev/null
done 3<"$TEST_DIR/examples"

# policies: each part of one in docs/problems.md, in a file of its own.
policies() {
	scaled <"$SELFTESTS/docs/problems.md" | awk -v to="$TEST_DIR/policy." '
	/^```toml/ { file = to (++count); next }
	/^```/ { file = ""; next }
	file { print > file }'
}

takes_policy() { # FILE
	cp "$1" /etc/umacct.toml
	umacct config check >&2
}

policies
check "docs/problems.md has parts of policies" [ -e "$TEST_DIR/policy.10" ]
for policy in "$TEST_DIR"/policy.*; do
	check "umacct config check takes $(tr '\n' ' ' <"$policy")" takes_policy "$policy"
done

machine_down
done_testing
