# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# For the cases that run containers, after helpers.sh: the runtimes' world is a small
# Debian of its own, which a chroot is enough for.

WORLD=/containers

world_up() {
	cp "$(command -v rmtool)" "$WORLD/rootfs/bin/"
	# A container's root is pivoted to, and that takes a mount to come from.
	mount --bind "$WORLD" "$WORLD"
	mount --rbind /dev "$WORLD/dev"
	mount --rbind /sys "$WORLD/sys"
	mount -t proc proc "$WORLD/proc"
	mount -t tmpfs tmpfs "$WORLD/run"
	mount --bind /tmp "$WORLD/tmp"
}

world_down() {
	remove_containers
	umount -l "$WORLD"
}

podman() {
	chroot "$WORLD" podman "$@"
}

# podman gives up on who takes long to die.
remove_containers() {
	eventually podman rm --all --force --time 0 >/dev/null
}
