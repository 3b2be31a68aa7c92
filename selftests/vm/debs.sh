# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # prepare_root and the callers set what is not set here
#
# Debian's packages of the clone, for a Debian and an architecture; and others of them.

# prepare_debs: sets debs, the directory with the packages for suite and arch. They are in the
# cache for as long as nothing changes that they are made from.
prepare_debs() {
	debs=$cache/debs/$suite-$arch-$({
		date +%G-%V
		cat "$vm/debs.sh"
		cd "$clone" && git ls-files -z ':!selftests' ':!userspace/tests' ':!.ci' | xargs -0 sha256sum
	} | sha256sum | cut -c 1-12)
	mkdir -p "$cache/debs"
	once "$debs" build_debs
	touch "$debs"
	forget_old "$cache/debs" "$suite-$arch-*" 3
}

# As soon as may be compiled: here it is about what is where.
build_debs() {
	local layers cross_layer
	local -a options=()
	note "building the packages for $suite on $arch"
	prepare_root "$suite" "$host_arch"
	install_setup >"$out/setup.log" 2>&1 || die "make setup failed: see $out/setup.log"
	layers=$installed:$base
	if [[ $arch != "$host_arch" ]]; then
		options=("DEB_ARCH=$arch")
		cross_layer=${installed/-setup-/-cross-$arch-}-$(sha256sum <"$clone/debian/control" | cut -c 1-12)
		[[ -e $cross_layer ]] ||
			make_layer "$cross_layer" "$layers" install_cross >"$out/cross.log" 2>&1 ||
			die "cross-compilers can't be installed: see $out/cross.log"
		layers=$cross_layer:$layers
	fi
	mount_root "$out/upper" "$layers"
	fill_root
	quietly "$out/deb.log" in_root env -u CFLAGS -u CXXFLAGS DEB_BUILD_OPTIONS="parallel=$jobs" \
		DEB_CFLAGS_STRIP='-g -O2' DEB_CXXFLAGS_STRIP='-g -O2' \
		DEB_CFLAGS_APPEND=-O1 DEB_CXXFLAGS_APPEND=-O1 make deb "${options[@]}"
	mkdir "$debs.$$"
	cp "$root"/umacct/build/deb/*.deb "$debs.$$"
	unmount_root
	rm -rf "$out/upper" "$out/upper.work"
	mv "$debs.$$" "$debs"
}

install_cross() {
	in_root dpkg --add-architecture "$arch" && in_root apt-get update -q &&
		in_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
			"crossbuild-essential-$arch" &&
		in_root env DEBIAN_FRONTEND=noninteractive apt-get build-dep -q -y \
			--host-architecture "$arch" ./
}

# repack_tool DEB VERSION NEW TO: the same package as of another version.
repack_tool() {
	local tree
	tree=$(mktemp -d)
	dpkg-deb -R "$1" "$tree"
	sed -i "s/$2/$3/g" "$tree/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$tree" "$4" >/dev/null
	rm -r "$tree"
}

# repack_module DEB VERSION NEW TO: the module's package as another version might be,
# with a module of one line.
repack_module() {
	local tree source
	tree=$(mktemp -d)
	source=$tree/usr/src/umacct-$3
	dpkg-deb -R "$1" "$tree"
	mv "$tree/usr/src/umacct-$2" "$source"
	rm -r "$source/kmod"/*
	printf 'obj-m := umacct.o\n' >"$source/kmod/Kbuild"
	printf '#include <linux/module.h>\nMODULE_LICENSE("GPL");\nMODULE_VERSION("%s");\n' \
		"$3" >"$source/kmod/umacct.c"
	sed -i "s/$2/$3/g" "$tree"/DEBIAN/{control,postinst,prerm} "$source/dkms.conf"
	rm "$tree/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -b "$tree" "$4" >/dev/null
	rm -r "$tree"
}
