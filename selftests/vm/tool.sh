# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # load_cell and resolve_cell set what is not set here
#
# The umacct tool for a cell's architecture, and the shared libraries that it needs.

# Nothing but "umacct" for who shows that alone, and needs no more libraries then.
tool_alone=

# Tests want it soon; whoever counts its instructions, as people have it.
optimize=${UMACCT_OPTIMIZE:--O1}

# prepare_tool: sets tool_tree, which has the tool, and what checks its JSON, for a root file system.
# They are in the cache for as long as nothing changes that they are made from.
prepare_tool() {
	tool_tree=$cache/tool/$arch-$(tool_key)
	once "$tool_tree" with_lock "$(userspace_build)" build_tool "$tool_tree"
	touch "$tool_tree"
}

# add_tool ROOT: installs what prepare_tool() made into the root file system ROOT.
add_tool() {
	prepare_tool
	cp -a "$tool_tree/." "$1"
	install -D -m 644 -t "$1/selftests" "$clone/docs/umacct.schema.json"
}

# Everything that the tool is made from.
tool_key() {
	{
		cat "$vm/tool.sh"
		echo "$optimize $tool_alone"
		"${cross}g++-12" --version 2>/dev/null || g++ --version
		printf '%s\n' "${sysroot_packages[@]}" "${guest_packages[@]}"
		dpkg-query -W -f '${Package} ${Version}\n' 'lib*-dev' nlohmann-json3-dev
		cd "$clone" && find CMakeLists.txt VERSION extra include packaging userspace ! -path '*/tests/*' -type f \
			-exec sha256sum {} + | sort
		sha256sum userspace/tests/{check_json,schema,cuda_stand_in,nvml_stand_in}.*
	} | sha256sum | cut -c 1-16
}

# build_programs [TARGET]...: what is installed, and these, in the build directory.
build_programs() {
	local to programs=(umacct umacctd umacct-hook umacct-runtime umacct_nvml "$@")
	# There is no HTTP library for the cross compiler.
	[[ $arch != "$host_arch" ]] || programs+=(umacct-exporter)
	[[ ! $tool_alone ]] || programs=(umacct)
	to=$(userspace_build)
	configure_tool
	[[ $tool_alone ]] || ! grep -q '^UMACCT_OBSERVER:BOOL=ON' "$to/CMakeCache.txt" || programs+=(umacct_observer)
	with_progress "the tool for $arch" ninja_progress "$to/build.log" \
		cmake --build "$to" --target "${programs[@]}" -j "$jobs"
}

build_tool() { # READY
	local to work
	to=$(userspace_build)
	work=$1.$$
	rm -rf "$work"
	mkdir -p "$work"
	build_programs check_json umacct_nvml_stand_in umacct_cuda_stand_in
	if [[ $tool_alone ]]; then
		install -D -s --strip-program="${cross}strip" -t "$work/usr/bin" "$to/userspace/umacct"
		install_libraries "$work" "$work/usr/bin/umacct"
		mv "$work" "$1"
		return
	fi
	quietly "$to/install.log" cmake --install "$to" --strip --prefix "$work/usr"
	install_libraries "$work" "$work/usr/bin/umacct"
	install_libraries "$work" "$work/usr/sbin/umacctd"
	install_libraries "$work" "$work/usr/lib/umacct/umacct-hook"
	install_libraries "$work" "$work/usr/lib/umacct/umacct-runtime"
	install_loaded "$work" libsqlite3.so.0
	[[ ! -e $work/usr/lib/umacct/libumacct-observer.so ]] ||
		install_libraries "$work" "$work/usr/lib/umacct/libumacct-observer.so"
	[[ $arch != "$host_arch" ]] || install_libraries "$work" "$work/usr/sbin/umacct-exporter"
	install -D -s --strip-program="${cross}strip" -t "$work/selftests/bin" \
		"$to/userspace/check_json"
	# In folders of their own, as programs look for the real ones.
	install -D -m 644 "$to/userspace/nvml/stand_in/libumacct-nvml-real.so.1" \
		"$work/selftests/nvml/libnvidia-ml.so.1"
	install -D -m 644 -t "$work/selftests/cuda" "$to/userspace/cuda_stand_in/libcuda.so.1"
	install_guest_programs "$work"
	mv "$work" "$1"
	forget_old "${1%/*}" "$arch-*" 8
}

# Ninja says "[DONE/TO-DO] ...".
ninja_progress() { # LOG
	sed -n 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/\1 of \2/p' "$1" | tail -n 1 | grep . || echo 0
}

