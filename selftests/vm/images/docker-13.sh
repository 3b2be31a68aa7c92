# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# The same of Debian 13: a Docker that has annotations, and devices by CDI.

# shellcheck source=selftests/vm/images/docker.sh
. "$vm/images/docker.sh"
image_parts+=("$vm/images/docker.sh")
image_suite=trixie
image_packages=(
	docker.io docker-cli containerd runc busybox-static libc6 libseccomp2 libsystemd0 libcap2
)
