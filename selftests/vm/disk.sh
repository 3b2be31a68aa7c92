# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # install-vm sets what is not set here
#
# A disk with a whole Debian on it, as people have it before they install our packages.

# shellcheck source=/dev/null
. "$vm/debian.sh"

# What a person has there who runs containers and Prometheus; what our packages need, and
# later kernels' headers.
disk_packages() {
	printf '%s\n' systemd-sysv dbus udev kmod dkms gcc make libc6-dev openssl busybox-static \
		"linux-image-$arch" "linux-headers-$arch" initramfs-tools pahole podman crun prometheus
	# Linux 7's headers ask for it by that name.
	[[ $suite != trixie ]] || echo gcc-14-for-host
	dpkg-deb -f "$debs"/umacct_*.deb Depends | sed 's/([^)]*)//g; s/|[^,]*//g' | tr -d ' ' | tr , '\n'
}

# prepare_disk: sets disk, a directory with a file system, a kernel and its first root.
prepare_disk() {
	disk=$cache/root/vm-$suite-$arch-$(date +%G-%V)-$(
		cat "$vm/disk.sh" "$vm/debian.sh" <(disk_packages) | sha256sum | cut -c 1-12)
	mkdir -p "$cache/root"
	once "$disk" build_disk
	touch "$disk"
	forget_old "$cache/root" "vm-$suite-$arch-*" 1
}

# They take their time at each boot, and have nothing to do there.
idle_services="podman-restart.service podman-auto-update.service podman-auto-update.timer"

build_disk() {
	local made
	note "downloading Debian ($suite, $arch), for a machine to be installed on"
	made=$(mktemp -d "$disk.XXXXXX")
	mkdir "$made/ready"
	write_disk_files "$made/files"
	make_debian "$suite" "$arch" "$made/root" --mode=root --variant=apt --skip=check/qemu \
		--include="$(disk_packages | paste -sd ,)" "${passing[@]}" \
		--setup-hook="cp -r $made/files/. \"\$1\"" \
		--customize-hook="chroot \"\$1\" systemctl disable prometheus $idle_services" \
		${kernel_source:+"$kernel_source"}
	ln -s ../rig.service "$made/root/etc/systemd/system/multi-user.target.wants/rig.service"
	cp "$made"/root/boot/vmlinuz-* "$made/ready/vmlinuz"
	cp "$made"/root/boot/initrd.img-* "$made/ready/initrd"
	(cd "$made/root/lib/modules" && echo *) >"$made/ready/release"
	quietly "$made/log" mke2fs -t ext4 -d "$made/root" "$made/ready/disk" 4G
	mv "$made/ready" "$disk"
	rm -rf "$made"
}

# There before the packages are: how this machine's first root is made, and who runs the
# steps.
write_disk_files() { # DIRECTORY
	local etc=$1/etc
	mkdir -p "$etc"/{apt/preferences.d,initramfs-tools/{conf.d,hooks},systemd/system}
	kernel_source=
	if [[ $kernel_suite != "$suite" ]]; then
		kernel_source="deb $(debian_mirror) $kernel_suite main"
		printf '%s\n' 'Package: linux-*' "Pin: release n=$kernel_suite" 'Pin-Priority: 900' \
			>"$etc/apt/preferences.d/kernel"
	fi
	echo MODULES=list >"$etc/initramfs-tools/conf.d/rig"
	cat >"$etc/initramfs-tools/hooks/rig" <<-'END'
		#!/bin/sh
		[ "$1" != prereqs ] || exit 0
		. /usr/share/initramfs-tools/hook-functions
		manual_add_modules virtio_pci virtio_blk ext4
	END
	chmod +x "$etc/initramfs-tools/hooks/rig"
	cat >"$etc/systemd/system/rig.service" <<-'END'
		[Unit]
		Description=What install-vm runs in this machine
		After=multi-user.target
		[Service]
		Type=exec
		ExecStartPre=/bin/sh -c '[ -e /opt/rig ] || { mkdir /opt/rig && tar -C /opt/rig -xf /dev/vdb; }'
		ExecStart=/opt/rig/installed
	END
}