# install_guest_programs ROOT: tmux, descriptions of terminals, a locale in UTF-8, and
# the free of procps, as procps-free: busybox has one too. The locale is the host's, as
# the C library is.
install_guest_programs() {
	local tree dir
	tree=$(unpacked "${guest_packages[@]}")
	mkdir -p "$1"/lib/terminfo "$1/usr/lib/locale"
	for dir in "$tree"/{,usr/}lib/*-linux-gnu; do
		library_path+=("$dir")
	done
	cp "$tree/usr/bin/tmux" "$1/usr/bin/"
	install_libraries "$1" "$1/usr/bin/tmux"
	cp "$tree/usr/bin/free" "$1/usr/bin/procps-free"
	install_libraries "$1" "$1/usr/bin/procps-free"
	for dir in l/linux s/screen t/tmux v/vt100 x/xterm; do
		install -D -m 644 "$tree/lib/terminfo/$dir" "$1/lib/terminfo/$dir"
	done
	cp -r /usr/lib/locale/C.utf8 "$1/usr/lib/locale/"
}

userspace_build() {
	echo "$clone/build/userspace-$arch"
}

# What was compiled once, in whichever clone, is in the cache by its content.
export CCACHE_DIR=$cache/ccache CCACHE_BASEDIR=$clone CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=2G
export CCACHE_SLOPPINESS=pch_defines,time_macros
compiler_cache=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# Eight files at a time: to read what they all include takes most of the time.
joined_files=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8)

# What takes libraries that umacct itself doesn't.
tool_parts=(-DBUILD_TESTING -DUMACCT_EXPORTER -DUMACCT_KUBERNETES -DUMACCT_OBSERVER)

# configure_tool: readies the build directory, and sets library_path. The unit tests
# are built in the same place, where they can run.
configure_tool() {
	local to sysroot libraries
	to=$(userspace_build)
	mkdir -p "$to"
	if [[ $arch == "$host_arch" ]]; then
		library_path=("/lib/$triplet" "/usr/lib/$triplet")
		# What is configured there has umacct in any case; what is made of it is not made again for others.
		[[ ! $tool_alone || ! -e $to/build.ninja ]] || return 0
		quietly "$to/configure.log" cmake -G Ninja -S "$clone" -B "$to" \
			"${compiler_cache[@]}" "${joined_files[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="$optimize" \
			"${tool_parts[@]/%/=$([[ $tool_alone ]] && echo OFF || echo ON)}"
		return
	fi
	sysroot=$(unpacked "${sysroot_packages[@]}")
	libraries=$sysroot/usr/lib/$triplet
	library_path=("$sysroot/lib/$triplet" "$libraries" "/usr/$triplet/lib")
	quietly "$to/configure.log" env \
		PKG_CONFIG_SYSROOT_DIR="$sysroot" PKG_CONFIG_LIBDIR="$libraries/pkgconfig" \
		cmake -G Ninja -S "$clone" -B "$to" \
		"${compiler_cache[@]}" "${joined_files[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="$optimize" \
		-DBUILD_TESTING=OFF -DUMACCT_EXPORTER=OFF \
		-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="${triplet%%-*}" \
		-DCMAKE_C_COMPILER="${cross}gcc-12" \
		-DCMAKE_CXX_COMPILER="${cross}g++-12" \
		-DCMAKE_LIBRARY_ARCHITECTURE="$triplet" \
		-DCMAKE_FIND_ROOT_PATH="$sysroot" \
		-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
		-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
		-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
		-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
		-DCMAKE_EXE_LINKER_FLAGS="-L$sysroot/lib/$triplet \
			-Wl,-rpath-link,$sysroot/lib/$triplet"
}

# install_loaded ROOT NAME: a library that is loaded when it is needed.
install_loaded() {
	local dir
	for dir in "${library_path[@]}"; do
		[[ ! -e $dir/$2 ]] || break
	done
	cp -L "$dir/$2" "$1/lib/" || die "no library $2 for $arch"
	install_libraries "$1" "$1/lib/$2"
}

# install_libraries ROOT FILE: the loader of a program, and every library that it or a
# library needs.
install_libraries() {
	local root=$1 name file loader dir
	local -a wanted=("$2")
	loader=$("${cross}readelf" -l "$2" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
	mkdir -p "$root/lib"
	while [[ ${#wanted[@]} -gt 0 ]]; do
		file=${wanted[0]}
		wanted=("${wanted[@]:1}")
		while read -r name; do
			[[ ! -e $root/lib/$name ]] || continue
			for dir in "${library_path[@]}"; do
				[[ ! -e $dir/$name ]] || break
			done
			cp -L "$dir/$name" "$root/lib/" || die "no library $name for $arch"
			wanted+=("$root/lib/$name")
		done < <("${cross}readelf" -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	done
	# A library has none.
	[[ $loader ]] || return 0
	mkdir -p "$root${loader%/*}"
	cp -nL "$root/lib/${loader##*/}" "$root$loader"
}
