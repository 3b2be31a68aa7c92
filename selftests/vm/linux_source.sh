# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The kernel's source; and what Debian ships there alone: checkpatch, the netlink
# specifications' schemas and generic client (YNL), and the tests of cgroups.

linux_source_files=(
	scripts/checkpatch.pl scripts/spelling.txt scripts/const_structs.checkpatch
	Documentation/netlink/{genetlink-legacy,specs/nlctrl}.yaml tools/net/ynl
	tools/testing/selftests/{cgroup,clone3,pidfd,kselftest.h}
)

newest_linux_source() { # SUITE
	local package
	package=$(depends "$(newest linux-source:all "$1")" 'linux-source-.*')
	newest "$package:all" "$1"
}

# Sets linux_source, the directory where those files lie as they do in the kernel's tree.
prepare_linux_source() {
	local package
	with_lock apt update_lists
	package=$(newest_linux_source bookworm-backports)
	linux_source=$cache/linux-source-$(version_of "$package")-$(
		printf '%s\n' "${linux_source_files[@]}" | sha256sum | cut -c 1-12)
	once "$linux_source" unpack_linux_source "$package"
}

unpack_linux_source() { # PACKAGE
	local work
	work=$(mktemp -d "$linux_source.XXXXXX")
	mkdir "$work/tree"
	linux_source_tar "$1" "$work" |
		tar -x -C "$work/tree" --strip-components 1 --wildcards "${linux_source_files[@]/#/*/}"
	mv "$work/tree" "$linux_source"
	rm -r "$work"
}

# linux_source_tar PACKAGE DIRECTORY: prints all of it, as a tar archive; the package is
# left in DIRECTORY.
linux_source_tar() {
	note "downloading the source of Linux: $1"
	(cd "$2" && rig_apt apt-get download -qq "$1") >&2
	dpkg-deb --fsys-tarfile "$2"/linux-source*.deb |
		tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc
}
