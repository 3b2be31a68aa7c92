#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# manual.sh MAN UMACCT: whether the manual is well-formed, whole, and has the verbs and
# the options that the tool has, no more and no fewer.

set -euo pipefail
man=$1
umacct=$2
failed=0

fail() {
	echo "not ok - $*"
	failed=1
}

mandoc -Tlint -W warning "$man"/*.[158] || fail "mandoc complains"

# The options that a page explains, and those that the parser has.
explained() { # PAGE
	sed -n 's/^\.It //p' "$man/$1.1" | grep -oE '(Fl|,) -[a-z][a-z-]*' |
		sed 's/.* -/--/' | sort
}

parsed() { # [VERB]
	"$umacct" "$@" --help | sed -n 's/^  \(-., *\)\{0,1\}\(--[a-z-]*\).*/\2/p' | sort
}

same() { # WHAT PAGE [VERB]
	local what=$1 page=$2
	shift 2
	diff <(explained "$page") <(parsed "$@") >&2 || fail "$what: the page (<) and the tool (>) differ"
}

verbs=$("$umacct" --help | sed -n '/^See:/,/^TARGET/s/^  \([a-z]*\)  .*/\1/p' | sort)
[[ $(wc -w <<<"$verbs") -gt 5 ]] || fail "the help names no verbs"
diff <(basename -s .1 "$man"/umacct-*.1 | sed 's/umacct-//') <(echo "$verbs") >&2 ||
	fail "the pages (<) and the verbs (>) differ"
diff <(sed -n 's/^\.It Xr umacct-\([a-z]*\) 1$/\1/p' "$man/umacct.1" | sort) <(echo "$verbs") >&2 ||
	fail "the verbs of umacct(1) (<) and the tool's (>) differ"
same umacct umacct
for verb in $verbs; do
	same "$verb" "umacct-$verb" "$verb"
	for section in NAME SYNOPSIS DESCRIPTION "EXIT STATUS" EXAMPLES "SEE ALSO"; do
		grep -qx ".Sh $section" "$man/umacct-$verb.1" || fail "umacct-$verb has no $section"
	done
done
[[ $failed -ne 0 ]] || echo "ok - the manual"
exit $failed
