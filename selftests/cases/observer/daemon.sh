#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
# boot:
#
# umacctd, its guard and its metrics where BPF programs count in the module's place; what they
# lose is said, to the call; and the module takes over.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/observer.sh"
needs_vm "it unloads the module, and measures the whole machine's free memory"
needs_accounting
needs_kernel_alloc
needs_observer

LOG=$TEST_DIR/log
PINNED=/sys/fs/bpf/umacct
EVENTS=/sys/kernel/tracing/events/umacct_observer
mount -t bpf bpf /sys/fs/bpf

without_module

said() { # WORDS
	grep -q "$1" "$LOG"
}

# A number of the summary's.
summary() { # KEY
	umacct --json 2>/dev/null | json_field "$1"
}

summary_is() { # KEY VALUE
	[ "$(summary "$1")" = "$2" ]
}

# What a hook missed, of all its calls.
missed_by() { # NAME
	umacct --json 2>/dev/null | tr '{' '\n' | grep "\"name\" *: *\"$1\"" | tr '},' '\n' |
		sed -n 's/ *"missed" *: *//p'
}

holder() { # NAME
	cgroup_leaf "$1"
	start_in "$1" "$1"
	ask "$1" open
}

# For as long as a command runs ---------------------------------------------------

no_events() {
	! grep -q umacct /sys/kernel/tracing/kprobe_events
}

