#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# manual.sh DOCS UMACCT: whether the manual is well-formed, whole, and says what the
# tool's own help says.

set -euo pipefail
docs=$1
umacct=$2
failed=0

fail() {
	echo "not ok - $*"
	failed=1
}

mandoc -Tlint -W warning "$docs"/man/*.1 || fail "mandoc complains"

# As it is read: without pages' heads, overstriking and line breaks.
page() { # NAME
	mandoc -Tascii "$docs/man/$1.1" | sed 's/.\x08//g' | tr -s ' \n' ' '
}

verbs=$("$umacct" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\)  .*/\1/p')
[[ $(wc -w <<<"$verbs") -gt 5 ]] || fail "the help names no verbs"
for verb in $verbs; do
	[[ -f $docs/man/umacct-$verb.1 ]] || fail "no page umacct-$verb"
	text=$(page "umacct-$verb")
	for section in NAME SYNOPSIS DESCRIPTION OPTIONS "EXIT STATUS" EXAMPLES "SEE ALSO"; do
		[[ $text == *" $section "* ]] || fail "umacct-$verb has no $section"
	done
	while read -r option; do
		[[ $text == *"$option"* ]] || fail "umacct-$verb lacks $option"
	done < <("$umacct" "$verb" --help | grep -oE '^  (-., *)?--[a-z-]+' | grep -oE -- '--[a-z-]+')
	[[ $(page umacct) == *"umacct-$verb(1)"* ]] || fail "umacct lacks $verb"
done
[[ ! -e $docs/man/umacct-complete-targets.1 ]] || fail "a page for what is hidden"
[[ $failed -ne 0 ]] || echo "ok - the manual"
exit $failed
