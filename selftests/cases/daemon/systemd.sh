#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: systemd
# cell: amd64-6.12-550
#
# A machine that systemd runs: "run" is given a scope by it, units and slices are TARGETs,
# a user's services are known by their names, and a service that restarts is a cgroup anew.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it starts and stops units"
needs_accounting
[ -d /run/systemd/system ] || skip_all "no systemd"

ALICE=1000
MANAGER=/user.slice/user-$ALICE.slice/user@$ALICE.service

# service NAME [OPTION]...: a service of the system's, whose main process is the holder NAME.
service() {
	service_name=$1
	shift
	fifos "$service_name"
	systemd-run --quiet --unit "$service_name" "$@" \
		"$SELFTESTS_BIN/rmtool" -f "$TEST_DIR/$service_name"
}

# as_alice COMMAND...: as a login of hers would.
as_alice() {
	XDG_RUNTIME_DIR=/run/user/$ALICE HOME=/home/alice runas $ALICE "$@"
}

limits() { # TARGET OPTION...
	umacct limit "$@" >/dev/null
}

usage_of_is() { # TARGET BYTES
	[ "$(target "$1" system)" = "$2" ]
}

no_scope() { # NAME
	! systemctl is-active --quiet "$1.scope" && [ ! -d "$CGROUPS/system.slice/$1.scope" ]
}

# "run" -----------------------------------------------------------------------

# shellcheck disable=SC2016 # expands in the command
is "run's command is in a scope, with the limit in force" \
	"$(umacct run -q --name scoped --hard 4M sh -c '
		cut -d : -f 3 /proc/self/cgroup; systemctl is-active scoped.scope
		umacct show --json scoped.scope | grep -o "\"hard_bytes\":[0-9]*"' | xargs)" \
	"/system.slice/scoped.scope active hard_bytes:$((4 * MIB))"
check "the scope goes with its command" eventually no_scope scoped
hard=$(with_metadata $((4 * MIB)) 4 1)
umacct run --json --name scoped --hard "$hard" rmtool "fill 1M" >/dev/null 2>"$TEST_DIR/report"
is "the limit holds in the scope" "$(json_field peak <"$TEST_DIR/report")" "$hard"
umacct run -q --name scoped sh -c 'exit 7'
is "the command's exit code is run's" $? 7
umacct run -q --name scoped sh -c 'sleep 1000 & exit 3'
is "the command's exit code is run's where it leaves a child behind" $? 3
check "a child that is left behind goes with the scope" eventually no_scope scoped
umacct run -q --name scoped sh -c 'sleep 1000' &
runner=$!
eventually systemctl is-active --quiet scoped.scope
umacct run -q --name scoped true 2>"$TEST_DIR/err"
is "a scope's name that is taken is refused" $? 125
check "the refusal names the scope that is taken" grep -q scoped.scope "$TEST_DIR/err"
systemctl stop scoped.scope
wait $runner
is "systemctl stop ends run's command" $? 143

# shellcheck disable=SC2016 # expands in the command
is "run --user runs as that user, in the system's slice" \
	"$(umacct run -q --user alice --name hers sh -c '
		echo $(id -un) $HOME; cut -d : -f 3 /proc/self/cgroup' | xargs)" \
	"alice /home/alice /system.slice/hers.scope"
start_ms=$(now_ms)
runas $ALICE umacct run true 2>"$TEST_DIR/err"
is "an unprivileged user may not run, as from every verb" $? 4
check "an unprivileged user is told so long before a call over D-Bus gives up (25 s)" \
	[ $(($(now_ms) - start_ms)) -lt 20000 ]
check "an unprivileged user is told what would be allowed" grep -qi root "$TEST_DIR/err"

# units -----------------------------------------------------------------------

check "a service starts" service llm --slice=models.slice
ask llm alloc 1M 5
for name in llm.service llm unit:llm.service /models.slice/llm.service; do
	is "the name $name is what its service holds" "$(target "$name" system)" $((5 * MIB))
