#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What vm/bench runs in the machine. One line for each thing measured:
#
#	WHAT VARIANT ALLOC FREE ALLOC_MEDIAN FREE_MEDIAN
#
# in instructions, unless it says otherwise below. The first two are the least of many
# rounds, for where it is likely that a tick comes meanwhile: zeroing 2 MiB takes half a
# tick's time, and one costs more than what is measured here.

CGROUPS=/sys/fs/cgroup
TRACING=/sys/kernel/tracing
LONGEST=/sys/module/umacct/parameters/watch_lock

stop() {
	echo "bench: $*" >&2
	exit 1
}

# The driver's allocator, called from this shell: its cgroup is who pays.
insmod /lib/umacct/umacct_test_alloc.ko || stop "umacct_test_alloc does not load"
exec 4<>/dev/umacct_test_alloc || stop "no /dev/umacct_test_alloc"

# Who has memory of the driver's has its devices open, and with these something of its heaps.
open_devices() {
	exec 7<>/dev/nvidiactl 8<>/dev/nvidia-uvm || stop "the driver's devices can't be opened"
}

measure() { # WHAT VARIANT PAGES PAGE_SIZE CONTIGUOUS ROUNDS [COMMAND]
	open_devices
	for measure_rounds in 5 "$6"; do # the first fill caches and free lists
		echo "${7:-bench} $3 $4 $5 $measure_rounds" >&4 || stop "$1 can't be measured"
		read -r measure_result <&4
	done
	report_measured "$1" "$2"
}

report_measured() { # WHAT VARIANT
	case $measure_result in
	"status=0x0 "*) ;;
	*) stop "$1, $2: the driver says $measure_result" ;;
	esac
	echo "$measure_result" | tr ' =' '\n ' | awk -v what="$1" -v variant="$2" '
		{ value[$1] = $2 }
		END {
			print what, variant, value["alloc_min"], value["free_min"],
				value["alloc_median"], value["free_median"]
		}'
}

page() { # VARIANT
	measure page "$1" 1 4096 0 2000
}

# A chunk of managed memory: the function of nvidia-uvm's that takes it, and the one that frees it.
chunk() { # VARIANT
	open_devices
	for measure_rounds in 5 2000; do
		echo "managed 4096 $measure_rounds" >&4 || stop "a managed chunk can't be measured"
		read -r measure_result <&4
	done
	report_measured chunk "$1"
}

shapes() { # VARIANT
	page "$1"
	chunk "$1"
	measure 512x4K "$1" 512 4096 0 40
	# Until 545 the driver has no page size; a block of any size is contiguous memory.
	if [ "$driver" -ge 545 ]; then
		measure 32x64K "$1" 512 65536 0 40
		measure 1x2M "$1" 512 2097152 0 40
	else
		measure 1x2M "$1" 512 4096 1 40
	fi
}

system_calls() { # VARIANT
	/selftests/bin/syscost 300 | while read -r name cost; do
		echo "$name $1 $cost 0"
	done
}

enter() { # CGROUP
	mkdir -p "$CGROUPS$1"
	echo $$ >"$CGROUPS$1/cgroup.procs" || stop "no cgroup $1"
}

