# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# The same small Debian with Docker, and what that starts.

# shellcheck source=selftests/vm/images/containers.sh
. "$vm/images/containers.sh"
image_parts=("$vm/images/containers.sh")
programs=(docker containerd containerd-shim-runc-v2 ctr runc)
image_packages+=(docker.io)

fill_image() { # ROOT TREE TRIPLET
	fill_world "$@"
	cp "$2/usr/sbin/dockerd" "$1/containers/usr/bin/"
	install_libraries "$1/containers" "$1/containers/usr/bin/dockerd"
	mkdir -p "$1/containers/etc/docker" "$1/containers/var/lib"
}