done
is "the slice's name is what its service holds" "$(target models.slice system)" $((5 * MIB))
check "show says which unit a cgroup is" sh -c "umacct show llm | grep -q 'llm.service'"
check "ls names the unit" sh -c "umacct ls | grep -q 'llm.service'"
check "ps has the unit's process" sh -c "umacct ps llm.service | grep -q rmtool"
hard=$(with_metadata $((8 * MIB)) 8 1)
check "a service is limited by its name" limits llm --hard "$hard"
ask llm fill 1M
is "the limit of a service holds" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 3"
check "a slice is limited by its name" limits models.slice --hard "$(with_metadata $((9 * MIB)) 9 2)"
check "a second service in the limited slice starts" service tts --slice=models.slice
ask tts fill 1M
is "the second service gets what the slice has left" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 1"
check "a service's own limits stand beside ours" \
	sh -c "systemctl set-property --runtime llm.service MemoryMax=500M &&
		umacct limit llm | grep -q '$(in_mib "$hard")'"

# restarts --------------------------------------------------------------------

umacct top llm.service --json -d 0.2 >"$TEST_DIR/top" 2>&1 &
holders="$holders $!"
top_shows() { # BYTES
	tail -n 1 "$TEST_DIR/top" | grep -q "\"usage_bytes\":$1\>"
}
# A service that is not there when top starts is an error, not one to wait for.
check "top shows the service with its limit" eventually top_shows "$hard"
before=$(stat -c %i "$CGROUPS/models.slice/llm.service")
check "the service restarts" systemctl restart llm.service
check "a service that restarted is another cgroup" [ "$(stat -c %i "$CGROUPS/models.slice/llm.service")" != "$before" ]
check "what a service held is back when it has restarted" eventually usage_of_is models.slice $((1 * MIB))
ask llm alloc 1M 2
is "the name of a service that restarted is the new cgroup's" "$(target llm system)" $((2 * MIB))
is "the limit of a service went with its old cgroup" "$(target llm hard)" null
check "top follows the service that restarted" eventually top_shows "$(with_metadata $((2 * MIB)) 2 1)"
check "both services stop" systemctl stop llm.service tts.service
check "nothing is held when the services have stopped" eventually usage_of_is / 0

# before the first instruction --------------------------------------------------------

cat >/etc/umacct.toml <<-END
	[[rule]]
	unit = "early"
	hard = "$(with_metadata $((4 * MIB)) 4 1)"

	[[rule]]
	unit = "first-*"
	hard = "$(with_metadata $((2 * MIB)) 2 1)"

	[[rule]]
	unit = "bounded"
	total = "64M"
END
mkdir -p /run/systemd/system-generators /run/systemd/system
ln -s /usr/lib/systemd/system-generators/umacct-generator /run/systemd/system-generators/
for unit in early first-job; do
	cat >"/run/systemd/system/$unit.service" <<-END
		[Service]
		Type=oneshot
		User=nobody
		ExecStartPre=-$SELFTESTS_BIN/rmtool "fill 1M"
		ExecStart=-$SELFTESTS_BIN/rmtool "fill 1M"
		StandardOutput=append:$TEST_DIR/$unit
	END
done
printf '[Service]\nType=oneshot\nExecStart=touch %s/started\n' "$TEST_DIR" \
	>/run/systemd/system/first-mark.service
printf '[Service]\nExecStart=%s/rmtool -f %s/bounded\n' "$SELFTESTS_BIN" "$TEST_DIR" \
	>/run/systemd/system/bounded.service
chmod 1777 "$TEST_DIR"
check "a policy is there without a daemon" systemctl daemon-reload
# Both of its programs, one after the other.
first_answers() { # UNIT COUNT
	rm -f "$TEST_DIR/$1"
	systemctl start "$1" && [ "$(grep -c "count=$2\\>" "$TEST_DIR/$1")" -eq 2 ]
}
check "a service's limit holds for its first program" first_answers early 4
check "a service's limit holds when it is started again" first_answers early 4
check "a service's limit by a pattern holds for its first program" first_answers first-job 2