# Programs are held by files alone, where nothing is pinned.
no_programs() {
	! grep -qs '^\(prog\|link\|map\)_id' /proc/[0-9]*/fdinfo/*
}

top_begins() { # NAME
	umacct top --json -d 0.2 >"$TEST_DIR/$1.out" 2>"$TEST_DIR/$1.err" &
	pid=$!
	holders="$holders $pid"
	eventually [ -s "$TEST_DIR/$1.out" ]
}

# What it said last of a cgroup.
top_says() { # NAME CGROUP BYTES
	tail -n 1 "$TEST_DIR/$1.out" | tr '{' '\n' | grep "\"path\" *: *\"$(cgroup_path "$2")\"" |
		grep -q "\"system_bytes\" *: *$3\>"
}

holder meanwhile
ask meanwhile alloc 1M 3
fails umacct top -n 1 2>"$TEST_DIR/said"
check "top for one look says that the module is not loaded" grep -q 'kernel module is not loaded' "$TEST_DIR/said"
check "top that goes on counts without the module" top_begins first
first_pid=$pid
check "top says since when it counts" \
	grep -q 'only allocations since [0-9][0-9]:[0-9][0-9] are known' "$TEST_DIR/first.err"
check "a second top counts beside the first" top_begins second
second_pid=$pid
ask meanwhile alloc 1M 8
check "top has what was allocated since it began, to the byte" \
	eventually top_says first meanwhile $((8 * MIB))
check "the second top has the same" eventually top_says second meanwhile $((8 * MIB))
fails umacct ls 2>"$TEST_DIR/said"
check "what counts for one command answers no other" grep -q 'kernel module is not loaded' "$TEST_DIR/said"
is "what counts for one command is not pinned" "$(ls -A /sys/fs/bpf)" ""
kill -KILL "$first_pid"
gone "$first_pid"
ask meanwhile alloc 1M 4
check "the second top goes on when the first was killed" eventually top_says second meanwhile $((12 * MIB))
check "the module is loaded while top counts" load umacct
check "no event is left when the module answers" eventually no_events
ask meanwhile alloc 1M 5
check "top goes on with what the module counts" eventually top_says second meanwhile $((5 * MIB))
kill -KILL "$second_pid"
gone "$second_pid"
eventually rmmod umacct
check "top counts anew after that" top_begins third
kill -KILL "$pid"
gone "$pid"
check "no event is left when top was killed" eventually no_events
check "no BPF program is left when top was killed" eventually no_programs
tell meanwhile exit
check "run without a limit counts without the module" sh -c "umacct run --report '$TEST_DIR/took' true 2>/dev/null"
check "run says what the command took" grep -q '^umacct: peak 0 B, 0 allocations' "$TEST_DIR/took"
fails umacct run --hard 1G true 2>"$TEST_DIR/said"
check "run with a limit says that the module is not loaded" grep -q 'kernel module is not loaded' "$TEST_DIR/said"
umacct verify --json --size 16M >"$TEST_DIR/verify" 2>/dev/null
is "verify shows the blind spot without the module" "$(json_field verdict <"$TEST_DIR/verify")" blind
is "verify has every byte without the module" \
	"$(grep -o '"during":{[^}]*}' "$TEST_DIR/verify" | head -n 1 | json_field usage)" \
	"$(with_metadata $((16 * MIB)) 16 1)"
is "verify skips the two steps that need the module" \
	"$(grep -o '"finding":"skipped"' "$TEST_DIR/verify" | grep -c .)" 2
check "no event is left by run and verify" eventually no_events

# Cut short, and begun twice ------------------------------------------------------

links() {
	find $PINNED -name 'link_*' | grep -c .
}

umacct setup observer on >/dev/null
all_links=$(links)
umacct setup observer off >/dev/null
# A start that is killed when it has made some of its hooks.
for _ in 1 2 3 4 5; do
	umacct setup observer on >/dev/null 2>&1 &
	pid=$!
	until [ -e $PINNED/link_umacct_observer_alloc_ret ] || ! kill -0 $pid 2>/dev/null; do :; done
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ "$(links)" -ge "$all_links" ] || break
	umacct setup observer off >/dev/null
done
check "a start that is killed leaves hooks out" [ "$(links)" -lt "$all_links" ]
is "what was cut short doesn't count as an observer" "$(umacct setup observer)" off
check "the observer begins after a start that was cut short" umacct setup observer on
is "the observer has all hooks after a start that was cut short" "$(links)" "$all_links"
umacct setup observer off >/dev/null
check "no event is left of a start that was cut short" no_events

umacct setup observer on >"$TEST_DIR/said.first" &
first_pid=$!
umacct setup observer on >"$TEST_DIR/said.second" &
second_pid=$!
wait $first_pid
is "of two that begin at once, the first succeeds" "$? $(cut -c 1-4 "$TEST_DIR/said.first")" "0 on: "
wait $second_pid
is "of two that begin at once, the second succeeds" "$? $(cut -c 1-4 "$TEST_DIR/said.second")" "0 on: "
is "what two began at once has all hooks" "$(links)" "$all_links"
umacct setup observer off >/dev/null

# Before anybody counts -----------------------------------------------------------

cgroup_leaf early
start_in early early
ask early open
ask early alloc 4K 8192
check "the observer begins while memory is held" umacct setup observer on
before=$(summary unattributed)
check "what was taken before the observer began is unattributed, not nothing" [ "$before" -ge $((32 * MIB)) ]
is "what was taken before the observer began is in no account" "$(account early usage)" 0
check "the summary says when the observer began" \
	sh -c "umacct 2>/dev/null | grep -q 'Unattributed.*in use before [0-9][0-9]:[0-9][0-9]'"
check "the audit says when the observer began" \
	sh -c "umacct audit 2>/dev/null | grep -q 'had in use before [0-9][0-9]:[0-9][0-9]'"
ask early free all
unattributed_since() {
	echo $((before - $(summary unattributed)))
}
# The rest of the machine gives and takes a few MiB meanwhile, too.
settles "the unattributed is less as soon as it is freed" $((32 * MIB)) $((8 * MIB)) unattributed_since
umacct setup observer off >/dev/null

# What is lost --------------------------------------------------------------------

check "the observer begins with room for eight records" umacct setup observer on --records 8
holder few
ask few alloc 4K 20
is "of a map that is full as many records as had room are known" "$(summary records)" 8
is "of a map that is full the others are untracked, each of them" "$(summary untracked_count)" 12
is "of a map that is full the known and the untracked are what was allocated, to the byte" \
	"$(($(account few usage) + $(summary untracked)))" "$(with_metadata $((20 * 4 * KIB)) 20 0)"
check "a warning says that the map is full" \
	sh -c "umacct 2>/dev/null | grep -q 'warning: 12 allocations'"
ask few free all
check "what is known of a full map goes with its holders" eventually account_is few system 0
umacct setup observer off >/dev/null

# Somebody else has the event, and the program is gone: the kernel counts its hits.
detach() { # EVENT
	echo 1 >$EVENTS/umacct_observer_"$1"/enable
	rm $PINNED/link_umacct_observer_"$1"
}

umacct setup observer on >/dev/null
is "the hook allocate misses nothing at first" "$(missed_by allocate)" 0
detach alloc
ask few alloc 4K 5
is "the hook allocate says how many entries were not seen" "$(missed_by allocate)" 5
check "a warning says how many entries were not seen" sh -c "umacct 2>/dev/null | grep -q 'hook allocate .* missed 5 of'"
ask few free all
echo 0 >$EVENTS/umacct_observer_alloc/enable
umacct setup observer off >/dev/null

umacct setup observer on >/dev/null
detach alloc_ret
ask few alloc 4K 5
is "the hook allocate says how many returns were not seen" "$(missed_by allocate)" 5
tell few exit
gone "$pid"
is "the hook allocate counts no missed call twice" "$(missed_by allocate)" 5
echo 0 >$EVENTS/umacct_observer_alloc_ret/enable
umacct setup observer off >/dev/null

# Half of the rows that there may be, and more.
umacct setup observer on >/dev/null
holder idle
ask idle alloc 4K 3
ask idle free all
is_listed() {
	umacct ps --json 2>/dev/null | grep -q "\"pid\" *: *$pid\>"
}
check "a process that has freed all is listed" is_listed
check "there are many rows of processes that hold nothing" idlerows $PINNED/clients 16500 1 1
check "among many rows, too, a process that has freed all is listed" is_listed
rows=$(summary clients)
check "among many rows, those of processes that live stay" [ "$rows" -ge 16500 ]
check "there are rows for a cgroup that is gone" idlerows $PINNED/clients 100 1 4000000000
is "among many rows, those for a cgroup that is gone go" "$(summary clients)" "$rows"
tell idle exit
gone "$pid"
umacct setup observer off >/dev/null

# umacctd -------------------------------------------------------------------------

token=0123456789abcdef0123456789abcdef
(umask 077 && echo $token >/etc/umacct-page.token)
ip link set lo up
cat >/etc/umacct.toml <<-END
	[machine]
	reserve = "32M"
	observer = false

	[exporter]
	page = true
	page_token = "/etc/umacct-page.token"

	[guard]
	floor = "1M"
	steps = ["reserve", "freeze"]

	[[rule]]
	cgroup = "$(cgroup_path held)"
	hard = "8M"
END
check "without the module, 'auto' does as the policy says" umacct setup observer auto 2>/dev/null
check "with the policy's off 'auto' does not begin" [ ! -e $PINNED ]
sed -i '/^observer/d' /etc/umacct.toml
check "without a word in the policy 'auto' begins" umacct setup observer auto
check "the observer counts after 'auto'" [ -d $PINNED ]
mkdir -p /var/lib/umacctd
/usr/sbin/umacctd 2>"$LOG" &
daemon=$!
holders="$holders $daemon"
check "umacctd says that BPF programs count" eventually said "BPF programs count in the module's place"
check "umacctd says what waits for the module, and what gets it" \
	said "1 rule, the reserve and the guard's step 'reserve' wait for the module: 'modprobe umacct'"
is "umacctd says once that BPF programs count" "$(grep -c 'count in the module' "$LOG")" 1

holder held
ask held alloc 1M 16
is "the account has what BPF programs count, to the byte" "$(account held system)" $((16 * MIB))
guard_sees() {
	umacct show guard --json 2>/dev/null | tr '{' '\n' | grep "\"$(cgroup_path held)\"" |
		grep -q "\"driver_bytes\" *: *$(account held usage)\>"
}
check "the guard has what BPF programs count" eventually guard_sees
history_has() {
	umacct history --json 2>/dev/null | tr '{' '\n' | grep -q "\"$(cgroup_path held)\""
}
check "the history has what BPF programs count" eventually history_has
metrics_have() { # METRIC VALUE
	/usr/sbin/umacct-exporter --print 2>/dev/null | grep -q "^$1.* $2\$"
}
if [ -x /usr/sbin/umacct-exporter ]; then
	check "the metrics have what BPF programs count" metrics_have \
		"umacct_account_usage_bytes{cgroup=\"$(cgroup_path held)\"" "$(account held usage)"
	check "the metrics say who answers" metrics_have umacct_up 1
	/usr/sbin/umacct-exporter --port 9752 2>"$TEST_DIR/exporter" &
	exporter=$!
	holders="$holders $exporter"
	page_has() { # PATH WORDS
		wget -q -O - --header "Authorization: Bearer $token" "http://127.0.0.1:9752/api/$1" 2>/dev/null |
			tr '{' '\n' | grep -q "$2"
	}
	check "the page's figures are of what BPF programs count" eventually page_has summary '"observer" *: *true'
	check "the page has what BPF programs count" page_has accounts \
		"\"path\" *: *\"$(cgroup_path held)\".*\"usage_bytes\" *: *$(account held usage)\>"
	kill -TERM $exporter
	gone $exporter
else
	skip "the metrics have what BPF programs count" "no exporter for this architecture"
fi
check "the audit adds up where BPF programs count" sh -c "umacct audit --json 2>/dev/null | grep -q unexplained"
check "preflight judges where BPF programs count" sh -c "umacct preflight 8M 2>/dev/null | grep -q ."

# The module ----------------------------------------------------------------------

check "the module is loaded while BPF programs count" load umacct
check "umacctd does what waited for the module" eventually account_is held hard $((8 * MIB))
check "umacctd says what of the count is lost" eventually said "what it had counted since .* is lost"
check "the observer has ended when the module is there" eventually [ ! -e $PINNED ]
check "the observer left no event when the module is there" eventually no_events
check "JSON says that the module answers" sh -c "umacct --json | grep -q '\"observer\" *: *false'"
holder fresh
ask fresh alloc 1M 4
is "the module counts what comes, to the byte" "$(account fresh system)" $((4 * MIB))
ask fresh free all
ask held free all
is "what is freed that the module never saw is below nothing nowhere" "$(account held usage)" 0
check "the processes of both times end" tell fresh exit
tell held exit
check "nothing is held by the processes of both times" eventually account_is "" usage 0
check "the module is unloaded beside umacctd" eventually rmmod umacct
check "umacctd says that the module was unloaded" eventually said "the module was unloaded"
check "the observer begins anew after the module" umacct setup observer auto
is_told_twice() {
	[ "$(grep -c 'count in the module' "$LOG")" = 2 ]
}
check "umacctd sees that the observer began anew" eventually is_told_twice
check "the observer is ended beside umacctd" umacct setup observer off
check "umacctd says that the observer was ended" eventually said "the observer was ended: nothing is counted"
kill -TERM "$daemon"
gone "$daemon"

done_testing
