#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
#
# What a scrape says: the accounts and the rest together are what was allocated, and what
# went from free memory, whoever is told one by one.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory, and listens on loopback"
needs_accounting
EXPORTER=/usr/sbin/umacct-exporter
[ -x $EXPORTER ] || skip_all "no exporter for this architecture"

# See accounting/shapes: here a server runs beside it.
TOLERANCE=$MIB
SCRAPED=$TEST_DIR/metrics

scrape() {
	wget -q -O "$SCRAPED" http://127.0.0.1:9752/metrics 2>/dev/null
}

# The sum of a metric over what labels it has.
sum_of() { # METRIC
	awk -v metric="$1" '
	{ name = $1; sub(/[{].*/, "", name) }
	name == metric { sum += $NF }
	END { printf "%d\n", sum }' "$SCRAPED"
}

# What was allocated, in MiB and objects, by four clients of the driver's; or by as many as are left.
adds_up() { # WHAT MIB OBJECTS [CLIENTS]
	counted=$(($(with_metadata $(($2 * MIB)) "$3" "${4:-4}") + held_before))
	check "$1: the exporter answers a scrape" scrape
	usage=$(status_field usage)
	is "$1: accounts and the rest are what umacct counts, to the byte" \
		"$(($(sum_of umacct_account_local_bytes) + $(sum_of umacct_rest_local_bytes)))" "$usage"
	is "$1: the machine's usage is what umacct counts, to the byte" "$(sum_of umacct_usage_bytes)" "$usage"
	within "$1: that is what was allocated, but for a lot of each process" "$usage" "$counted" $((128 * KIB))
	settles "$1: what is told is gone from free memory" $(($2 * MIB)) $TOLERANCE unowned_since "$before"
	is "$1: the two with most are told one by one" "$(grep -c "^umacct_account_local_bytes{" "$SCRAPED")" 2
}

# A program that loaded nvidia-uvm may have a client of the driver's by that.
held_before=$(status_field usage)
printf '[exporter]\ntop = 2\n' >/etc/umacct.toml
ip link set lo up
$EXPORTER --port 9752 2>"$TEST_DIR/log" &
exporter=$!
holders="$holders $exporter"
check "the exporter listens" eventually scrape

for name in a b c d; do
	cgroup_leaf $name
	start_in $name $name
	ask $name open
	# The first calls fill the driver's and the kernel's caches.
	ask $name alloc 4K 256
	ask $name free all
done
quiesce
before=$(unowned)
adds_up "nothing" 0 0
ask a alloc 1M 30
ask b alloc 4K 512
ask c alloc 64K 64
ask d alloc 1M 17
adds_up "four hold memory" $((30 + 2 + 4 + 17)) $((30 + 512 + 64 + 17))
ask a free all
adds_up "the one with most gives it back" $((2 + 4 + 17)) $((512 + 64 + 17))
tell d exit
gone "$pid"
for name in b c; do
	ask $name free all
done
adds_up "all do" 0 0 3
kill -TERM $exporter
check "the exporter ends when it is asked to" gone $exporter
rm /etc/umacct.toml

done_testing
