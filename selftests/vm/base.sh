# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What a cell has of Debian: its kernel, NVIDIA's driver built for it, and the base
# of the virtual machine's root file system. All of it is cached, keyed by versions;
# nothing here depends on the clone's contents but on the rig itself.

# shellcheck source=/dev/null
. "$vm/newer.sh"
# shellcheck source=/dev/null
. "$vm/linux_source.sh"
# shellcheck source=/dev/null
. "$vm/kernel.sh"

# Modules that the virtual machine may need beside those that are built in.
kernel_modules=(virtio_pci virtio_console drm loop virtio_blk ext4)

driver_modules=(nvidia nvidia-uvm)

# What the tool is linked with, where the host's libraries are not the cell's.
tool_packages=(
	libnl-3-200 libnl-3-dev libnl-genl-3-200 libnl-genl-3-dev
	libfmt9 libfmt-dev libcli11-dev:all nlohmann-json3-dev:all libvalijson-dev:all
	libncursesw6 libtinfo6 libncurses-dev
	libsqlite3-0 libsqlite3-dev libtomlplusplus3 libtomlplusplus-dev
	libsystemd0 libsystemd-dev libcap2 libgcrypt20 libgpg-error0 liblzma5 libzstd1 liblz4-1
	libbpf1 libbpf-dev libelf1 libelf-dev zlib1g zlib1g-dev
)

# A terminal without a screen, for the cases that press keys; and the free(1) that
# people have. With the libraries that a host may lack.
guest_programs=(
	tmux libevent-core-2.1-7 libutempter0
	procps libproc2-0 libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblzma5 libzstd1 liblz4-1
)

# resolve_cell: which packages the cell is made of. Sets kernel_release, kernel_gcc,
# driver_package (empty without a driver), userland_package and the arrays kernel_packages,
# sysroot_packages and guest_packages.
resolve_cell() {
	# Clones that share the cache may ask for different packages.
	local file
	file=$cache/cells/$cell-$(sha256sum "${BASH_SOURCE[0]}" | cut -c 1-12)
	with_lock apt update_lists
	if [[ $apt_dir/updated -nt $file ]]; then
		mkdir -p "$cache/cells"
		resolve_packages
		declare -p kernel_release kernel_gcc kernel_packages driver_package userland_package \
			sysroot_packages guest_packages | sed 's/^declare /declare -g /' >"$file.$$"
		mv "$file.$$" "$file"
	else
		# shellcheck source=/dev/null
		. "$file"
	fi
}

resolve_packages() {
	local name
	if is_built_here; then
		resolve_kernel_source
	else
		resolve_kernel
	fi
	driver_package=
	[[ $driver_suite == - ]] ||
		driver_package=$(newest "nvidia-open-kernel-source:$arch" "$driver_suite")
	userland_package=$(newest "busybox-static:$arch" "$userland_suite")
	sysroot_packages=()
	if [[ $arch != "$host_arch" ]]; then
		for name in "${tool_packages[@]}"; do
			[[ $name == *:* ]] || name+=:$arch
			sysroot_packages+=("$(newest "$name" "$userland_suite")")
		done
	fi
	guest_packages=("$(newest "ncurses-base:all" "$userland_suite")")
	for name in "${guest_programs[@]}"; do
		guest_packages+=("$(newest "$name:$arch" "$userland_suite")")
	done
}

