# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# A machine that systemd runs, with its D-Bus, its logind and a user's own manager, and
# systemd-nspawn with machined. No more units than that takes: what a whole Debian starts beside them is not ours to test.

image_packages=(
	systemd libsystemd-shared libpam-systemd libnss-systemd systemd-container
	dbus dbus-daemon dbus-bin dbus-system-bus-common:all libpam-modules
	# the programs' own libraries, and those that these need in turn
	libc6 libacl1 libblkid1 libcap2 libcrypt1 libgcrypt20 libgpg-error0 libip4tc2 libkmod2
	liblz4-1 libmount1 libssl3 libpam0g libseccomp2 libselinux1 libpcre2-8-0 libzstd1 liblzma5
	libaudit1 libcap-ng0 libapparmor1 libdbus-1-3 libexpat1 libsystemd0
)

programs=(
	lib/systemd/systemd{,-journald,-logind,-machined,-user-runtime-dir,-user-sessions,-cgroups-agent}
	bin/{systemctl,journalctl,loginctl,systemd-notify,systemd-tmpfiles,systemd-sysusers}
	usr/bin/{busctl,dbus-daemon,systemd-analyze,systemd-cat,systemd-cgls,systemd-nspawn,systemd-run}
)
units=(
	# what every machine has
	{sysinit,basic,sockets,timers,paths,slices,local-fs,local-fs-pre,swap}.target
	{multi-user,shutdown,umount,nss-user-lookup}.target
	systemd-{journald,tmpfiles-setup}.service
	systemd-journald{,-dev-log}.socket
	# users, and whoever asks for scopes
	user.slice user@.service user-runtime-dir@.service
	user-.slice.d user@.service.d user@0.service.d
	systemd-{logind,user-sessions}.service dbus.service dbus.socket
	{systemd-machined,dbus-org.freedesktop.machine1}.service machine.slice
)

fill_image() { # ROOT TREE TRIPLET
	library_path+=("$2/usr/lib/$3/systemd")
	(cd "$2" && install_systemd "$1" "$3")
	configure_systemd "$1/etc"
}

install_systemd() { # ROOT TRIPLET
	local root=$1 triplet=$2 file to
	for file in "${programs[@]}" lib/"$triplet"/security/pam_{permit,systemd}.so \
		usr/lib/"$triplet"/libnss_systemd.so.2; do
		# Of libraries there is one directory, which has the newest of each.
		to=${file%/*}
		[[ $file != */libnss_* ]] || to=lib
		install -D -t "$root/$to" "$file"
		install_libraries "$root" "$file"
	done
	mkdir -p "$root/lib/systemd/system" "$root"/usr/{lib,share} "$root"/var/{lib,log,tmp} "$root/home/alice"
	cp -r "${units[@]/#/lib/systemd/system/}" "$root/lib/systemd/system/"
	cp -r usr/lib/{systemd,tmpfiles.d} "$root/usr/lib/"
	cp -r usr/share/dbus-1 "$root/usr/share/"
	# systemd-nspawn shows it to its machines.
	echo ID=debian >"$root/usr/lib/os-release"
}

configure_systemd() { # ETC
	local etc=$1 system=$1/systemd/system file
	mkdir -p "$etc"/{pam.d,dbus-1/system.d} "$system"/{multi-user,sockets,sysinit}.target.wants
	ln -s /lib/systemd/system/multi-user.target "$system/default.target"
	ln -s /lib/systemd/system/{dbus,systemd-logind,systemd-user-sessions}.service ../rig.service \
		"$system/multi-user.target.wants/"
	ln -s /lib/systemd/system/{dbus,systemd-journald,systemd-journald-dev-log}.socket \
		"$system/sockets.target.wants/"
	ln -s /lib/systemd/system/systemd-{journald,tmpfiles-setup}.service \
		"$system/sysinit.target.wants/"
	cat >"$system/rig.service" <<-END
		[Unit]
		Description=What the rig runs in this machine
		After=basic.target dbus.service systemd-logind.service systemd-user-sessions.service
		[Service]
		Type=exec
		ExecStart=/init
	END

	echo 0123456789abcdef0123456789abcdef >"$etc/machine-id"
	echo "passwd: files systemd" >"$etc/nsswitch.conf"
	printf '[Journal]\nStorage=volatile\n' >"$etc/systemd/journald.conf"
	printf '[Login]\nNAutoVTs=0\nReserveVT=0\n' >"$etc/systemd/logind.conf"
	# Beside those that every machine has.
	printf '%s\n' messagebus:x:101:101::/nonexistent:/bin/false \
		alice:x:1000:1000::/home/alice:/bin/sh >"$etc/passwd"
	printf '%s\n' messagebus:x:101: alice:x:1000: >"$etc/group"
	for file in systemd-user other; do
		printf '%s\n' "account required pam_permit.so" "session required pam_permit.so" \
			"session optional pam_systemd.so" >"$etc/pam.d/$file"
	done
}
