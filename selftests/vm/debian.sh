# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The one maker of Debian's root file systems, by mmdebstrap. What is made of them is the
# callers': a folder to build in (roots.sh), one to install packages in (install), the newest
# compilers (newer.sh), a machine's disk (disk.sh). The test machines' own first file system is
# no Debian, but busybox and what packages are unpacked to: base.sh, image.

# make_debian SUITE ARCH TO [OPTION|SOURCE]...: TO is a folder or an archive, in a folder that is
# the caller's alone: settings and the log lie there, too. apt fetches as this machine's does. The
# others are mmdebstrap's options, and lines of sources.list beside the suite's own.
make_debian() {
	local suite=$1 arch=$2 to=$3 word
	local -a options=() sources=("deb $(debian_mirror) $1 main")
	for word in "${@:4}"; do
		case $word in
		'deb '*) sources+=("$word") ;;
		*) options+=("$word") ;;
		esac
	done
	env -u APT_CONFIG apt-config dump | grep '^Acquire::' >"${to%/*}/apt.conf" || true
	quietly "${to%/*}/log" mmdebstrap --architectures="$arch" --aptopt="${to%/*}/apt.conf" \
		"${options[@]}" "$suite" "$to" "${sources[@]}"
}

# For folders that nobody keeps: no time for what survives a power cut, no manual pages.
# shellcheck disable=SC2034 # used by those who source this
passing=(--dpkgopt=force-unsafe-io --dpkgopt="path-exclude=/usr/share/man/*")
