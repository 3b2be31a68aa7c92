#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
#
# "umacct doctor --spark-report" takes memory through a stand-in for CUDA's library, which takes it
# from the real driver, and finds each byte counted once; memory that nobody counts it calls blind.
# It changes nothing, and leaves nothing behind but its file.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting
[ -e "$SELFTESTS/cuda/libcuda.so.1" ] || skip_all "no stand-in for CUDA's library"

report=$TEST_DIR/report

write_report() { # [VARIABLE=VALUE]...
	env LD_LIBRARY_PATH="$SELFTESTS/cuda" "$@" umacct doctor --spark-report "$report" >"$TEST_DIR/said"
}

# What a step's line says behind its name and its size.
verdict_of() { # STEP
	sed -n "s/^$1  *[0-9.]* [KMG]iB  //p; s/^$1  *\([a-z]\)/\1/p" "$report"
}

change_in() { # STEP FIGURE: in KiB
	sed -n "/^$1 /{n;p}" "$report" | tr , '\n' | sed -n "s/.*$2 \([+-]\)\([0-9.]*\) \([KMG]\)iB.*/\1 \2 \3/p" |
		awk '{ k = $2; if ($3 != "K") k *= 1024; if ($3 == "G") k *= 1024; print int(($1 == "-" ? -k : k)) }'
}

size_of() { # STEP: in KiB
	sed -n "s/^$1  *\([0-9.]*\) \([KMG]\)iB .*/\1 \2/p" "$report" |
		awk '{ k = $1; if ($2 != "K") k *= 1024; if ($2 == "G") k *= 1024; print int(k) }'
}

left_behind() {
	set -- "$CGROUPS"/umacct-spark-*
	[ -d "$1" ]
}

settings() {
	umacct config save
	cat /proc/sys/vm/nr_hugepages /proc/sys/vm/overcommit_memory
}

before=$(unowned)
held=$(status_field system)
settings >"$TEST_DIR/settings"
read_seconds
began=$seconds
write_report
is "the report is written" $? 0
read_seconds
check "the report takes a minute at most, with what starts and ends it" [ $((seconds - began)) -le 75 ]
check "the report says that each step is right" grep -q '0 wrong' "$TEST_DIR/said"
for step in "cuInit and a context" cuMemAlloc "cuMemAlloc, 2 MiB each" cuMemAllocAsync cuMemCreate \
	"cuMemCreate, host" "cuMemAllocManaged, CPU" "cuMemAllocManaged, GPU" cuMemHostAlloc \
	cuMemHostRegister "malloc, GPU writes" "shared, creator freed" exit; do
	is "the report's step '$step' is right" "$(verdict_of "$step")" right
done
size=$(size_of cuMemAlloc)
within "what cuMemAlloc took is missing from MemFree" "$(change_in cuMemAlloc MemFree)" $((-size)) $((size / 20))
within "what cuMemAlloc took is in umacct's usage" "$(change_in cuMemAlloc 'umacct usage')" "$size" $((size / 20))
check "the report names no cgroup of ours" fails grep -q "umacct[-_]spark\|$(hostname)" "$report"
check "no cgroup is left of the report" fails left_behind
is "umacct holds what it held before the report" "$(status_field system)" "$held"
settles "the machine has the memory that it had before the report" 0 $((4 * MIB)) unowned_since "$before"
settings >"$TEST_DIR/settings_after"
check "the report changes no setting" cmp "$TEST_DIR/settings" "$TEST_DIR/settings_after"

write_report STAND_IN_BLIND=1
is "memory that nobody counts is called blind" "$(verdict_of cuMemAlloc)" blind
is "what is counted is right beside it" "$(verdict_of cuMemAllocAsync)" right
check "the output says that steps are wrong" fails grep -q ' 0 wrong' "$TEST_DIR/said"

umacct doctor --spark-report - >"$report"
check "without CUDA's library the report has the facts" grep -q '^kernel  *[0-9]' "$report"
check "without CUDA's library the report says so" grep -q "libcuda.so.1 can't be loaded" "$report"

done_testing
