#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: slurm
# cell: amd64-6.12-550
#
# Slurm, as Debian 12 ships it, with its cgroup plugin: with charging on, what --mem says holds for
# the driver's memory, too; and a job's peak is in its record, by umacct's SPANK plugin.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it runs Slurm"
needs_accounting
[ -x /usr/sbin/slurmctld ] || skip_all "no Slurm"

ALICE=1000
SCOPE=/system.slice/node_slurmstepd.scope
LIMIT=64
OUT=$TEST_DIR/out

slurm_up() {
	hostname node
	# Slurm finds no address where a machine has the loopback's alone.
	ip address add 192.0.2.1/32 dev lo
	echo 192.0.2.1 node >/etc/hosts
	head -c 1024 /dev/urandom >/etc/munge/munge.key
	chmod 400 /etc/munge/munge.key
	chown -R munge:munge /etc/munge /var/lib/munge /var/log/munge
	cat >/etc/slurm/slurm.conf <<-END
		ClusterName=rig
		SlurmctldHost=node
		SlurmUser=root
		StateSaveLocation=/var/lib/slurm/slurmctld
		SlurmdSpoolDir=/var/lib/slurm/slurmd
		SlurmctldLogFile=/var/log/slurm/slurmctld.log
		SlurmdLogFile=/var/log/slurm/slurmd.log
		ProctrackType=proctrack/cgroup
		TaskPlugin=task/cgroup
		JobAcctGatherType=jobacct_gather/cgroup
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU_Memory
		ReturnToService=2
		PrologFlags=Contain
		NodeName=node CPUs=2 RealMemory=1000
		PartitionName=all Nodes=node Default=YES
	END
	printf 'CgroupPlugin=cgroup/v2\nConstrainRAMSpace=yes\n' >/etc/slurm/cgroup.conf
	systemctl start munge slurmctld slurmd && eventually node_is idle && return 0
	diag "$(journalctl --no-pager -n 20 -u munge -u slurmctld -u slurmd)"
	diag "$(tail -n 20 /var/log/slurm/*.log)"
	return 1
}

node_is() { # STATE
	[ "$(sinfo --noheader --format %t 2>/dev/null)" = "$1" ]
}

slurm_down() {
	systemctl stop slurmd slurmctld munge
	kill "$daemon" 2>/dev/null
	rm -f /etc/umacct.toml
}

# step NAME OPTION... COMMAND: a job of alice's that runs rmtool's command; what it printed is in
# $OUT.NAME.
step() {
	step_name=$1
	shift
	runas $ALICE srun --chdir=/ --job-name="$step_name" "$@" >"$OUT.$step_name" 2>&1 </dev/null
}

given() { # NAME
	sed -n 's/.* count=\([0-9]*\).*/\1/p' "$OUT.$1" | tail -n 1
}

job_of() { # NAME
	squeue --noheader --states=all --name="$1" --format %A
}

# What Slurm's controller has of a job that is over.
record() { # NAME
	scontrol show job "$(job_of "$1")"
}

peak_of() { # NAME
	record "$1" | sed -n 's/.*AdminComment=umacct: peak \([0-9]*\) MiB on node.*/\1/p'
}

has_peak() { # NAME
	eventually peak_is_told "$1" && return 0
	diag "$(record "$1"; tail -n 5 /var/log/slurm/slurmd.log)"
	return 1
}

peak_is_told() { # NAME
	[ "$(peak_of "$1")" ]
}

is_in_journal() { # NAME
	journalctl --no-pager -t umacct-slurm |
		grep -q "job $(job_of "$1"): umacct: peak 3[0-3] MiB on node\$"
}

is_over() { # NAME
	record "$1" | grep -q 'JobState=COMPLETED'
}

usage_is_nothing() {
	[ "$(target / system)" = 0 ]
}

no_jobs() {
	[ ! "$(find "$CGROUPS$SCOPE" -maxdepth 1 -name 'job_*')" ]
}

daemon=
trap 'slurm_down; clean_up' EXIT
why_not() { # COMMAND
	case $1 in
	"apt "*) echo "this machine has no archive of packages; its image has what Debian's packages have" ;;
	"gcc "*) echo "this machine has no compiler; the plugin of its image is built so" ;;
	esac
}
try_command() { # COMMAND
	eval "$1"
}
rm -f /etc/slurm/plugstack.conf
try_printed Slurm
check "Slurm's daemons start, with a node that is idle" slurm_up
[ "$test_failed" -eq 0 ] || done_testing
# shellcheck disable=SC2016 # expands in the job
check "Slurm limits memory by its plugin for cgroup v2" \
	step plugin --mem=${LIMIT}M sh -c 'cat /sys/fs/cgroup$(cut -d : -f 3 /proc/self/cgroup)/../../../memory.max'