# All of its memory, which systemd bounds.
max_of_bounded() {
	cat "$CGROUPS/system.slice/bounded.service/memory.max"
}
fifos bounded
check "a service starts under a total" systemctl start bounded
is "systemd sets the total of a rule" "$(max_of_bounded)" $((64 * MIB))
ask bounded touch 16M
ask bounded fill 1M
within "the total bounds the driver's memory beside the program's" "$(reply_field count)" 46 3
is "a service is refused at its total, and not killed" "$(systemctl is-active bounded)" active
sed -i 's/64M/96M/' /etc/umacct.toml
check "systemd reads another total" systemctl daemon-reload
is "another total holds for a service that runs" "$(max_of_bounded)" $((96 * MIB))
check "a person has systemd set another limit" systemctl set-property --runtime bounded.service MemoryMax=80M
systemctl daemon-reload
is "what a person had systemd set goes before the total" "$(max_of_bounded)" $((80 * MIB))
systemctl kill -s KILL bounded.service

echo '[[' >/etc/umacct.toml
systemctl start first-mark
check "a service whose limit can't be set runs all the same" [ -e "$TEST_DIR/started" ]
rm /run/systemd/system-generators/umacct-generator /etc/umacct.toml /run/systemd/system/*.service
check "systemd is told that the rule is gone" systemctl daemon-reload
is "without a rule there is no drop-in" "$(find /run/systemd -name "*umacct.conf")" ""

# the daemon as a service -----------------------------------------------------------

limit_is() { # TARGET BYTES
	[ "$(target "$1" hard)" = "$2" ]
}
main_pid() {
	systemctl show -P MainPID umacctd.service
}
restarted() { # PID
	[ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ]
}
# What it has said since it started.
has_said() { # PATTERN
	journalctl -q -o cat "_SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID umacctd.service)" |
		grep -q "$1"
}
frozen() { # UNIT
	grep -qx 'frozen 1' "$CGROUPS/system.slice/$1.service/cgroup.events"
}
obtainable_mib() {
	echo $(($(available) / MIB))
}
# Not after 30 seconds, for which nobody waits here.
sed 's,/usr/local,/usr,; s/^WatchdogSec=.*/WatchdogSec=15/' /usr/lib/systemd/system/umacctd.service \
	>/run/systemd/system/umacctd.service
systemctl daemon-reload
printf '[[rule]]\nname = "keep"\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml
check "umacctd starts, confined as its unit says" systemctl start umacctd.service
check "a service starts beside umacctd" systemd-run --quiet --unit kept sleep 1000
check "a service that starts beside umacctd has its limit" eventually limit_is kept.service $((4 * MIB))
check "programs find the limit in the journal, by its fields" eventually \
	sh -c "journalctl -q -o cat UMACCT_PATH=/system.slice/kept.service UMACCT_RULE=keep \
		UMACCT_HARD_BYTES=$((4 * MIB)) MESSAGE_ID=c3f0a45ed2b84d0f8f52be0b7d1f9a16 | grep -q 'hard max'"

daemon=$(main_pid)
kill -STOP "$daemon"
check "when umacctd hangs, systemd starts it again" eventually restarted "$daemon"
is "a service's limit stays while umacctd hangs" "$(target kept.service hard)" $((4 * MIB))
check "a service restarts after umacctd did" systemctl restart kept.service
check "a service that restarts after umacctd did has its limit" eventually limit_is kept.service $((4 * MIB))

# Docker keeps its containers where its settings say, and that may be below /home.
docked=$(printf '%064x' 7)
mkdir -p /etc/docker "/home/docker/containers/$docked"
echo '{"data-root":"/home/docker"}' >/etc/docker/daemon.json
echo '{"Name":"/vllm-prod","Config":{"Image":"vllm/vllm-openai"}}' \
	>"/home/docker/containers/$docked/config.v2.json"
cat >>/etc/umacct.toml <<-END
	[[rule]]
	name = "prod"
	container = "vllm-prod"
	hard = "64M"

	[[rule]]
	cgroup = "/system.slice/docker-*.scope"
	hard = "16M"
