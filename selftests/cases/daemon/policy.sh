#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clock: instructions
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# umacctd: a cgroup that appears has its limits at once, again when it is made anew, and
# for as long as the module is there, whatever becomes of the daemon. A policy that is read
# again takes effect as a whole or not at all.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it sets limits by a policy of its own, in /etc"
needs_accounting

LOG=$TEST_DIR/log

daemon_start() {
	/usr/sbin/umacctd 2>>"$LOG" &
	daemon=$!
	holders="$holders $daemon"
	eventually grep -q 'in force' "$LOG"
}

# The soft limit is the policy's mark; a rule for a whole subtree, and two that are first.
policy() { # HARD
	cat >/etc/umacct.toml <<-END
		[machine]
		reserve = "64M"

		[[rule]]
		name = "special"
		cgroup = "$(cgroup_path special)"
		hard = "8M"

		[[rule]]
		name = "by name"
		container = "named-*"
		hard = "6M"

		[[rule]]
		name = "all"
		cgroup = "$(cgroup_path '**')"
		hard = "$1"
		soft = "1M"
	END
}

reload() {
	: >"$LOG"
	kill -HUP "$daemon"
	eventually grep -q "$1" "$LOG"
}

has_limit() { # NAME BYTES
	account_is "$1" hard "$2"
}

# How long from the making of a cgroup until the module has its limit, in ms.
appears_in() { # NAME MIB
	appears_path=$(cgroup_path "$1")
	appears_from=$(now_ms)
	cgroup_leaf "$1"
	while :; do
		! nltest accounts | grep -q " $appears_path .* $(($2 * MIB)) " || break
		[ $(($(now_ms) - appears_from)) -lt 5000 ] || break
	done
	echo $(($(now_ms) - appears_from))
}

policy 4M
cgroup_leaf before
check "the daemon starts" daemon_start
check "what is there when the daemon starts has its limit" has_limit before $((4 * MIB))
is "the policy's reserve is set" "$(status_field reserve)" $((64 * MIB))
is "the source of a limit can be asked for" \
	"$(umacct config explain --json "$(cgroup_path before)" | json_field rule)" all

cgroup_leaf after
check "a cgroup that appears has its limit" eventually has_limit after $((4 * MIB))
cgroup_leaf special
check "the first rule that is for a cgroup wins" eventually has_limit special $((8 * MIB))
is "the first rule that is for a cgroup says all of it" "$(account special soft)" null
cgroup_leaf after/in/deep
check "a cgroup that appears below a limited one has its limit, too" eventually has_limit after/in/deep $((4 * MIB))

start_in after holder
ask holder open
ask holder fill 1M
is "a limit by the policy holds: with its metadata, the fourth MiB is too much" "$(reply_field count)" 3
ask holder free all

# A restart: the cgroup goes, and comes again.
tell holder exit
gone "$pid"
cgroup_remove "$(cgroup_path after)"
cgroup_leaf after
check "a cgroup that is made anew has its limit again" eventually has_limit after $((4 * MIB))

is_quick() { # DESCRIPTION MIB NAME...
	quick_what=$1
	quick_limit=$2
	shift 2
	slowest=0
	for name; do
		took=$(appears_in "$name" "$quick_limit")
		[ "$took" -le "$slowest" ] || slowest=$took
		diag "after $took ms"
	done
	check "$quick_what" [ "$slowest" -le "$quick" ]
}
# KASAN and lockdep take several times as many instructions.
quick=100
! is_debug_kernel || quick=500
# The driver's first allocation was holder's perhaps: it tells whether a hook is needed, and
# whoever sets something waits while that goes, once.
mask_is_seen() {
	! grep -q '_gfp_mask armed' "$DEBUGFS/status"
}
check "no hook is on its way out before the times are taken" eventually mask_is_seen
is_quick "within 100 ms a cgroup that appears has its limit" 4 quick1 quick2 quick3 quick4 quick5 quick6 quick7 quick8

# As podman writes it down before a container starts.
names=/var/lib/containers/storage/overlay-containers
containers=
set --
for i in 1 2 3 4 5 6 7 8; do
	id=$(printf '%064x' $i)
	containers="$containers,{\"id\":\"$id\",\"names\":[\"named-$i\"]}"
	set -- "$@" "libpod-$id.scope"
done
mkdir -p $names
echo "[${containers#,}]" >$names/containers.json
# Where systemd puts them: elsewhere a scope's name says nothing of who it is for.
own_cgroup=$TEST_CGROUP
TEST_CGROUP=/machine.slice
is_quick "a container of a name in the policy has its limit as soon" 6 "$@"
cgroup_remove $TEST_CGROUP
TEST_CGROUP=$own_cgroup
cgroup_leaf "$1"
check "a scope of that name that is somewhere else has what its path gets" eventually \
	has_limit "$1" $((4 * MIB))
cgroup_remove "$(cgroup_path "$1")"
rm $names/containers.json

