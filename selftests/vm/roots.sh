# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Root folders of Debian's, in which the clone is built as on a machine that was just
# installed. Their base, and what "make setup" installs there, are in the cache; this
# machine's own system is not touched.

# shellcheck source=/dev/null
. "$vm/debian.sh"

# In a user namespace of our own, whose users are this machine's, a kernel since 6.7 has a
# binfmt_misc of our own: who interprets arm64's programs changes for nobody else.
in_namespace() { # COMMAND...
	local holder child code=0
	unshare --user sleep infinity &
	holder=$!
	until [[ $(readlink "/proc/$holder/ns/user") != "$(readlink /proc/self/ns/user)" ]]; do
		sleep 0.1
	done
	echo 0 0 4294967295 >"/proc/$holder/uid_map"
	echo 0 0 4294967295 >"/proc/$holder/gid_map"
	nsenter --user --target "$holder" --preserve-credentials \
		unshare --mount --pid --fork --kill-child --mount-proc "$@" &
	child=$!
	# While it waits, unshare heeds no other signal; all in there goes with it.
	trap 'kill -KILL "$child" "$holder"; exit 130' INT TERM
	wait "$child" || code=$?
	trap - INT TERM
	kill "$holder"
	return "$code"
}

# emulate ARCH: lets the kernel run its programs, here and in root folders.
emulate() {
	local binfmt=/proc/sys/fs/binfmt_misc machine=$1 tree rule
	[[ $1 != arm64 ]] || machine=aarch64
	[[ $1 != amd64 ]] || machine=x86_64
	[[ $1 != "$host_arch" && ! -e $binfmt/qemu-$machine ]] || return 0
	mount -t binfmt_misc none "$binfmt" ||
		die "$1's programs can't be run here: that takes Linux 6.7, or qemu-user-static"
	tree=$(unpacked "$(newest "qemu-user:$host_arch" bookworm-backports)")
	rule=$(cut -d : -f 1-6 "$tree/usr/share/qemu/binfmt.d/qemu-$machine.conf")
	# Opened once, so that root folders need not have it.
	echo "$rule:$tree/usr/bin/qemu-$machine:F" >"$binfmt/register"
}

build_to_build_in() { # DIRECTORY SUITE ARCH
	local made
	note "downloading Debian ($2, $3), to build in"
	made=$(mktemp -d "$1.XXXXXX")
	# shellcheck disable=SC2154 # debian.sh sets it
	make_debian "$2" "$3" "$made/root" --mode=root --variant=apt --include=make \
		--skip=cleanup/apt/lists,check/qemu "${passing[@]}"
	mv "$made/root" "$1"
	rm -rf "$made"
}

# The folder's layers: Debian's base and what "make setup" installed are in the cache, the
# latter for as long as selftests/run setup is the same; what is built on top goes.
mount_root() { # UPPER LOWER
	mkdir -p "$1" "$1.work" "$root"
	chmod 755 "$1"
	mount -t overlay -o "userxattr,lowerdir=$2,upperdir=$1,workdir=$1.work" none "$root"
	mount --rbind /dev "$root/dev"
}

# All of it at once: what lies in /dev can't be unmounted one by one in a namespace.
unmount_root() {
	umount --lazy "$root"
}

# in_root COMMAND...: in the clone, as on a machine that runs Debian's kernel. Compiled
# without optimizing: here it is about whether that works.
in_root() {
	unshare --mount --pid --fork --kill-child --root="$root" --wd=/umacct --mount-proc \
		env -i PATH=/opt/fake:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root \
		CMAKE_BUILD_PARALLEL_LEVEL="$jobs" CMAKE_BUILD_TYPE=None CXXFLAGS=-O0 CFLAGS=-O0 "$@"
}

# The clone's files, without what was built, and a uname(1) that tells of Debian's kernel.
fill_root() {
	mkdir -p "$root/umacct" "$root/opt/fake"
	(cd "$clone" && git ls-files -z | cpio --quiet -0pdm "$root/umacct")
	cat >"$root/opt/fake/uname" <<-END
		#!/bin/sh
		[ "\$*" != -r ] || exec echo $release
		exec /bin/uname "\$@"
	END
	chmod +x "$root/opt/fake/uname"
}

# prepare_root SUITE ARCH: sets base, installed (where "make setup" was done) and release,
# the kernel whose headers that installs.
prepare_root() {
	# Packages that Debian no longer has can't be installed: what is a week old is made anew.
	base=$cache/fresh/$1-$2-base-$(date +%G-%V)
	installed=$cache/fresh/$1-$2-setup-$(
		cat "$clone/selftests/setup" - <<<"$base" | sha256sum | cut -c 1-12)
	mkdir -p "$cache/fresh"
	once "$base" build_to_build_in "$base" "$1" "$2"
	forget_old "$cache/fresh" "$1-$2-base-*" 1
	release=$(chroot "$base" apt-cache depends "linux-headers-$2" |
		sed -n 's/.*Depends: linux-headers-//p' | head -n 1)
}

# make_layer NAME LOWER COMMAND...: the cache's layer NAME is what the command, in the root
# folder, adds to LOWER.
make_layer() {
	local upper
	upper=$(mktemp -d "$1.XXXXXX")
	mount_root "$upper" "$2"
	fill_root
	"${@:3}" || return
	unmount_root
	rm -rf "$upper"/{umacct,opt,tmp} "$upper.work"
	mv "$upper" "$1"
	forget_old "${1%/*}" "$(basename "${1%-*}")-*" 1
}

# install_setup: does what prepare_root spoke of.
install_setup() {
	[[ -e $installed ]] || make_layer "$installed" "$base" in_root make setup
}
