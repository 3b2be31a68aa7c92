# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For kernels that a newer gcc built than this machine has, or whose kbuild's programs need
# a newer C library: root folders of Debian testing, which has every gcc. Packages are
# unpacked there, by whoever runs this; nothing is installed.

# shellcheck source=/dev/null
. "$vm/debian.sh"

newer_packages=(
	base-files bash coreutils dash diffutils findutils grep gzip mawk sed make
	# kernel-doc is written in it
	perl
	libelf1t64 libssl3t64 zlib1g
)

# runs_here KBUILD GCC CROSS: can this machine build modules with these?
runs_here() {
	local program
	command -v "$3gcc-$2" >/dev/null || return
	for program in "$1"/scripts/basic/fixdep "$1"/scripts/mod/modpost "$1"/tools/objtool/objtool; do
		[[ ! -e $program ]] || LC_ALL=C ldd "$program" | not_found || return
	done
}

not_found() {
	! grep -q 'not found'
}

# prepare_newer GCC: sets newer_root, where that version of gcc is, for both architectures.
prepare_newer() {
	local packages=("${newer_packages[@]}") other=aarch64
	[[ $host_arch == amd64 ]] || other=x86-64
	packages+=("gcc-$1"{,"-$other-linux-gnu"})
	newer_root=$cache/newer/gcc-$1-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c 1-12)
	mkdir -p "$cache/newer"
	once "$newer_root" unpack_newer "$newer_root" "${packages[@]}"
	touch "$newer_root"
	forget_old "$cache/newer" "gcc-*" 3
}

unpack_newer() { # DIRECTORY PACKAGE...
	local work
	work=$(mktemp -d "$1.XXXXXX")
	mkdir "$work/root"
	note "downloading Debian testing, for ${*: -2:1}"
	make_debian testing "$host_arch" "$work/tar" --variant=extract --format=tar \
		--include="$(IFS=, && echo "${*:2}")"
	tar -xf "$work/tar" --no-same-owner --exclude='./dev/*' -C "$work/root"
	# What only an installation makes.
	ln -sf mawk "$work/root/usr/bin/awk"
	mv "$work/root" "$1"
	rm -rf "$work"
}

# in_newer COMMAND...: there, with the cache and the clone where they are here.
in_newer() {
	local user=()
	[[ $(id -u) -eq 0 ]] || user=(--user --map-root-user)
	mkdir -p "$newer_root"{"$cache","$clone"}
	# shellcheck disable=SC2016 # the shell in there expands it
	unshare "${user[@]}" --mount sh -ec '
		root=$1 cache=$2 clone=$3
		shift 3
		for place in /proc /dev "$cache" "$clone"; do
			mount --rbind "$place" "$root$place"
		done
		exec chroot "$root" /usr/bin/env -i PATH=/usr/bin LC_ALL=C "$@"' \
		in_newer "$newer_root" "$cache" "$clone" "$@"
}
