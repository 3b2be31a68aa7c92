# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What Debian ships with the kernel's source alone: checkpatch, the netlink
# specifications' schemas and generic client (YNL), and the tests of cgroups.

linux_source_files=(
	scripts/checkpatch.pl scripts/spelling.txt scripts/const_structs.checkpatch
	Documentation/netlink/{genetlink-legacy,specs/nlctrl}.yaml tools/net/ynl
	tools/testing/selftests/{cgroup,clone3,pidfd,kselftest.h}
)

# Sets linux_source, the directory where those files lie as they do in the kernel's tree.
prepare_linux_source() {
	local package
	with_lock apt update_lists
	package=$(depends "$(newest linux-source:all bookworm-backports)" 'linux-source-.*')
	package=$(newest "$package:all" bookworm-backports)
	linux_source=$cache/linux-source-$(version_of "$package")-$(
		printf '%s\n' "${linux_source_files[@]}" | sha256sum | cut -c 1-12)
	once "$linux_source" unpack_linux_source "$package"
}

unpack_linux_source() { # PACKAGE
	local work
	work=$(mktemp -d "$linux_source.XXXXXX")
	mkdir "$work/tree"
	note "downloading $1, for ${linux_source_files[*]##*/}"
	(cd "$work" && rig_apt apt-get download -qq "$1") >&2
	dpkg-deb --fsys-tarfile "$work"/*.deb |
		tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -xJ -C "$work/tree" --strip-components 1 --wildcards "${linux_source_files[@]/#/*/}"
	mv "$work/tree" "$linux_source"
	rm -r "$work"
}
