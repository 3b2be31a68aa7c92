#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "umacct verify" finds the blind spot through the driver itself, shows that a limit
# and charging close it, and leaves nothing behind, even when it is interrupted.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting
short_lists

# A figure of one step, and of one moment of it.
step() { # STEP KEY
	tr '{' '\n' <"$TEST_DIR/verify" | grep "^\"step\":\"$1\"" | json_field "$2"
}

moment() { # STEP before|during|after KEY
	sed 's/"step":/\n&/g' "$TEST_DIR/verify" | grep "^\"step\":\"$1\"" |
		sed "s/.*\"$2\":{\([^}]*\)}.*/{\1}/" | json_field "$3"
}

left_behind() {
	set -- "$CGROUPS"/umacct-verify-*
	[ -d "$1" ]
}

before=$(unowned)
held=$(status_field system)
umacct verify --json --size 16M >"$TEST_DIR/verify"
is "verify passes on a blind machine" $? 0
is "verify's JSON says that it passed" "$(json_field passed <"$TEST_DIR/verify")" true
is "verify's verdict is that the machine is blind" "$(json_field verdict <"$TEST_DIR/verify")" blind

is "plain: 16 MiB are taken" "$(step plain allocated)" $((16 * MIB))
is "plain: with a memory.max of 8 MiB" "$(step plain memory_max)" $((8 * MIB))
check "plain: memory.current rose by what the process itself took" \
	[ "$(step plain seen)" -lt $((MIB / 2 + CHARGED_AHEAD)) ]
is "plain: memory.max was never reached" "$(step plain events_max)" 0
is "plain: umacct has every byte" "$(moment plain during usage)" "$(with_metadata $((16 * MIB)) 16 1)"
is "plain: umacct says what of the bytes is metadata" "$(moment plain during metadata)" \
	$(($(with_metadata $((16 * MIB)) 16 1) - 16 * MIB))
is "plain: none of the bytes is charged" "$(moment plain during charged)" 0
within "plain: MemFree fell by the bytes" \
	$(($(moment plain before memory_free) - $(moment plain during memory_free))) \
	$((16 * MIB)) $((4 * MIB))

is "limit: the limit holds" "$(step limit finding)" holds
# Of 8 MiB, the metadata takes less than one.
is "limit: the limit holds to the byte" "$(moment limit during usage)" "$(with_metadata $((7 * MIB)) 7 1)"
is "limit: the driver said out of memory" "$(step limit driver_status)" $((NO_MEMORY))
is "limit: all is back but the client" "$(moment limit after usage)" "$(with_metadata 0 0 1)"

is "charge: memory.max holds" "$(step charge finding)" holds
check "charge: less than memory.max was taken" \
	[ "$(step charge allocated)" -lt "$(step charge memory_max)" ]
is "charge: all of the bytes are charged" "$(moment charge during charged)" "$(step charge allocated)"
within "charge: memory.current rose by the bytes" "$(step charge seen)" "$(step charge allocated)" \
	$((MIB / 2 + CHARGED_AHEAD))
check "charge: memory.max refused" [ "$(step charge events_max)" -gt 0 ]
is "charge: nobody was killed" "$(step charge events_oom_kill)" 0

check "no cgroup is left of verify" fails left_behind
is "umacct holds what it held before verify" "$(status_field system)" "$held"
settles "the machine holds what it held before verify" 0 $MIB unowned_since "$before"

umacct verify --size 16M >"$TEST_DIR/text"
is "verify passes as text" $? 0
check "verify's text has the verdict" grep -q '^Verdict: blind\.' "$TEST_DIR/text"
is "verify's text has a finding for each step" "$(grep -c '^  => ' "$TEST_DIR/text")" 3

# Where the default is to charge, there is no blind spot.
umacct charge on
umacct verify --json --size 16M >"$TEST_DIR/verify"
is "verify passes with charging as the default" $? 0
is "with charging as the default the machine is not blind" "$(json_field verdict <"$TEST_DIR/verify")" charged
umacct charge off

for signal in INT TERM HUP; do
	umacct verify --size 64M >/dev/null 2>&1 &
	victim=$!
	# It is over in a second: nothing that sleeps would see it.
	until left_behind || ! kill -0 $victim 2>/dev/null; do
		:
	done
	kill -$signal $victim 2>/dev/null
	wait $victim
	check "SIG$signal interrupts verify" [ $? -ne 0 ]
	check "verify leaves no cgroup after SIG$signal" fails left_behind
	check "verify leaves no memory after SIG$signal" eventually status_is system "$held"
done

umacct verify --size 1G 2>/dev/null
is "verify refuses a size that is not small" $? 2
runas $UNPRIVILEGED umacct verify >/dev/null 2>&1
is "verify is refused to an unprivileged user" $? 4
umacct reserve "$(awk '$1 == "MemTotal:" { print $2 "K" }' /proc/meminfo)"
umacct verify >/dev/null 2>"$TEST_DIR/error"
is "verify is refused where memory is short" $? 1
check "verify says that memory is short" grep -q 'are available' "$TEST_DIR/error"
umacct reserve off

done_testing
