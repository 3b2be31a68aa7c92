#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: systemd
# cell: amd64-6.12-550
#
# A machine that systemd runs: "run" is given a scope by it, units and slices are TARGETs,
# a user's services are known by their names, and a service that restarts is a cgroup anew.

. "$(dirname "$0")/../lib/helpers.sh"
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

# What umacct says of a target.
target() { # TARGET KEY
	umacct show --json "$1" | json_field "$2"
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
is "run: the command is in a scope, with the limit in force" \
	"$(umacct run -q --name scoped --hard 4M sh -c '
		cut -d : -f 3 /proc/self/cgroup; systemctl is-active scoped.scope
		umacct show --json scoped.scope | grep -o "\"hard_bytes\":[0-9]*"' | xargs)" \
	"/system.slice/scoped.scope active hard_bytes:$((4 * MIB))"
check "the scope goes with it" eventually no_scope scoped
hard=$(with_metadata $((4 * MIB)) 4 1)
umacct run --json --name scoped --hard "$hard" rmtool "fill 1M" >/dev/null 2>"$TEST_DIR/report"
is "the limit holds in it" "$(json_field peak <"$TEST_DIR/report")" "$hard"
umacct run -q --name scoped sh -c 'exit 7'
is "the command's exit code is run's" $? 7
umacct run -q --name scoped sh -c 'sleep 1000 & exit 3'
is "also where it leaves a child behind" $? 3
check "which goes with the scope" eventually no_scope scoped
umacct run -q --name scoped sh -c 'sleep 1000' &
runner=$!
eventually systemctl is-active --quiet scoped.scope
umacct run -q --name scoped true 2>"$TEST_DIR/err"
is "a scope's name is taken once" $? 125
check "which is said" grep -q scoped.scope "$TEST_DIR/err"
systemctl stop scoped.scope
wait $runner
is "systemctl stop ends the command" $? 143

# shellcheck disable=SC2016 # expands in the command
is "run --user: as she is, and in the system's slice" \
	"$(umacct run -q --user alice --name hers sh -c '
		echo $(id -un) $HOME; cut -d : -f 3 /proc/self/cgroup' | xargs)" \
	"alice /home/alice /system.slice/hers.scope"
start_ms=$(now_ms)
runas $ALICE umacct run true 2>"$TEST_DIR/err"
is "an unprivileged user may not, as from every verb" $? 4
check "and is told so long before a call over D-Bus gives up (25 s)" \
	[ $(($(now_ms) - start_ms)) -lt 20000 ]
check "what would be allowed, too" grep -qi root "$TEST_DIR/err"

# units -----------------------------------------------------------------------

check "a service starts" service llm --slice=models.slice
ask llm alloc 1M 5
for name in llm.service llm unit:llm.service /models.slice/llm.service; do
	is "$name is what it holds" "$(target "$name" system)" $((5 * MIB))
done
is "so is its slice" "$(target models.slice system)" $((5 * MIB))
check "show says which unit it is" sh -c "umacct show llm | grep -q 'llm.service'"
check "ls names it" sh -c "umacct ls | grep -q 'llm.service'"
check "ps has its process" sh -c "umacct ps llm.service | grep -q rmtool"
hard=$(with_metadata $((8 * MIB)) 8 1)
check "it is limited by its name" limits llm --hard "$hard"
ask llm fill 1M
is "and the limit holds" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 3"
check "its slice is limited by its" limits models.slice --hard "$(with_metadata $((9 * MIB)) 9 2)"
check "a second service in that" service tts --slice=models.slice
ask tts fill 1M
is "has what the slice has left" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 1"
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
check "top shows it" eventually top_shows "$hard"
before=$(stat -c %i "$CGROUPS/models.slice/llm.service")
check "the service restarts" systemctl restart llm.service
check "it is another cgroup" [ "$(stat -c %i "$CGROUPS/models.slice/llm.service")" != "$before" ]
check "what it held is back" eventually usage_of_is models.slice $((1 * MIB))
ask llm alloc 1M 2
is "its name is the new one's" "$(target llm system)" $((2 * MIB))
is "whose limit was the old one's, and went with it" "$(target llm hard)" null
check "top follows it" eventually top_shows "$(with_metadata $((2 * MIB)) 2 1)"
check "they stop" systemctl stop llm.service tts.service
check "nothing is held" eventually usage_of_is / 0

# before the first instruction --------------------------------------------------------

cat >/etc/umacct.toml <<-END
	[[rule]]
	unit = "early"
	hard = "$(with_metadata $((4 * MIB)) 4 1)"

	[[rule]]
	unit = "first-*"
	hard = "$(with_metadata $((2 * MIB)) 2 1)"
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
chmod 1777 "$TEST_DIR"
check "a policy, and no daemon" systemctl daemon-reload
# Both of its programs, one after the other.
first_answers() { # UNIT COUNT
	rm -f "$TEST_DIR/$1"
	systemctl start "$1" && [ "$(grep -c "count=$2\\>" "$TEST_DIR/$1")" -eq 2 ]
}
check "a service's limit holds for its first program" first_answers early 4
check "again when it is started again" first_answers early 4
check "also by a pattern" first_answers first-job 2
echo '[[' >/etc/umacct.toml
systemctl start first-mark
check "a service whose limit can't be set runs all the same" [ -e "$TEST_DIR/started" ]
rm /run/systemd/system-generators/umacct-generator /etc/umacct.toml /run/systemd/system/*.service
check "without a rule" systemctl daemon-reload
is "there is no drop-in" "$(find /run/systemd -name "*umacct.conf")" ""

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
sed 's,/usr/local,/usr,; s/^WatchdogSec=.*/WatchdogSec=5/' /usr/lib/systemd/system/umacctd.service \
	>/run/systemd/system/umacctd.service
systemctl daemon-reload
printf '[[rule]]\nname = "keep"\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml
check "umacctd starts, confined as its unit says" systemctl start umacctd.service
check "and a service" systemd-run --quiet --unit kept sleep 1000
check "which has its limit" eventually limit_is kept.service $((4 * MIB))
check "programs find that in the journal, by its fields" eventually \
	sh -c "journalctl -q -o cat UMACCT_PATH=/system.slice/kept.service UMACCT_RULE=keep \
		UMACCT_HARD_BYTES=$((4 * MIB)) MESSAGE_ID=c3f0a45ed2b84d0f8f52be0b7d1f9a16 | grep -q 'hard max'"

daemon=$(main_pid)
kill -STOP "$daemon"
check "when it hangs, systemd starts it again" eventually restarted "$daemon"
is "the limit stays meanwhile" "$(target kept.service hard)" $((4 * MIB))
check "and is looked after" systemctl restart kept.service
check "from then on" eventually limit_is kept.service $((4 * MIB))

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
check "umacctd reads its name there" eventually \
	limit_is "/system.slice/docker-$docked.scope" $((64 * MIB))
is "and explain says the same" \
	"$(umacct config explain --json vllm-prod | json_field rule)" prod
check "it stops" systemctl stop "docker-$docked.scope"
rm -r /etc/docker /home/docker
printf '[[rule]]\nname = "keep"\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml

# All that there is, and more: everything is tried.
printf '[machine]\nheadroom = "99%%"\n' >>/etc/umacct.toml
check "headroom is asked for" systemctl reload umacctd.service
check "the unit lets it give back page cache, and compact" eventually has_said \
	'^headroom: lacks memory that could be had; .* [1-9][0-9]* compaction'
# Who grew by half of the floor is to blame, and no less.
floor=$(($(obtainable_mib) / 2))
printf '[guard]\nfloor = "%dM"\nfor = "1ms"\nsteps = ["freeze"]\n' $floor >/etc/umacct.toml
check "a guard is asked for" systemctl reload umacctd.service
check "for which the unit is not made, as it says" eventually has_said "^guard: cgroups can't be written to"
mkdir /run/systemd/system/umacctd.service.d
cp /usr/share/umacct/umacctd-guard.conf /run/systemd/system/umacctd.service.d/
systemctl daemon-reload
check "with its drop-in" systemctl restart umacctd.service
service leaker
tell leaker alloc 1M $((floor + 50))
check "it freezes who takes too much" eventually frozen leaker
check "killed, it leaves it so" kill -KILL "$(main_pid)"
is "frozen" "$(frozen leaker && echo yes)" yes
check "systemd starts it again" eventually has_said '^guard: on'
check "who took too much ends" systemctl kill -s KILL leaker.service
check "umacctd stops" systemctl stop umacctd.service
rm -r /run/systemd/system/umacctd.service.d
systemctl daemon-reload

printf '[[rule]]\nunit = "kept"\nhard = "4M"\n' >/etc/umacct.toml
check "it starts with the rule" systemctl start umacctd.service
is "which holds" "$(target kept.service hard)" $((4 * MIB))
check "umacctd stops" systemctl stop umacctd.service
is "the limit stays" "$(target kept.service hard)" $((4 * MIB))
rm /etc/umacct.toml
check "it starts again, without that rule" systemctl start umacctd.service
is "and lifts what the rule had set" "$(target kept.service hard)" null
check "they stop" systemctl stop kept.service umacctd.service

# users -----------------------------------------------------------------------

check "a lingering user's manager starts" loginctl enable-linger alice
check "and is up" systemctl start user@$ALICE.service

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
check "her service starts" as_alice systemd-run --user --quiet --unit llm sleep 1000
check "and has its limit" eventually limit_is "$hers" $((4 * MIB))
check "she restarts it" as_alice systemctl --user restart llm.service
check "and it has it again" eventually limit_is "$hers" $((4 * MIB))
check "she stops it" as_alice systemctl --user stop llm.service
check "a service that is given its cgroup starts" \
	systemd-run --quiet --unit delegated -p Delegate=yes sleep 1000
check "and has its limit" eventually limit_is delegated.service $((3 * MIB))
within_it=/system.slice/delegated.service/llm.service
mkdir "$CGROUPS$within_it" "$CGROUPS${within_it%/*}/last"
check "what it makes is followed" eventually limit_is "${within_it%/*}/last" $((2 * MIB))
is "but is no service because it is called so" "$(target "$within_it" hard)" null
check "they stop" systemctl stop delegated.service umacctd.service
rm /etc/umacct.toml /run/systemd/system/umacctd.service
systemctl daemon-reload

fifos mine
check "and her own service" as_alice systemd-run --user --quiet --unit llm \
	"$SELFTESTS_BIN/rmtool" -f "$TEST_DIR/mine"
ask mine alloc 1M 3
is "it is in her manager's tree" "$(target "$MANAGER/app.slice/llm.service" system)" $((3 * MIB))
is "alone of that name, it is found by it" "$(target llm.service system)" $((3 * MIB))
check "the system starts one of the same name" service llm
ask llm alloc 1M 4
is "then the name is the system's" "$(target llm.service system)" $((4 * MIB))
limits llm --hard 6M
is "and so is the limit" "$(target "$MANAGER/app.slice/llm.service" hard)" null
check "her whole slice is limited" limits user-$ALICE.slice \
	--hard "$(with_metadata $((5 * MIB)) 5 1)"
ask mine fill 1M
is "and the limit binds her service" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 2"
as_alice umacct run true 2>"$TEST_DIR/err"
is "with a manager of her own, too, she may not run" $? 4
check "her lingering ends" loginctl disable-linger alice
check "and all that was hers" eventually test ! -d "$CGROUPS$MANAGER"
check "whose memory is back" eventually usage_of_is / $((4 * MIB))
check "the rest stops" systemctl stop llm.service
check "nothing is held at the end" eventually usage_of_is / 0

done_testing
