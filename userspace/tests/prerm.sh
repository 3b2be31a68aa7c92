#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# prerm.sh PRERM: whether the removal of Debian's package undoes what is set up, and says what is
# to be restarted.

set -euo pipefail
prerm=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

stand_in() { # PROGRAM: with what it does on standard input
	{
		printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\n' "$1" "$work"
		cat
	} >"$work/$1"
	chmod 755 "$work/$1"
}

# As the tool says it, of what is in $work/parts alone.
stand_in umacct <<END
[ "\$1 \$3" = "setup --undo" ] || exit 0
grep -qx "\$2 fails" "$work/parts" && exit 1
grep -qx "\$2" "$work/parts" || { echo "\$2 was not set up"; exit 0; }
echo "put back /etc/cdi/umacct-memory.json"
case \$2 in
docker | containerd | crio) echo "systemctl restart \$2" ;;
k3s) echo "systemctl try-restart 'k3s*'" ;;
cdi) printf 'container held was created with a device\ncreate such containers again\n' ;;
esac
END
stand_in deb-systemd-invoke </dev/null

removes() { # PART...: what the script says of the services, by a word for each
	: >"$work/calls"
	printf '%s\n' "$@" >"$work/parts"
	PATH=$work:$PATH sh "$prerm" remove 2>&1 |
		sed -n "s/.*: systemctl \(.*restart .*\)/\1/p; s/.*create them again.*/again/p
			s/^umacct: container \([^ ]*\) .*/\1/p; s/^umacct: create such containers again/again/p" |
		paste -sd ' '
}

is() { # WHAT VALUE EXPECTED
	[[ $2 == "$3" ]] || { echo "not ok - $1: '$2', not '$3'"; failed=1; }
}

is "nothing is set up" "$(removes none)" ""
is "each part is undone" "$(grep -c 'setup .* --undo' "$work/calls")" 8
is "Podman has nothing to restart" "$(removes podman)" ""
is "containers that do not start without a device are named, and are to be made again" \
	"$(removes cdi)" "held again"
is "containerd and CRI-O have to be restarted" "$(removes crio containerd)" \
	"restart crio restart containerd"
is "k3s has to be restarted, be it a server or an agent" "$(removes k3s)" "try-restart 'k3s*'"
is "Docker has to be restarted, and its containers made again" "$(removes docker)" \
	"restart docker again"
printf '%s\n' podman 'docker fails' >"$work/parts"
code=0
said=$(PATH=$work:$PATH sh "$prerm" remove 2>&1) || code=$?
is "the package stays where what it set up can't be undone" "$code" 1
is "what can't be undone is named" "$(sed -n 's/.*could not be undone for: //p' <<<"$said")" docker
: >"$work/calls"
PATH=$work:$PATH sh "$prerm" upgrade 1
is "an upgrade undoes nothing" "$(cat "$work/calls")" ""
[[ $failed -ne 0 ]] || echo "ok - removal"
exit $failed
