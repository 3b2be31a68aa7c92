# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# Real container runtimes: in /containers is a small Debian to chroot into, with podman,
# containerd, runc, crun and what they need, and the root file system of a container.

programs=(podman conmon runc crun containerd containerd-shim-runc-v2 ctr)
image_packages=(
	golang-github-containers-common:all busybox-static podman conmon runc crun containerd
	# the programs' own libraries, and those that these need in turn
	libc6 libgpgme11 libassuan0 libgpg-error0 libseccomp2 libsubid4 libpam0g libaudit1 libcap-ng0
	libsemanage2 libsepol2 libbz2-1.0 libdevmapper1.02.1 libselinux1 libpcre2-8-0 libudev1
	libacl1 libattr1 libcrypt1 libsystemd0 libcap2 libgcrypt20 liblzma5 libzstd1 liblz4-1
	libglib2.0-0 libyajl2
)

fill_image() { # ROOT TREE TRIPLET
	fill_world "$@"
}

fill_world() { # ROOT TREE TRIPLET
	local root=$1/containers tree=$2 program
	mkdir -p "$root"/{bin,dev,etc/containers,etc/containerd,lib,proc,root,run,sys,tmp,usr/bin,usr/share,var/tmp} \
		"$root"/rootfs/{bin,ctl,dev,proc,sys,tmp}
	for program in "${programs[@]}"; do
		cp "$tree/usr/bin/$program" "$root/usr/bin/"
		install_libraries "$root" "$root/usr/bin/$program"
	done
	cp "$tree"/{,usr/}bin/busybox "$root/rootfs/bin/" 2>/dev/null || [[ -e $root/rootfs/bin/busybox ]]
	[[ ! -e $tree/usr/share/containers ]] || cp -r "$tree/usr/share/containers" "$root/usr/share/"
	write_configuration "$root/etc"
}

# The machine has no systemd, no network but its own, and no image store.
write_configuration() { # ETC
	cat >"$1/containers/containers.conf" <<-END
		[containers]
		log_driver = "none"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "none"
		runtime = "runc"
		[network]
		network_backend = "cni"
	END
	cat >"$1/containers/storage.conf" <<-END
		[storage]
		driver = "vfs"
		runroot = "/run/containers"
		graphroot = "/var/lib/containers"
	END
	# Without the part that the kubelet would talk to: it wants a network and images.
	cat >"$1/containerd/config.toml" <<-END
		version = 2
		disabled_plugins = [
			"io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs",
			"io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs",
			"io.containerd.snapshotter.v1.devmapper",
			"io.containerd.snapshotter.v1.overlayfs",
		]
	END
	echo "root:x:0:0:root:/root:/bin/sh" >"$1/passwd"
	echo "root:x:0:" >"$1/group"
}
