#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
#
# Each command that docs/containers.md prints is tried as it is printed by a case that has what it needs, or it is said
# why not. Those that need no runtime are tried here.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it sets up runtimes"
needs_accounting

trap 'umacct setup podman --undo >/dev/null; umacct setup crio --undo >/dev/null
	umacct setup docker --undo >/dev/null; umacct setup k3s --undo >/dev/null; clean_up' EXIT

why_not() { # COMMAND
	case $1 in
	"systemctl restart crio") echo "Debian 12 has no CRI-O" ;;
	"systemctl try-restart 'k3s*'") echo "Debian 12 has no k3s" ;;
	*"restart containerd" | *umacct-device-plugin | "apt "*)
		echo "it takes a node with packages, systemd and Kubernetes; containers/containerd tries the setup"
		;;
	esac
}
try_command() { # COMMAND
	eval "$1" >/dev/null
}

tried_elsewhere() { # SECTION
	grep -qxF -e "try_printed $1" -e "try_printed \"$1\"" "$SELFTESTS"/cases/containers/*.sh
}

is_as_before() {
	[ ! -e /etc/docker/daemon.json ] && [ ! -e /etc/cdi/umacct-memory.json ]
}

umacct setup docker >/dev/null
try_printed "the beginning"
umacct setup podman --undo >/dev/null
check "after --undo nothing is left of the setup" is_as_before
try_printed CRI-O
k3s_folder=/var/lib/rancher/k3s/agent/etc/containerd
mkdir -p $k3s_folder /usr/local/bin
printf 'version = 3\nimports = ["%s/config-v3.toml.d/*.toml"]\n' $k3s_folder >$k3s_folder/config.toml
printf '#!/bin/sh\necho %s\n' "'{\"process\": {}, \"linux\": {}}'" >/usr/local/bin/k3s
chmod 755 /usr/local/bin/k3s
try_printed "k3s and RKE2"
try_printed Kubernetes

printed_blocks | cut -d '|' -f 1 | uniq >"$TEST_DIR/sections"
check "docs/containers.md has sections with commands" [ "$(wc -l <"$TEST_DIR/sections")" -ge 8 ]
while read -r section <&3; do
	case $section in
	"the beginning" | CRI-O | "k3s and RKE2" | Kubernetes) ;;
	*) check "a case tries the commands of the section $section of docs/containers.md" tried_elsewhere "$section" ;;
	esac
done 3<"$TEST_DIR/sections"

done_testing