# in_branch CGROUP COMMAND...: for it and its ancestors, from below.
in_branch() {
	branch_dir=$1
	shift
	while [ "$branch_dir" ]; do
		"$@" "$branch_dir" || stop "$* $branch_dir failed"
		branch_dir=${branch_dir%/*}
	done
}

limit() { # HARD CGROUP
	umacct limit "$2" --hard "$1"
}

remove() { # CGROUP
	rmdir "$CGROUPS$1"
}

# How long the ledger's lock is held for a page and its free.
hold_of_page() {
	page held >/dev/null
	echo >$LONGEST
	page held >/dev/null
	read -r _ _ hold_all <$LONGEST
	echo "hold page $((hold_all / 2005)) nobody"
}

# The longest that it was held since this was asked last, and who took it.
longest_hold() { # WHAT
	read -r hold_time hold_by _ <$LONGEST
	echo "hold $1 $hold_time $hold_by"
	echo >$LONGEST
}

driver=$(cut -d. -f1 /sys/module/nvidia/version)

enter /bench
# The first allocation tells whether the driver charges by itself; the hook that looks is
# taken off then, in its own time.
page first >/dev/null
while grep -q 'nvidia:nv_compute_gfp_mask armed' /sys/kernel/debug/umacct/status; do
	sleep 0.1
done
shapes umacct

umacct charge on /bench || stop "charging can't be switched on"
shapes charging
umacct charge inherit /bench

status=$(/selftests/bin/nltest cost 200) || stop "no status"
echo "status umacct $status"

# The same branch with and without a limit on each of its levels.
for depth in 1 4 8; do
	path=
	for level in $(seq $depth); do
		path=$path/level$level
	done
	enter "$path"
	page "depth$depth"
	in_branch "$path" limit 1T
	page "limits$depth"
	chunk "limits$depth"
	# Any limit anywhere costs something: there is to be none in the next round.
	in_branch "$path" limit max
	enter /bench
	in_branch "$path" remove
done

# What each start of the tool takes, with its answer. Columns as below.
start=$(/selftests/bin/cost umacct) || stop "umacct can't be measured"
echo "start umacct $start"

# Bytes of slab memory that are in use: what was freed leaves slabs that others are in, too.
slab() {
	awk 'NR > 2 { bytes += $2 * $4 } END { printf "%.0f\n", bytes }' /proc/slabinfo
}

ask_beside() { # COMMAND
	echo "$1" >&6 || stop "no $1"
	read -r beside_result <&6
	[ "${beside_result%% *}" = status=0x0 ] || stop "$1: $beside_result"
}

# A page beside a thousand, and a million, that somebody else holds; and by how much slab
# memory grew for each of the million.
among_many() { # VARIANT
	exec 6<>/dev/umacct_test_alloc || stop "no second /dev/umacct_test_alloc"
	ask_beside "alloc 1 4096 0 1000"
	measure among1000 "$1" 1 4096 0 2000 crowd
	slab_before=$(slab)
	for _ in $(seq 10); do
		ask_beside "alloc 1 4096 0 100000"
	done
	echo "slab $1 $((($(slab) - slab_before) / 1000000)) 0"
	measure among1000000 "$1" 1 4096 0 2000 crowd
}

# What a module that keeps a million records takes to go, in milliseconds.
unload_with_many() {
	unload_start=$(sed 's/\.\([0-9]*\) .*/\10/' /proc/uptime)
	rmmod umacct || stop "umacct doesn't unload"
	echo "unload umacct $(($(sed 's/\.\([0-9]*\) .*/\10/' /proc/uptime) - unload_start)) 0"
}

free_many() {
	ask_beside free
	exec 6>&-
}

among_many umacct
unload_with_many
free_many
insmod /lib/umacct/umacct.ko || stop "umacct does not load"

# Those that the memory controller is to see; without it a cgroup is made in a tenth of the
# time.
controlled_cgroups() { # COUNT
	/selftests/bin/manycgroups make "$1" || stop "no $1 cgroups"
	/selftests/bin/manycgroups control "$1" || stop "no memory controller for them"
}

hold_cgroups() { # COUNT PAGES
	mkfifo /tmp/hold /tmp/ready
	/selftests/bin/manycgroups hold "$1" "$2" </tmp/hold >/tmp/ready &
	holder=$!
	exec 5>/tmp/hold
	read -r many_ready </tmp/ready
	[ "$many_ready" = ready ] || stop "no $1 cgroups"
	rm /tmp/hold /tmp/ready
}

end_holder() {
	exec 5>&-
	wait "$holder"
	while umacct ps --json 2>/dev/null | grep -q manycgroups; do
		sleep 1
	done
	# What is no more in the list is reaped within two seconds, and then RCU's.
	sleep 10
}

remove_cgroups() {
	find $CGROUPS/many -depth -type d -exec rmdir {} + || stop "cgroups are left"
}

# The holder's own is in use until it has gone.
forget_cgroups() {
	end_holder
	remove_cgroups
}

# The processor's time that a process took, in the kernel and out of it, in nanoseconds.
time_of() { # PID
	cut -d ' ' -f 1 "/proc/$1/schedstat"
}

# By how much slab memory grew, for each account: those of the cgroups that have a hundred each
# are among them.
slab_growth() { # COUNT
	echo $((($(slab) - slab_before) / ($1 + $1 / 100 + 1)))
}

# What a page for each of so many cgroups takes of slab memory, all from one process, which
# passes through them; and what is left of that when it has gone, while the cgroups are there.
account_memory() { # VARIANT COUNT
	/selftests/bin/manycgroups make "$2" || stop "no $2 cgroups"
	slab_before=$(slab)
	hold_cgroups "$2" 1
	echo "held $1 $(slab_growth "$2") 0"
	end_holder
	echo "account $1 $(slab_growth "$2") 0"
	remove_cgroups
}

# A page beside so many accounts, with as many clients; and a list of them.
among_accounts() { # COUNT
	/selftests/bin/manycgroups make "$1" || stop "no $1 cgroups"
	hold_cgroups "$1" 1
	measure "among_accounts" "$1" 1 4096 0 2000
	# The first finds the machine still busy with what went before.
	umacct ls --json >/dev/null
	accounts_cost=$(/selftests/bin/cost umacct ls --json) || stop "ls can't be measured"
	echo "list $1 $accounts_cost"
	forget_cgroups
}

rmmod umacct || stop "umacct does not unload"
account_memory bare 10000
insmod /lib/umacct/umacct.ko || stop "umacct does not load"
account_memory umacct 10000
among_accounts 1000
among_accounts 100000

scrapes=20

scrape() {
	for _ in $(seq "$1"); do
		wget -q -O /tmp/metrics http://127.0.0.1:9752/metrics || stop "the exporter doesn't answer"
	done
}

# What a scrape takes of the exporter's time, with so many cgroups that hold memory.
measure_scrape() { # COUNT
	controlled_cgroups "$1"
	hold_cgroups "$1" 10
	ip link set lo up
	/usr/sbin/umacct-exporter --port 9752 &
	exporter=$!
	until wget -q -O /dev/null http://127.0.0.1:9752/metrics; do
		sleep 0.1
	done
	scrape_before=$(time_of $exporter)
	scrape $scrapes
	echo "scrape umacct-exporter $((($(time_of $exporter) - scrape_before) / scrapes))"
	grep -q '^umacct_account_usage_bytes{cgroup="/many/' /tmp/metrics ||
		stop "the exporter tells nothing of /many"
	kill $exporter
	wait $exporter
	forget_cgroups
}

[ ! -x /usr/sbin/umacct-exporter ] || measure_scrape 1000

# What umacctd takes each second for what it records: of its time, of bytes that it writes, and by how
# much the history grew; with so many cgroups that hold memory, of which ten are at work. The file is
# in memory: a disk is slower than this machine's clock, so that umacctd would wait for it.
written() {
	awk '$1 == "wchar:" { print $2 }' "/proc/$recorder/io"
}

work() { # SECONDS
	work_until=$(($(cut -d . -f 1 /proc/uptime) + $1))
	while [ "$(cut -d . -f 1 /proc/uptime)" -lt $work_until ]; do
		for work_in in 0 1 2 3 4 5 6 7 8 9; do
			echo $$ >$CGROUPS/many/0/$work_in/cgroup.procs
			work_pages=$(((work_pages * 69069 + 12345) % 1024))
			dd if=/dev/zero of=/tmp/work.$work_in bs=4K count=$work_pages 2>/dev/null
		done
		echo $$ >$CGROUPS/bench/cgroup.procs
		sleep 1
	done
	rm /tmp/work.*
}

# The file has all of it when umacctd has ended.
record() { # SECONDS
	sh -c "echo \$\$ >$CGROUPS/umacctd/cgroup.procs && exec /usr/sbin/umacctd" 2>/tmp/umacctd &
	recorder=$!
	until grep -q 'in force' /tmp/umacctd; do
		sleep 0.1
	done
	work 20
	record_usage=$(sed -n 's/^usage_usec //p' $CGROUPS/umacctd/cpu.stat)
	record_written=$(written)
	work "$1"
	record_usage=$(($(sed -n 's/^usage_usec //p' $CGROUPS/umacctd/cpu.stat) - record_usage))
	record_written=$(($(written) - record_written))
	kill $recorder
	wait $recorder
	record_size=$(stat -c %s /var/lib/umacctd/history.db)
}

measure_recorder() { # COUNT
	mkdir -p $CGROUPS/umacctd /var/lib/umacctd
	controlled_cgroups "$1"
	hold_cgroups "$1" 10
	record 20
	record_first=$record_size
	record 280
	echo "record umacctd $((record_usage * 1000 / 280)) $((record_written / 280))"
	echo "record kept $(((record_size - record_first) * 3600 / 300)) 0"
	rm -r /var/lib/umacctd
	forget_cgroups
}

measure_recorder 50

# A refresh of "umacct top", with so many containers that hold memory: what it takes of a
# second, with its children, beyond the first.
run_top() { # REFRESHES
	mkdir -p $CGROUPS/top
	sh -c "echo \$\$ >$CGROUPS/top/cgroup.procs && exec umacct top --batch -n $1 -d 1" >/tmp/top ||
		stop "no top"
	sed -n 's/^usage_usec //p' $CGROUPS/top/cpu.stat
	rmdir $CGROUPS/top
}

measure_top() { # COUNT
	exec 6<>/dev/umacct_test_alloc || stop "no second /dev/umacct_test_alloc"
	names=/var/lib/containers/storage/overlay-containers
	mkdir -p $names $CGROUPS/machine.slice
	containers=
	for number in $(seq "$1"); do
		id=$(printf '%064x' "$number")
		containers="$containers,{\"id\":\"$id\",\"names\":[\"named-$number\"]}"
		enter "/machine.slice/libpod-$id.scope"
		ask_beside "alloc 1 4096 0 10"
	done
	enter /bench
	echo "[${containers#,}]" >$names/containers.json
	first=$(run_top 1) || exit
	grep -q named-1 /tmp/top || stop "top names no container"
	all=$(run_top 21) || exit
	echo "top umacct $(((all - first) * 1000 / 20)) 0"
	free_many
	rm $names/containers.json
	find $CGROUPS/machine.slice -depth -type d -exec rmdir {} + || stop "cgroups are left"
}

measure_top 200

# A list of many cgroups, beside reading one file of each. In instructions and system
# calls, so the columns are others here: WHAT VARIANT INSTRUCTIONS CALLS. This umacct
# watches how long it holds its lock, which costs it little.
rmmod umacct || stop "umacct doesn't unload"
insmod /lib/umacct/watched/umacct.ko || stop "the watched umacct does not load"
hold_of_page
many=10000
controlled_cgroups $many
hold_cgroups $many 10
umacct ls --json | tr '{' '\n' | grep -c '"path":"/many/[0-9]*/[0-9]*"' >/tmp/listed
[ "$(cat /tmp/listed)" -eq $many ] || stop "ls lists $(cat /tmp/listed) of $many cgroups"
for variant in "umacct ls --json" "/selftests/bin/manycgroups read $many"; do
	# shellcheck disable=SC2086 # each word is one
	many_cost=$(/selftests/bin/cost $variant) || stop "$variant can't be measured"
	case $variant in
	umacct*) echo "many ls $many_cost" ;;
	*) echo "many read $many_cost" ;;
	esac