resolve_kernel() {
	local meta image headers common kbuild name
	local -a beside=(-elinux-base -elinux-binary -elinux-modules)
	meta=$(newest "linux-image-$flavour:$arch" "$kernel_suite")
	image=$(depends "$meta" 'linux-image-.*')
	kernel_release=${image#linux-image-}
	headers=$(newest "linux-headers-$kernel_release:$arch" "$kernel_suite")
	common=$(depends "$headers" 'linux-headers-.*-common.*')
	kbuild=$(depends "$headers" 'linux-kbuild-.*')
	# Kbuild's programs run on the host, the rest is the cell's.
	kernel_packages=(
		"$(newest "$image:$arch" "$kernel_suite")"
		"$headers"
		"$(newest "$common:all" "$kernel_suite")"
		"$(newest "$kbuild:$host_arch" "$kernel_suite")"
	)
	kernel_gcc=$(depends "$headers" '.*gcc-[0-9].*' | sed 's/.*gcc-\([0-9]*\).*/\1/')
	# What newer kernels have beside the image.
	for name in $(rig_apt apt-cache show "${kernel_packages[0]}" |
		grep -oF "${beside[@]/%/-$kernel_release}" | sort -u); do
		kernel_packages+=("$(newest "$name:$arch" "$kernel_suite")")
	done
}

# prepare_kernel: sets kernel_tree (the packages, unpacked), kernel_key (what tells it from
# the flavour's others), kernel_build (the directory to build modules against) and
# kernel_make (the make to do it with).
prepare_kernel() {
	# shellcheck disable=SC2034 # used by modules.sh
	kernel_compiler=()
	if is_built_here; then
		prepare_built_kernel
		return
	fi
	kernel_key=$(version_of "${kernel_packages[0]}")
	kernel_tree=$(unpacked "${kernel_packages[@]}")
	kernel_build=$kernel_tree/usr/src/linux-headers-$kernel_release
	kernel_common=$kernel_tree/usr/src/${kernel_packages[2]%%:*}
	# shellcheck disable=SC2034 # used by build
	kernel_image=$kernel_tree/boot/vmlinuz-$kernel_release
	[[ -e $kernel_image ]] || kernel_image=$kernel_tree/usr/lib/modules/$kernel_release/vmlinuz
	# shellcheck disable=SC2034 # used by modules.sh
	kernel_make=(make)
	if ! runs_here "$kernel_tree/usr/lib/${kernel_packages[3]%%:*}" \
		"$kernel_gcc" "$cross"; then
		prepare_newer "$kernel_gcc"
		# shellcheck disable=SC2034
		kernel_make=(in_newer make)
	fi

	once "$kernel_tree/prepared-$kernel_release" fix_kernel_tree
}

fix_kernel_tree() {
	# The packages expect to lie in /.
	sed -i "s|\([ =]\)/usr/src/|\1$kernel_tree/usr/src/|" "$kernel_build/Makefile"
	[[ -e $kernel_tree/lib ]] || ln -s usr/lib "$kernel_tree/lib"
	depmod -b "$kernel_tree" "$kernel_release"
	touch "$kernel_tree/prepared-$kernel_release"
}

# prepare_driver [DIR]: sets driver_version and driver_dir, where the driver's modules lie:
# built from Debian's package, or in DIR by somebody else. A cell may be without one.
prepare_driver() {
	local source module
	if [[ ${1-} ]]; then
		driver_dir=$(cd "$1" && pwd) || die "no directory $1"
		for module in "${driver_modules[@]}"; do
			[[ -e $driver_dir/$module.ko ]] || die "$1 has no $module.ko"
			[[ $(modinfo -F vermagic "$driver_dir/$module.ko") == "$kernel_release "* ]] ||
				die "$1/$module.ko was not built for $kernel_release"
		done
		driver_version=$(modinfo -F version "$driver_dir/nvidia.ko")
		return
	fi
	if [[ ! $driver_package ]]; then
		driver_modules=() driver_version='' driver_dir=
		return
	fi
	source=$(unpacked "$driver_package")
	driver_version=$(version_of "$driver_package")
	driver_version=${driver_version%%-*}
	driver_dir=$cache/driver/$flavour-$(version_of "$driver_package")-for-$kernel_key

	once "$driver_dir" build_driver "$source/usr/src/nvidia-open-kernel.tar.xz"
}

# Without debug information: nothing here needs it, and it takes most of the time.
build_driver() { # TARBALL
	local work
	note "building NVIDIA's driver $driver_version for $kernel_release"
	mkdir -p "$cache/driver"
	work=$(mktemp -d "$driver_dir.XXXXXX")
	tar -C "$work" -xf "$1"
	driver_files=$(find "$work"/modules/nvidia-open-kernel/{nvidia,nvidia-uvm} -name '*.c' | wc -l)
	with_progress "NVIDIA's driver $driver_version for $kernel_release" driver_progress \
		"$work/log" make -C "$work/modules/nvidia-open-kernel" -j "$jobs" modules \
		SYSSRC="$kernel_common" SYSOUT="$kernel_build" KERNEL_UNAME="$kernel_release" \
		ARCH="$(uname_machine)" CC="$kernel_cc" LD="${cross}ld" AR="${cross}ar" \
		OBJCOPY="${cross}objcopy" IGNORE_CC_MISMATCH=1 IGNORE_PREEMPT_RT_PRESENCE=1 \
		KCFLAGS=-g0 CONFIG_DEBUG_INFO_BTF_MODULES= \
		NV_KERNEL_MODULES="${driver_modules[*]}"
	mkdir "$work/ready"
	(cd "$work/modules/nvidia-open-kernel" && cp "${driver_modules[@]/%/.ko}" "$work/ready")
	mv "$work/ready" "$driver_dir"
	rm -rf "$work"
}

driver_progress() { # LOG
	echo "$(grep -c '^ *CC \[M\]' "$1") of $driver_files"
}

uname_machine() {
	case $arch in
	amd64) echo x86_64 ;;
	arm64) echo arm64 ;;
	esac
}

# with_dependencies MODULE...: the files of modules, each after what it needs.
with_dependencies() {
	local module
	for module; do
		modprobe -d "$kernel_tree" -S "$kernel_release" --show-depends "$module" |
			sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++'
}

# prepare_base: sets base, the cpio archive that every run of the cell starts from.
prepare_base() {
	local key modules=("${driver_modules[@]/%/.ko}")
	key=$(sha256sum "$vm/base.sh" "${modules[@]/#/$driver_dir/}" <(printf '%s\n' \
		"$kernel_key" "${kernel_packages[@]}" "$userland_package") | sha256sum | cut -c 1-12)
	base=$cache/base/$cell-$key.cpio

	once "$base" build_base
}

build_base() {
	local work root file name module
	mkdir -p "$cache/base"
	work=$(mktemp -d "$base.XXXXXX")
	root=$work/root
	mkdir -p "$root"/{bin,dev,etc,lib/umacct,lib/kernel,proc,root,run,sys,tmp,usr/bin,usr/lib,var}
	chmod 1777 "$root/tmp"
	cp "$(unpacked "$userland_package")/bin/busybox" "$root/bin/"
	ln -s bin "$root/sbin"

	while read -r file; do
		name=$(basename "$file" .xz)
		case $file in
		*.xz) xz -dc "$file" >"$root/lib/kernel/$name" ;;
		*) cp "$file" "$root/lib/kernel/$name" ;;
		esac
		echo "$name"
	done < <(with_dependencies "${kernel_modules[@]}") >"$root/lib/kernel/order"
	for module in "${driver_modules[@]}"; do
		"${cross}objcopy" --strip-debug "$driver_dir/$module.ko" "$root/lib/umacct/$module.ko"
	done

	pack "$root" "$work/cpio"
	mv "$work/cpio" "$base"
	rm -rf "$work"
	forget_old "$cache/base" "$cell-*" 4
}

pack() { # DIRECTORY FILE
	(cd "$1" && find . -mindepth 1 | sort | cpio --quiet -o -H newc -R 0:0) >"$2"
}
