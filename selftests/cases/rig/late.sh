#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
#
# A case that does not end is ended when its time is over, whatever it waits for, and has failed: else one hung
# command holds up all cases after it until the whole machine is ended, and nobody is told which one hung.

. "$(dirname "$0")/../../lib/helpers.sh"

tree=$TEST_DIR/tree
mkdir -p "$tree/lib" "$tree/cases/late"
cp "$SELFTESTS/lib/run_cases.sh" "$SELFTESTS/lib/heads.sh" "$tree/lib"

# late NAME: a case that is ended as those are that source helpers.sh. What it does is stdin's.
late() {
	{
		echo "trap 'echo \"# cleaned up\"' EXIT"
		echo "trap 'exit 1' INT TERM"
		cat
		echo 'echo 1..1'
	} >"$tree/cases/late/$1.sh"
}

late 1_waits_for_a_command <<-'END'
	echo "ok 1 - the beginning"
	sleep 5001
END
late 2_waits_for_what_it_started <<-'END'
	sleep 5002 &
	wait
END
late 3_hangs_in_its_end <<-'END'
	trap 'sleep 5003' EXIT
	sleep 5004
END
late 4_ends <<-'END'
	echo "ok 1 - it ends"
END

CASE_TIMEOUT=10 CASE_MACHINE='' CASE_LONG='' TMPDIR=$TEST_DIR sh "$tree/lib/run_cases.sh" >"$TEST_DIR/said" 2>&1
is "a run with cases that hang has failed" $? 1
sed 's/^/# /' "$TEST_DIR/said"

# part NAME: what was said of it, its verdict at the end.
part() {
	awk -v name="late/$1" '
	{ said = said $0 "\n" }
	/^(not )?ok / {
		if ($0 ~ name)
			printf "%s", said
		said = ""
	}' "$TEST_DIR/said"
}

says() { # NAME PATTERN
	part "$1" | grep -q "$2"
}

for name in 1_waits_for_a_command 2_waits_for_what_it_started 3_hangs_in_its_end; do
	check "the case that $name is said to have taken too long" \
		says $name 'not ok - the case ends within 10 s'
	check "the case that $name has failed" says $name "^not ok [1-3] - late/$name "
done
check "what a hung case had found out before is kept" says 1_waits_for_a_command 'ok 1 - the beginning'
check "what a hung case waits for is named" says 1_waits_for_a_command '^    # [0-9]*, in .*: sleep 5001'
check "a case that waits for a command is cleaned up" says 1_waits_for_a_command '# cleaned up'
check "a case that waits for what it started is cleaned up" says 2_waits_for_what_it_started '# cleaned up'
check "a case that hangs in its end is said not to have cleaned up" \
	says 3_hangs_in_its_end '# it did not clean up within'
check "a case after those that hang runs and passes" says 4_ends '^ok 4 - late/4_ends'
is "nothing that a hung case started is left" "$(grep -lsE 'sleep.500[1-4]' /proc/[0-9]*/cmdline)" ""

done_testing