END
check "a rule names a container that Docker keeps below /home" systemctl reload umacctd.service
systemd-run --quiet --scope --unit "docker-$docked" sleep 1000 &
holders="$holders $!"
check "umacctd reads the name of Docker's container below /home" eventually \
	limit_is "/system.slice/docker-$docked.scope" $((64 * MIB))
is "config explain has the name of Docker's container below /home" \
	"$(umacct config explain --json vllm-prod | json_field rule)" prod
check "Docker's container below /home stops" systemctl stop "docker-$docked.scope"
rm -r /etc/docker /home/docker
printf '[[rule]]\nname = "keep"\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml

# All that there is, and more: everything is tried.
printf '[machine]\nheadroom = "99%%"\n' >>/etc/umacct.toml
check "a headroom is asked for in umacctd's policy" systemctl reload umacctd.service
check "the unit lets it give back page cache, and compact" eventually has_said \
	'^headroom: cannot reach the target; .* [1-9][0-9]* compaction'
# Who grew by half of the floor is to blame, and no less.
floor=$(($(obtainable_mib) / 2))
printf '[guard]\nfloor = "%dM"\nfor = "1ms"\nsteps = ["freeze"]\n' $floor >/etc/umacct.toml
check "a guard is asked for in umacctd's policy" systemctl reload umacctd.service
check "umacctd says that its unit is not made for a guard" eventually has_said "^guard: cannot write to cgroups"
mkdir /run/systemd/system/umacctd.service.d
cp /usr/share/umacct/umacctd-guard.conf /run/systemd/system/umacctd.service.d/
systemctl daemon-reload
check "umacctd starts with the guard's drop-in" systemctl restart umacctd.service
service leaker
tell leaker alloc 1M $((floor + 50))
check "umacctd's guard freezes who takes too much" eventually frozen leaker
check "umacctd is killed while somebody is frozen" kill -KILL "$(main_pid)"
is "who was frozen stays so when umacctd is killed" "$(frozen leaker && echo yes)" yes
check "systemd starts umacctd again with its guard" eventually has_said '^guard: on'
check "who took too much ends" systemctl kill -s KILL leaker.service
check "umacctd stops after the guard" systemctl stop umacctd.service
rm -r /run/systemd/system/umacctd.service.d
systemctl daemon-reload

printf '[[rule]]\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml
check "umacctd starts with a rule for the service" systemctl start umacctd.service
is "the rule for the service holds" "$(target kept.service hard)" $((4 * MIB))
check "umacctd stops, and the rule stays" systemctl stop umacctd.service
is "the service's limit stays without umacctd" "$(target kept.service hard)" $((4 * MIB))
rm /etc/umacct.toml
check "umacctd starts again, without the service's rule" systemctl start umacctd.service
is "umacctd lifts what the rule had set" "$(target kept.service hard)" null
check "the service and umacctd stop" systemctl stop kept.service umacctd.service

# without the module ----------------------------------------------------------------

counts() {
	[ -e /sys/fs/bpf/umacct/totals ]
}
scraped() { # METRIC VALUE
	wget -q -O - http://127.0.0.1:9752/metrics 2>/dev/null | grep -q "^$1.* $2\$"
}
observe() {
	for unit in umacct-observer umacct-exporter; do
		sed 's,/usr/local,/usr,; s,--socket .*,--port 9752,' \
			/usr/lib/systemd/system/$unit.service >/run/systemd/system/$unit.service
	done
	systemctl daemon-reload
	printf '[[rule]]\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml
	rmmod umacct
	check "without the module umacctd starts" systemctl start umacctd.service
	check "without the module umacctd has BPF programs count" counts
	check "umacctd's unit lets it read what BPF programs count" eventually has_said "BPF programs count in the module's place"
	service seen
	ask seen alloc 1M 3
	ip link set lo up
	check "the exporter starts without the module" systemctl start umacct-exporter.service
	# Nobody else may read what was counted.
	check "the exporter's unit lets it read what BPF programs count" eventually scraped \
		'umacct_account_usage_bytes{cgroup="/system.slice/seen.service"' \
		"$(umacct show --json seen.service 2>/dev/null | json_field usage)"
	check "what BPF programs count is what was allocated" [ "$(target seen.service system 2>/dev/null)" = $((3 * MIB)) ]
	check "the exporter and its service stop" systemctl stop umacct-exporter.service seen.service
	check "the module is loaded while BPF programs count" load umacct
	check "umacctd's unit lets it end the programs" eventually fails counts
	systemd-run --quiet --unit kept sleep 1000
	check "what waited for the module is done" eventually limit_is kept.service $((4 * MIB))
	check "the service and umacctd stop with the module there" systemctl stop kept.service umacctd.service
	rm /etc/umacct.toml
}
if [ -e /usr/lib/umacct/libumacct-observer.so ] && [ -x /usr/sbin/umacct-exporter ]; then
	observe