policy 5M
check "a policy is read again" reload 'was read again'
check "a policy that is read again takes effect" has_limit before $((5 * MIB))
check "the daemon says what a policy that is read again changed" grep -q "/before: hard 4.00 MiB -> 5.00 MiB (by rule \"all\", " "$LOG"
check "the daemon says nothing of what a policy that is read again left" fails grep -q "/special:" "$LOG"
printf '[[rule]]\ncgroup = "%s"\nhard = "1M"\n' "$(cgroup_path before)" >>/etc/umacct.toml
echo 'hrad = "1M"' >>/etc/umacct.toml
check "a policy that is wrong is refused, with the place" reload '/etc/umacct.toml:22:1: a rule has no'
check "a policy that is wrong changes nothing" has_limit before $((5 * MIB))
umacct config check 2>"$TEST_DIR/err"
is "config check refuses a policy that is wrong" "$?" 2
check "config check says where a policy is wrong" grep -q '^/etc/umacct.toml:22:1: ' "$TEST_DIR/err"

# The module has no account so deep down: that is that cgroup's trouble alone.
deep=tenant
for _ in $(seq 70); do
	deep=$deep/d
done
cgroup_leaf "$deep"
policy 6M
check "a cgroup that is too deep keeps no policy from being read again" reload 'was read again'
check "beside a cgroup that is too deep the others have their limits" has_limit before $((6 * MIB))
check "the daemon says of the cgroup that is too deep that it has no account, with its path" eventually grep -q "$(cgroup_path tenant)/d/d/d.*no account" "$LOG"
cgroup_remove "$(cgroup_path tenant)"
policy 5M
check "a policy as before is read again" reload 'was read again'

: >/etc/umacct.toml
check "a policy of no bytes, which had some, is refused" reload 'it is empty, and was not'
check "a policy of no bytes changes nothing" has_limit before $((5 * MIB))
check "config check refuses a policy of no bytes" fails umacct config check
ln -sf /nowhere/umacct.toml /etc/umacct.toml
check "a policy that is a link to what is not mounted is refused" reload 'cannot read it'
check "a policy that is a link to what is not mounted changes nothing" has_limit before $((5 * MIB))
rm /etc/umacct.toml
policy 5M
check "a policy that is there again is read" reload 'was read again'

kill -KILL "$daemon"
gone "$daemon"
check "when the daemon is killed, its limits stay" has_limit before $((5 * MIB))
cgroup_leaf by_last_good
echo 'hrad = "1M"' >>/etc/umacct.toml
: >"$LOG"
check "the daemon starts with a policy that is wrong" daemon_start
check "the daemon says at its start what is wrong with its policy" grep -q '/etc/umacct.toml:19:1: ' "$LOG"
check "the last good policy is in force" eventually has_limit by_last_good $((5 * MIB))
policy 5M
kill -KILL "$daemon"
gone "$daemon"
limit after --hard 3M
cgroup_leaf while_away
: >"$LOG"
check "the daemon starts again after it was killed" daemon_start
check "what appeared while there was no daemon has its limit" has_limit while_away $((5 * MIB))
check "what a person set while there was no daemon stays" has_limit after $((3 * MIB))
shows() { # NAME TEXT
	umacct show "$(cgroup_path "$1")" | grep -q "$2"
}
check "show says that a person set it, and what the rule says" \
	shows after 'by a person at .*; rule "all", /etc/umacct.toml:14, says 5.00 MiB'
umacct headroom 1M >/dev/null
check "a setting of the machine has the daemon read its policy" eventually grep -q 'was read again' "$LOG"
check "a person's limit outlives that the policy is read again" has_limit after $((3 * MIB))
umacct headroom default >/dev/null
check "a person takes a limit back" limit after --hard -
check "a limit that is taken back is the rule's again" has_limit after $((5 * MIB))
check "show says which rule it is" shows after 'by rule "all", /etc/umacct.toml:14'
check "a person makes a rule for a cgroup that is not there" \
	umacct limit "$(cgroup_path later)" --hard 2M --permanent
check "the daemon reads the rule that a person made" eventually [ -e \
	/var/lib/umacctd/policy/0000-00-umacct-set.toml ]
cgroup_leaf later
check "the rule that a person made holds" eventually has_limit later $((2 * MIB))
rm /etc/umacct.toml.d/00-umacct-set.toml
: >"$LOG"
check "without that rule the policy is read again" reload 'was read again'
check "what is as it should be is left alone when the daemon starts" fails grep -q "/before:" "$LOG"

kill -KILL "$daemon"
gone "$daemon"
limit after --hard 3M
rm /etc/umacct.toml
: >"$LOG"
check "the daemon starts when its rules are gone" daemon_start
is "what rules that are gone had set is lifted" "$(account before hard) $(account before soft)" "null null"
is "the reserve that a rule that is gone had set is lifted" "$(status_field reserve)" 0
check "what a person changed since outlives the rule" has_limit after $((3 * MIB))
policy 5M
check "the rules are there again" reload 'was read again'

# The module goes, and all limits with it; and comes again.
: >"$LOG"
eventually rmmod umacct
check "the daemon says that the module goes" eventually grep -q 'was unloaded' "$LOG"
load umacct
check "when the module comes, all has its limits" eventually has_limit before $((5 * MIB))
check "when the module comes, a person's limit is there again" has_limit after $((3 * MIB))

kill -TERM "$daemon"
check "the daemon ends when it is asked to" gone "$daemon"
rm /etc/umacct.toml
umacct reserve off >/dev/null

done_testing
