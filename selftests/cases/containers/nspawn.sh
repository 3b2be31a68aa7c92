#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: systemd
# cell: amd64-6.12-550
#
# A machine that systemd-nspawn starts, by hand and as a service: it is shown and limited by its
# name, and by its unit.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/printed.sh"
needs_vm "it starts machines"
needs_accounting
[ -x /usr/bin/systemd-nspawn ] || skip_all "no systemd-nspawn"

# What a machine has: the program that it runs, and the driver's device.
make_tree() { # NAME
	mkdir -p "$TEST_DIR/$1.tree/bin" "$TEST_DIR/$1.tree/usr" "$TEST_DIR/$1.tree/ctl"
	cp "$(command -v rmtool)" "$TEST_DIR/$1.tree/bin/"
	fifos "$1"
}

# set_nspawn MACHINE HOLDER OPTION...: sets $nspawn, the words of a command that starts a machine whose
# program is the holder.
set_nspawn() {
	nspawn_machine=$1
	nspawn_holder=$2
	shift 2
	nspawn="systemd-nspawn --quiet --as-pid2 --machine=$nspawn_machine
		--directory=$TEST_DIR/$nspawn_holder.tree --bind=/dev/nvidiactl --bind=$TEST_DIR:/ctl
		--resolv-conf=off --timezone=off --link-journal=no --console=pipe $* --
		/bin/rmtool -f /ctl/$nspawn_holder"
}

# By hand: systemd makes a scope for it.
by_hand() { # MACHINE HOLDER
	make_tree "$2"
	set_nspawn "$1" "$2" "--property=DeviceAllow=/dev/nvidiactl"
	# shellcheck disable=SC2086 # each is a word
	$nspawn >"$TEST_DIR/$2.log" 2>&1 </dev/null &
	holders="$holders $!"
}

# As a unit of systemd-nspawn@.service has it.
as_service() { # UNIT MACHINE HOLDER
	make_tree "$3"
	set_nspawn "$2" "$3" --keep-unit
	# shellcheck disable=SC2086
	systemd-run --quiet --unit "$1" --slice=machine.slice -p Delegate=yes $nspawn
}

listed() { # NAME
	umacct ls | grep -q "^ *$1 "
}

limits() { # TARGET OPTION...
	umacct limit "$@" >/dev/null
}

usage_is_nothing() {
	[ "$(target / system)" = 0 ]
}

no_machines() {
	[ ! "$(find "$CGROUPS/machine.slice" -mindepth 1 -type d 2>/dev/null)" ]
}

machine_allocates() { # HOLDER MIB
	ask "$1" alloc 1M "$2" && return 0
	diag "$reply; $(cat "$TEST_DIR/$1.log" 2>/dev/null)"
	return 1
}

# systemd writes a dash so.
SERVING='systemd-nspawn@serving\x2d1.service'

trap 'systemctl kill --signal=KILL machine-box.scope "$SERVING" 2>/dev/null; clean_up' EXIT

check "a machine is started by hand" by_hand box box
check "a machine's program takes the driver's memory" machine_allocates box 5
is "a machine is found by its name, at its scope" "$(target box path)" /machine.slice/machine-box.scope
for name in box machine-box.scope /machine.slice/machine-box.scope; do
	is "the name $name is what the machine holds" "$(target "$name" system)" $((5 * MIB))
done
check "ps has the machine's program" sh -c "umacct ps box | grep -q rmtool"
why_not() { # COMMAND
	:
}
try_command() { # COMMAND
	eval "$1" >/dev/null
}
try_printed systemd-nspawn
is "the limit of the machine is the one that is printed" "$(target box hard)" $((40 * 1024 * MIB))
hard=$(with_metadata $((8 * MIB)) 8 1)
check "a machine is limited by its scope" limits machine-box.scope --hard "$hard"
ask box fill 1M
is "the limit by the scope holds" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 3"
check "the machine is limited by its name" limits box --hard "$(with_metadata $((10 * MIB)) 10 1)"
ask box fill 1M
is "the limit by the name holds" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 2"

check "a machine is started as a service, with a dash in its name" as_service "$SERVING" serving-1 serving
check "the program of the machine that is a service takes the driver's memory" machine_allocates serving 3
is "a machine that is a service is found by its name" "$(target serving-1 system)" $((3 * MIB))
check "a machine that is a service is limited by its name" \
	limits serving-1 --hard "$(with_metadata $((4 * MIB)) 4 1)"
ask serving fill 1M
is "the limit of a machine that is a service holds" "$(reply_field status) $(reply_field count)" "$NO_MEMORY 1"
check "ls has the machine by its name" listed "machine box"
check "ls has the machine that is a service by its name" listed "machine serving-1"

check "both machines are killed" systemctl kill --signal=KILL machine-box.scope "$SERVING"
check "no cgroup of the machines is left" eventually no_machines
check "no memory of the machines is left" eventually usage_is_nothing
check "a machine that is gone is found no longer" fails umacct show box 2>/dev/null

done_testing
