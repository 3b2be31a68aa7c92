#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Only the administrator changes limits, and only by input that makes sense: the
# rest is refused with a word on what is wrong, and changes nothing.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_accounting

cgroup_leaf leaf
limit leaf --soft 1M --hard 2M

refused() { # DESCRIPTION EXIT_CODE WORD COMMAND...
	refused_what=$1
	refused_code=$2
	refused_word=$3
	shift 3
	"$@" >/dev/null 2>"$TEST_DIR/err"
	is "$refused_what: exit code $refused_code" $? "$refused_code"
	check "$refused_what: says why" grep -qi -- "$refused_word" "$TEST_DIR/err"
	diag "$(cat "$TEST_DIR/err")"
	is "$refused_what: changes nothing" "$(account leaf soft) $(account leaf hard)" \
		"$MIB $((2 * MIB))"
}

refused "a size that is none" 2 "many" limit leaf --hard many
refused "a negative size" 2 "-1" limit leaf --hard -1
refused "a size beyond all" 2 "99999999999999G" limit leaf --hard 99999999999999G
refused "soft above hard" 1 "soft" limit leaf --soft 3M
refused "hard below soft" 1 "soft" limit leaf --hard 512K
refused "a cgroup that doesn't exist" 1 "nowhere" umacct limit /nowhere --hard 1M
refused "an option that doesn't exist" 2 "strict" limit leaf --strict
refused "no privilege" 4 "permi" runas $UNPRIVILEGED umacct limit "$(cgroup_path leaf)" --hard max
refused "no privilege, from inside" 4 "permi" \
	in_cgroup leaf runas $UNPRIVILEGED umacct limit "$(cgroup_path leaf)" --hard max
refused "no privilege for the reserve" 4 "permi" runas $UNPRIVILEGED umacct reserve 1M
refused "set with one setting that is none" 2 "many" \
	umacct set "$(cgroup_path leaf)" hard=4M soft=many
refused "set with soft above hard" 1 "cannot set soft of $(cgroup_path leaf):" \
	umacct set "$(cgroup_path leaf)" hard=4M soft=8M
refused "set without privilege" 4 "permi" \
	runas $UNPRIVILEGED umacct set "$(cgroup_path leaf)" hard=4M
is "a tenant can read its limits" \
	"$(in_cgroup leaf runas $UNPRIVILEGED umacct show --json "$(cgroup_path leaf)" |
		json_field hard)" $((2 * MIB))
check "max lifts them" limit leaf --soft max --hard max
is "both limits are lifted" "$(account leaf soft) $(account leaf hard)" "null null"

settings() {
	umacct show --json "$(cgroup_path leaf)" >"$TEST_DIR/leaf"
	for key in soft hard keep throttle; do
		json_field $key <"$TEST_DIR/leaf"
	done | xargs
}

check "set changes several settings" \
	umacct set "$(cgroup_path leaf)" hard=8M soft=4M keep=2M throttle=10ms
is "all that set named is set" "$(settings)" \
	"$((4 * MIB)) $((8 * MIB)) $((2 * MIB)) 10000000"
check "none clears what set had set" \
	umacct set "$(cgroup_path leaf)" hard=none soft=none keep=none throttle=none
is "nothing is set any more" "$(settings)" "null null 0 0"
check "set knows the machine" umacct set machine reserve=1M view=on
is "the machine's reserve is set" "$(umacct reserve --json | json_field reserve)" "$MIB"
# More than the machine has can't be kept: the reserve is taken back.
check "set refuses more than there is" fails umacct set machine reserve=2M keep=100%
is "the reserve is what it was before the refusal" \
	"$(umacct reserve --json | json_field reserve)" "$MIB"
check "none clears what set had set of the machine" umacct set machine reserve=none view=none

done_testing
