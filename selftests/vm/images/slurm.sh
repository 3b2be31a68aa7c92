# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# The machine that systemd runs, with Slurm: its controller, the daemon of a node with the units of
# Debian's packages, munge, by which they trust each other, and umacct's plugin, built for them.

# shellcheck source=selftests/vm/images/systemd.sh
. "$vm/images/systemd.sh"
image_parts=("$vm/images/systemd.sh" "$clone/extra/slurm/umacct.c")
image_packages+=(
	slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libslurm-dev
	# the programs' own libraries, and those that these need in turn
	libmunge2 libhwloc15 libnuma1 libreadline8 libtinfo6 libbz2-1.0 zlib1g libudev1
)
slurm_programs=(
	usr/bin/{srun,sbatch,salloc,scontrol,squeue,sinfo,scancel}
	usr/sbin/{slurmctld,slurmd,slurmstepd}-wlm usr/sbin/munged
)

fill_image() { # ROOT TREE TRIPLET
	library_path+=("$2/usr/lib/$3/systemd" "$2/usr/lib/$3/slurm-wlm")
	(cd "$2" && install_systemd "$1" "$3" && install_slurm "$1" "usr/lib/$3/slurm-wlm")
	configure_systemd "$1/etc"
	configure_slurm "$1"
	"${cross}gcc-12" -shared -fPIC -Wall -I "$2/usr/include" -o "$1/usr/lib/$3/slurm-wlm/umacct.so" \
		"$clone/extra/slurm/umacct.c"
}

install_slurm() { # ROOT PLUGINS
	local root=$1 file name
	for file in "${slurm_programs[@]}" "$2"/{auth,cred}_munge.so "$2"/cgroup_v2.so "$2"/*_none.so \
		"$2"/{proctrack,task,jobacct_gather}_cgroup.so "$2"/{select_cons_tres,sched_backfill}.so \
		"$2"/{launch_slurm,prep_script,hash_k12,priority_basic,topology_none,route_default}.so; do
		install -D -t "$root/${file%/*}" "$file"
		install_libraries "$root" "$file"
	done
	# The alternatives that the packages make.
	for name in slurmctld slurmd slurmstepd; do
		ln -s "$name-wlm" "$root/usr/sbin/$name"
	done
	cp lib/systemd/system/{munge,slurmctld,slurmd}.service "$root/lib/systemd/system/"
}

# The cases write slurm.conf and munge's key.
configure_slurm() { # ROOT
	mkdir -p "$1"/etc/{munge,slurm} "$1"/var/{lib,log}/{munge,slurm} "$1"/var/lib/slurm/slurm{d,ctld}
	echo munge:x:102:102::/nonexistent:/bin/false >>"$1/etc/passwd"
	echo munge:x:102: >>"$1/etc/group"
}