is "the memory of a job is limited by Slurm" "$(cat "$OUT.plugin")" $((LIMIT * MIB))

check "without charging a job with --mem runs" step blind --mem=${LIMIT}M rmtool "alloc 1M $((LIMIT * 2))"
is "without charging --mem limits nothing that the driver takes" "$(given blind)" $((LIMIT * 2))

cat >/etc/umacct.toml <<-END
	[[rule]]
	cgroup = "/system.slice/*slurmstepd.scope"
	charge = "on"
END
/usr/sbin/umacctd 2>"$TEST_DIR/log" &
daemon=$!
check "umacctd charges Slurm's jobs, as the policy says" eventually grep -q 'in force' "$TEST_DIR/log"
step held --mem=${LIMIT}M rmtool 'fill 1M'
count=$(given held)
check "with charging a job's program is refused above --mem" grep -q "status=$NO_MEMORY" "$OUT.held"
check "with charging a job gets no more than its --mem" [ "${count:-999}" -le $LIMIT ]
check "with charging a job gets most of its --mem" [ "${count:-0}" -ge $((LIMIT * 3 / 4)) ]
is "a program that is refused by --mem ends by itself, and is not killed" \
	"$(record held | sed -n 's/.*ExitCode=\([0-9:]*\).*/\1/p')" 1:0

# --- a job's peak ----------------------------------------------------------------------------

# peak_is NAME MIB: besides the pages there is the driver's metadata, at most a tenth of it.
peak_is() {
	check "Slurm has the peak of the job $1" has_peak "$1"
	peak=$(peak_of "$1")
	check "the peak of the job $1 is no less than what it was given" [ "${peak:--1}" -ge "$2" ]
	check "the peak of the job $1 is no more than what it was given, and the driver's metadata" \
		[ "${peak:-9999}" -le $(($2 + $2 / 10)) ]
}
peak_is held "$count"
peak_is blind $((LIMIT * 2))
step idle --mem=${LIMIT}M true
peak_is idle 0
cat >"$TEST_DIR/steps" <<-END
	#!/bin/sh
	srun $SELFTESTS_BIN/rmtool 'alloc 1M 20'
	srun $SELFTESTS_BIN/rmtool 'alloc 1M 10'
END
check "a job of two steps runs" runas $ALICE sbatch --wait --quiet --chdir=/ --output="/dev/null" --job-name=steps \
	--mem=${LIMIT}M "$TEST_DIR/steps"
peak_is steps 20

fifos noted
step noted --mem=${LIMIT}M rmtool -f "$TEST_DIR/noted" &
ask noted alloc 1M 10
check "an administrator comments on a job" scontrol update "JobId=$(job_of noted)" AdminComment=mine
tell noted exit
check "a job with an administrator's comment ends" eventually is_over noted
is "the record of a job has what an administrator wrote" \
	"$(record noted | sed -n 's/^ *AdminComment=\([^ ]*\) *$/\1/p')" mine

fifos stopped
step stopped --mem=${LIMIT}M rmtool -f "$TEST_DIR/stopped" &
ask stopped alloc 1M 30
is "the memory of a job that runs is on its account" \
	"$(target "$(echo "$CGROUPS$SCOPE"/job_* | sed "s|$CGROUPS||")" system)" $((30 * MIB))
check "a job is cancelled" scancel --name=stopped
check "the journal has the peak of a job that is cancelled" eventually is_in_journal stopped
check "no cgroup of a job is left" eventually no_jobs
check "no memory of a job is left" eventually usage_is_nothing

kill "$daemon"
gone "$daemon"
check "the module is unloaded" eventually rmmod umacct
check "without the module a job runs" step bare --mem=${LIMIT}M true
check "slurmd's log says that the peak of a job without the module can't be told" \
	eventually grep -q "umacct: cannot write down the peak of job $(job_of bare):" /var/log/slurm/slurmd.log
is "a job without the module has no peak in its record" "$(peak_of bare)" ""
load umacct
is "the node serves on" "$(sinfo --noheader --format %t)" idle
done_testing
