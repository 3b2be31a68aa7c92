# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# Programs that ask NVML, as Debian has them: pynvml and gpustat with their Python, and nvtop.
# NVML itself is the stand-in that the tool comes with.

image_packages=(
	python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
	python3-pynvml:all gpustat python3-psutil python3-blessed:all python3-six:all
	python3-wcwidth:all python3-pkg-resources:all nvtop
	libc6 libexpat1 libffi8 libncursesw6 libtinfo6 zlib1g
	libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblzma5 libzstd1 liblz4-1
)

fill_image() { # ROOT TREE TRIPLET
	local root=$1 tree=$2 dynamic=usr/lib/python3.11/lib-dynload object
	mkdir -p "$root"/usr/{bin,lib/python3}
	cp "$tree/usr/bin/python3.11" "$root/usr/bin/python3"
	cp "$tree"/usr/bin/{gpustat,nvtop} "$root/usr/bin/"
	cp -r "$tree/usr/lib/python3.11" "$root/usr/lib/"
	cp -r "$tree/usr/lib/python3/dist-packages" "$root/usr/lib/python3/"
	# These want libraries, which nothing here would use.
	rm -f "$root/$dynamic"/{_bz2,_crypt,_dbm,_gdbm,_hashlib,_sqlite3,_ssl,_tkinter,_uuid,nis,readline}.*
	rm -f "$root/$dynamic"/*test*
	for object in "$root"/usr/bin/{python3,nvtop}; do
		install_libraries "$root" "$object"
	done
	find "$root" -name '*.so' | while read -r object; do
		install_libraries "$root" "$object"
	done
	[[ $arch != "$host_arch" ]] || PYTHONHOME=$root/usr "$root/usr/bin/python3" -m compileall -q \
		--invalidation-mode unchecked-hash "$root/usr/lib" >&2 ||
		note "Python's modules are compiled in the machine"
}
