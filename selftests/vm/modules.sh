# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # prepare_kernel sets what is not set here
#
# Our kernel modules for a cell. The same source serves several kernels, so each
# builds a copy of it.

# make_modules TO DIRECTORY... -- [MAKE-ARGUMENT]...
make_modules() {
	local to=$1 dir
	local -a dirs=()
	shift
	while [[ $1 != -- ]]; do
		dirs+=("$1")
		shift
	done
	shift
	copy_sources "$to" include "${dirs[@]}"
	cp -p "$clone/VERSION" "$to"
	for dir in "${dirs[@]}"; do
		make_module "$to/$dir" "$@" || return
	done
}

make_module() { # DIRECTORY [MAKE-ARGUMENT]...
	"${kernel_make[@]}" -s -C "$kernel_build" M="$1" -j "$jobs" \
		"${kernel_compiler[@]}" CONFIG_DEBUG_INFO_BTF_MODULES= "${@:2}" modules
}

# Times are kept, for make; what make left there stays; what is gone from the source
# goes.
copy_sources() { # TO DIRECTORY...
	local to=$1 dir file
	shift
	for dir; do
		mkdir -p "$to/$dir"
		(cd "$clone/$dir" && find . -name '*.[chS]' ! -name '*.mod.c' -o -name Kbuild |
			cpio --quiet -pdmu "$to/$dir")
		find "$to/$dir" -name '*.[chS]' ! -name '*.mod.c' -printf '%P\n' |
			while read -r file; do
				[[ -e $clone/$dir/$file ]] || rm "$to/$dir/$file"
			done
	done
}
