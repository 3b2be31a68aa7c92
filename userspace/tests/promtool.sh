#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# promtool.sh TESTS PACKAGING: whether Prometheus's own tool is content with the metrics,
# as the tests TESTS write them, and with the alerts; and whether alerts and dashboard ask
# for what there is. UMACCT_PROMTOOL says where the tool is, if not in PATH.

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
"$promtool" check rules "$packaging/prometheus-rules.yml"

sed -n 's/^\(umacct_[a-z_]*\).*/\1/p' "$work/metrics" | sort -u >"$work/told"
sed 's/#.*//' "$packaging"/{prometheus-rules.yml,grafana-dashboard.json} |
	grep -oE '\bumacct_[a-z_]+' | sort -u >"$work/asked"
[[ -s $work/asked ]]
if comm -13 "$work/told" "$work/asked" | grep .; then
	echo "is asked for, and nobody tells it"
	exit 1
fi
echo "all is well"