done
longest_hold allocate_and_list
umacct ps --json | tr '{' '\n' | grep -c '"path":"/many' >/tmp/listed
[ "$(cat /tmp/listed)" -ge $many ] || stop "ps lists $(cat /tmp/listed) of $many"
/selftests/bin/runas 65534 umacct ls --json >/dev/null || stop "nobody may not list"
longest_hold list_processes
in_branch /many/0/0 limit 1T
umacct charge on /many || stop "charging can't be switched on"
longest_hold set
/selftests/bin/manycgroups remove $many || stop "the cgroups can't be removed"
longest_hold remove
forget_cgroups
longest_hold exit_and_reap
rmmod umacct || stop "umacct doesn't unload"
insmod /lib/umacct/umacct.ko || stop "umacct does not load"

# What those pay who ask how much memory there is.
system_calls loaded
mkdir $CGROUPS/other
umacct limit /other --hard 64M --view || stop "no view"
system_calls armed
umacct limit /bench --hard 64M --view || stop "no view"
system_calls viewed

rmmod umacct || stop "umacct doesn't unload"
shapes bare
system_calls bare
among_many bare
free_many

# BPF programs in its place.
mount -t bpf bpf /sys/fs/bpf
umacct setup observer on >/dev/null || stop "the observer doesn't begin"
page observer
chunk observer
umacct setup observer off >/dev/null

case $(uname -m) in
x86_64) pages=%si ;;
aarch64) pages=%x1 ;;
esac
cat >>$TRACING/kprobe_events <<-END || stop "tracefs takes no kprobes"
	p:alloc nvidia:nv_alloc_pages pages=$pages
	r:alloc_return nvidia:nv_alloc_pages status=\$retval
	p:free nvidia:nv_free_pages
END
echo 1 >$TRACING/events/kprobes/enable
shapes tracefs
echo 0 >$TRACING/events/kprobes/enable
# As many probes as the observer has on the way of a page, without what it does there.
echo >$TRACING/kprobe_events
cat >>$TRACING/kprobe_events <<-END || stop "tracefs takes no kprobes"
	p:alloc nvidia:nv_alloc_pages
	r:alloc_return nvidia:nv_alloc_pages
	p:free nvidia:nv_free_pages
END
echo 1 >$TRACING/events/kprobes/enable
page probes
echo 0 >$TRACING/events/kprobes/enable
