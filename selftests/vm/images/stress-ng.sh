# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # image uses it
#
# stress-ng, and the libraries that it is linked with.

image_packages=(
	stress-ng libc6 libegl1 libgles2 libglvnd0 libgbm1 libdrm2 libexpat1
	libwayland-server0 libffi8 libxcb-randr0 libxcb1 libxau6 libxdmcp6 libbsd0 libmd0
	libipsec-mb1 libjpeg62-turbo libjudydebian1 libkmod2 libzstd1 liblzma5 libssl3 libsctp1
	libxxhash0 zlib1g libapparmor1 libcrypt1
)

fill_image() { # ROOT TREE TRIPLET
	mkdir -p "$1/usr/bin"
	cp "$2/usr/bin/stress-ng" "$1/usr/bin/"
	install_libraries "$1" "$1/usr/bin/stress-ng"
}
