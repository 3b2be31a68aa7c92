# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# The kernel's own generic netlink client, tools/net/ynl, with its schemas in /ynl as in
# the kernel's tree, and the Python that it is written in.

image_packages=(
	python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
	python3-yaml python3-jsonschema:all python3-attr:all python3-pyrsistent
	libc6 libexpat1 libyaml-0-2 zlib1g
)

prepare_linux_source

fill_image() { # ROOT TREE TRIPLET
	local root=$1 tree=$2 dynamic=usr/lib/python3.11/lib-dynload object
	mkdir -p "$root"/{ynl,usr/bin,usr/lib/python3}
	cp -r "$linux_source"/{Documentation,tools} "$root/ynl"
	cp "$tree/usr/bin/python3.11" "$root/usr/bin/python3"
	install_libraries "$root" "$root/usr/bin/python3"
	cp -r "$tree/usr/lib/python3.11" "$root/usr/lib/"
	cp -r "$tree/usr/lib/python3/dist-packages" "$root/usr/lib/python3/"
	# Others want libraries, which nothing here would use.
	find "$root/$dynamic" -name '*.so' ! -name '_decimal.*' ! -name '_json.*' \
		! -name '_contextvars.*' ! -name '_typing.*' -delete
	find "$root" -name '*.so' | while read -r object; do
		install_libraries "$root" "$object"
	done
	compile_python "$root"
}

# Compiled here, where that takes no time; where it can't be, the machine does it.
compile_python() { # ROOT
	[[ $arch == "$host_arch" ]] || return 0
	PYTHONHOME=$1/usr "$1/usr/bin/python3" -m compileall -q --invalidation-mode unchecked-hash \
		"$1/usr/lib" "$1/ynl" >&2 || note "Python's modules are compiled in the machine"
}
