# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # base.sh and cells.sh set and read what is not here
#
# A kernel that Debian doesn't ship, built from Debian's source of it. What is in it say
# kernels/common.config and kernels/NAME.config, and Kconfig where they say nothing. It
# lies in the cache as a package of Debian's lies unpacked.

is_built_here() {
	[[ -e $vm/kernels/$flavour.config ]]
}

# For resolve_packages: sets kernel_packages, kernel_release and kernel_gcc.
resolve_kernel_source() {
	kernel_packages=("$(newest_linux_source "$kernel_suite")")
	kernel_release=$(version_of "${kernel_packages[0]}")
	kernel_release=${kernel_release%%-*}-umacct-$flavour
	kernel_gcc=12
}

# As prepare_kernel. All modules that a machine needs are built in.
prepare_built_kernel() {
	kernel_key=$(version_of "${kernel_packages[0]}")-$({
		cat "$vm/kernel.sh"
		kernel_config
	} | sha256sum | cut -c 1-12)
	kernel_tree=$cache/kernels/$flavour-$kernel_key
	once "$kernel_tree" build_kernel
	kernel_build=$kernel_tree/usr/src/linux-headers-$kernel_release
	kernel_common=$kernel_build
	kernel_image=$kernel_tree/boot/vmlinuz-$kernel_release
	kernel_make=(make)
	kernel_modules=()
	# Debian's headers know their compiler.
	kernel_compiler=(CC="$kernel_cc")
}

kernel_config() {
	cat "$vm/kernels/common.config" "$vm/kernels/$flavour.config"
}

# Nothing needs what is left out, and all of it would take ten times the room.
unpack_kernel_source() { # DIRECTORY
	linux_source_tar "${kernel_packages[0]}" "$1" | tar -x --one-top-level="$1/source" --strip-components 1 \
		--wildcards --exclude='*/arch/[!x]*/*.[chS]' --exclude='*.dts*' \
		--exclude='*/drivers/'{gpu/drm/*,net/ethernet,net/wireless,media,staging}'/*.[ch]' \
		--exclude='*/sound/*.c'
}

build_kernel() {
	local work config
	local -a make
	mkdir -p "$cache/kernels"
	work=$(mktemp -d "$kernel_tree.XXXXXX")
	note "building the kernel $kernel_release"
	unpack_kernel_source "$work"
	config=$work/wanted.config
	kernel_config >"$config"
	mkdir "$work/objects"
	make=(make -C "$work/source" O="$work/objects" ARCH="$kernel_arch" CC="$kernel_cc"
		HOSTCC=gcc-12 LOCALVERSION="${kernel_release#"${kernel_release%%-*}"}" -j "$jobs")
	quietly "$work/log" "${make[@]}" KCONFIG_ALLCONFIG="$config" allnoconfig </dev/null
	agree_on_configuration "$config" "$work/objects/.config"
	with_progress "the kernel $kernel_release" kernel_progress "$work/log" \
		nice -n 5 "${make[@]}" bzImage modules
	install_kernel
	mv "$work/ready" "$kernel_tree"
	rm -rf "$work"
	forget_old "$cache/kernels" "$flavour-*" 2
}

# As Debian's packages have it: the image, the list of what is built in, and what modules
# are built against.
install_kernel() {
	local headers=$work/ready/usr/src/linux-headers-$kernel_release
	mkdir -p "$work/ready/boot"
	quietly "$work/log" "${make[@]}" INSTALL_MOD_PATH="$work/ready" modules_install
	# shellcheck disable=SC2016 # make expands it
	quietly "$work/log" "${make[@]}" run-command \
		KBUILD_RUN_COMMAND='+$(srctree)/scripts/package/install-extmod-build '"$headers"
	cp "$work/objects/.config" "$headers"
	cp "$work/objects/arch/$kernel_arch/boot/bzImage" "$work/ready/boot/vmlinuz-$kernel_release"
	cp "$work/objects/System.map" "$work/ready/boot/System.map-$kernel_release"
	rm "$work/ready/lib/modules/$kernel_release/build"
}

# Kconfig drops without a word what depends on something that is off.
agree_on_configuration() { # WANTED GOT
	local line name
	while read -r line; do
		name=${line#\# }
		name=${name%%[ =]*}
		case $line in
		CONFIG_*) grep -qxF "$line" "$2" ;;
		"# CONFIG_"*) ! grep -q "^$name=" "$2" ;;
		esac || die "$flavour.config or common.config says '$line'; Kconfig makes of it '$(grep -w "$name" "$2")'"
	done <"$1"
}

kernel_progress() { # LOG
	grep -cE '^ *(CC|AS|LD)' "$1"
}
