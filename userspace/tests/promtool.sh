#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# promtool.sh TESTS PACKAGING: whether Prometheus's own tool is content with the metrics,
# as the tests TESTS write them, and with the rules; whether rules and dashboards ask for what
# there is; and whether the rules of many machines make of it what fleet_rules.yml says. UMACCT_PROMTOOL says where the tool is, if not in PATH.

set -euo pipefail
tests=$1
packaging=$2
promtool=${UMACCT_PROMTOOL:-promtool}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v "$promtool" >/dev/null || {
	echo "no promtool"
	exit 77
}

UMACCT_METRICS_OUT=$work/metrics "$tests" --gtest_filter=Metrics.FiguresAndNames >/dev/null
"$promtool" check metrics <"$work/metrics" >"$work/said" 2>&1 || failed=1
# What it has to say that is no failure counts, too.
if [[ ${failed-} || -s $work/said ]]; then
	cat "$work/said"
	exit 1
fi
"$promtool" check rules "$packaging"/prometheus-{rules,fleet}.yml
cp "$packaging/prometheus-fleet.yml" "${0%/*}/fleet_rules.yml" "$work"
"$promtool" test rules "$work/fleet_rules.yml"

sed -n 's/^\(umacct_[a-z_]*\).*/\1/p' "$work/metrics" | sort -u >"$work/told"
sed -n 's/^ *- record: //p' "$packaging/prometheus-fleet.yml" >>"$work/told"
sort -o "$work/told" "$work/told"
sed 's/#.*//' "$packaging"/{prometheus-rules.yml,prometheus-fleet.yml,grafana-dashboard.json,grafana-fleet.json} |
	grep -oE '\bumacct[_:][a-z_:0-9]+' | sort -u >"$work/asked"
[[ -s $work/asked ]]
if comm -13 "$work/told" "$work/asked" | grep .; then
	echo "is asked for, and nobody tells it"
	exit 1
fi
echo "all is well"