else
	skip "units without the module" "the tool was built without the observer or the exporter"
fi

# users -----------------------------------------------------------------------

check "a lingering user's manager starts" loginctl enable-linger alice
check "a lingering user's manager is up" systemctl start user@$ALICE.service

cat >/etc/umacct.toml <<-END
	[[rule]]
	cgroup = "/user.slice/user-$ALICE.slice/**"
	unit = "llm"
	hard = "4M"

	[[rule]]
	unit = "delegated"
	hard = "3M"

	[[rule]]
	unit = "llm"
	hard = "1M"

	[[rule]]
	cgroup = "/system.slice/delegated.service/last"
	hard = "2M"
END
check "umacctd has rules for her service, and one that hands its cgroup on" \
	systemctl start umacctd.service
hers=$MANAGER/app.slice/llm.service
check "a user's service starts" as_alice systemd-run --user --quiet --unit llm sleep 1000
check "a user's service has its limit" eventually limit_is "$hers" $((4 * MIB))
check "a user restarts its service" as_alice systemctl --user restart llm.service
check "a user's service has its limit again when it has restarted" eventually limit_is "$hers" $((4 * MIB))
check "a user stops its service" as_alice systemctl --user stop llm.service
check "a service that is given its cgroup starts" \
	systemd-run --quiet --unit delegated -p Delegate=yes sleep 1000
check "a service that is given its cgroup has its limit" eventually limit_is delegated.service $((3 * MIB))
within_it=/system.slice/delegated.service/llm.service
mkdir "$CGROUPS$within_it" "$CGROUPS${within_it%/*}/last"
check "what a service makes in its own cgroup is followed" eventually limit_is "${within_it%/*}/last" $((2 * MIB))
is "a cgroup is no service because it is called so" "$(target "$within_it" hard)" null
check "the delegated service and umacctd stop" systemctl stop delegated.service umacctd.service
rm /etc/umacct.toml /run/systemd/system/umacctd.service
systemctl daemon-reload

fifos mine
check "a user starts a service in its own manager" as_alice systemd-run --user --quiet --unit llm \
	"$SELFTESTS_BIN/rmtool" -f "$TEST_DIR/mine"
ask mine alloc 1M 3
is "a user's service is in the tree of its manager" "$(target "$MANAGER/app.slice/llm.service" system)" $((3 * MIB))
is "a user's service that is alone of its name is found by it" "$(target llm.service system)" $((3 * MIB))
check "the system starts one of the same name" service llm
ask llm alloc 1M 4
is "a name that the system has too is the system's" "$(target llm.service system)" $((4 * MIB))
limits llm --hard 6M
is "a limit by a name that the system has too is the system's" "$(target "$MANAGER/app.slice/llm.service" hard)" null
check "a user's whole slice is limited" limits user-$ALICE.slice \
	--hard "$(with_metadata $((5 * MIB)) 5 1)"
ask mine fill 1M
is "the limit of a user's slice binds its service" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 2"
as_alice umacct run true 2>"$TEST_DIR/err"
is "a user with a manager of its own may not run" $? 4
check "the user's lingering ends" loginctl disable-linger alice
check "all that was the user's is gone" eventually test ! -d "$CGROUPS$MANAGER"
check "the memory of the user's service is back" eventually usage_of_is / $((4 * MIB))
check "the system's service stops" systemctl stop llm.service
check "nothing is held at the end" eventually usage_of_is / 0

done_testing
