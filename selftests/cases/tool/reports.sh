#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-*
# long: also
#
# Jobs as owners of a Spark reported them, whose memory of all kinds adds up to twice the model:
# each is made small, and umacct's one number has to be right.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it makes cgroups beside everybody's, and a loop device"
needs_accounting

LOOP=/dev/loop1

run() { # OPTION... -- COMMAND...
	umacct run --json --name "reports-$$" "$@" >"$TEST_DIR/out" 2>"$TEST_DIR/err"
}

needed() { # KEY
	sed 's/.*"needed"://' "$TEST_DIR/err" | json_field "$1"
}

field() { # KEY
	json_field "$1" <"$TEST_DIR/err"
}

# A checkpoint in a private mapping, whose pages are written while it is copied to the GPU.
dd if=/dev/zero of="$TEST_DIR/checkpoint" bs=1M count=48 2>/dev/null
run -- rmtool "private $TEST_DIR/checkpoint" "alloc 2M 24" "sleep 1"
within "a checkpoint that is loaded through a private mapping is needed twice" "$(needed total)" \
	$((96 * MIB)) $((4 * MIB))
within "one half of it is the program's" "$(needed programs)" $((48 * MIB)) $((4 * MIB))
within "and the other is the driver's" "$(needed driver)" $((48 * MIB)) $((2 * MIB))

# The same through page cache, which comes back by itself.
if [ -b $LOOP ]; then
	truncate -s 64M "$TEST_DIR/zeros"
	losetup $LOOP "$TEST_DIR/zeros"
	exec 5<$LOOP
	run -- sh -c "dd if=$LOOP of=/dev/null bs=1M count=32 2>/dev/null; exec rmtool 'alloc 2M 16' 'sleep 1'"
	within "of a model that is loaded through page cache the driver's part is needed" \
		"$(needed total)" $((32 * MIB)) $((4 * MIB))
	within "and the cache stands beside it" "$(needed cache)" $((32 * MIB)) $((4 * MIB))
	exec 5<&-
	losetup -d $LOOP
else
	skip "a model that is loaded through page cache" "no loop devices"
fi

# A model that is suspended to memory of the program's own and resumed, again and again.
run --total 34M -- rmtool "alloc 1M 24" "suspend 100" "sleep 1"
is "a model is suspended and resumed 100 times under one limit that has room for it once" \
	"$(field exit_code) $(field failures)" "0 0"
# A huge page of which a half was given back is there until the kernel splits it.
within "it never was there twice" "$(needed total)" $((27 * MIB)) $((7 * MIB))

# The same under two limits beside each other. What leaves the one comes under the other, which has no
# room for it.
cgroup_leaf beside
echo $((12 * MIB)) >"$(cgroup_dir beside)/memory.max"
limit beside --hard 32M
start_in beside model
check "a hard limit alone lets a model beside a smaller memory.max" ask model alloc 1M 24
umacct doctor --json >"$TEST_DIR/doctor"
check "the doctor names the memory.max that a model will not fit under when it is suspended" \
	grep -q "memory.max of $TEST_CGROUP/beside does not hold" "$TEST_DIR/doctor"
expect_warning mem_cgroup_out_of_memory
{ ask model suspend; } 2>/dev/null
check "a model that is suspended under a hard limit beside a memory.max is killed" eventually process_is_gone "$pid"
is "it was the kernel that killed it, at its memory.max" "$(cgroup_event beside memory.events oom_kill)" 1

# A suspended model ends, and is restored in another cgroup.
cgroup_leaf suspended
cgroup_leaf restored
cgroup_leaf kept
limit kept --keep 32M
start_in suspended model
ask model alloc 1M 24
ask model free all
check "a suspended model is memory of the program's own" ask model touch 24M
within "a suspended model holds no driver memory" "$(account suspended usage)" 0 $MIB
tell model exit
gone "$pid"
start_in restored model
ask model touch 24M
check "a model is restored in another cgroup" ask model alloc 1M 24
within "a restored model counts in the cgroup that it is in now" "$(account restored usage)" $((24 * MIB)) $MIB
is "a restored model counts nowhere else" "$(account suspended usage)" 0
ask model fill 1M
ask model fill 64K
start_in kept server
check "what another cgroup is guaranteed is there after a restored model took all it could" \
	ask server alloc 64K 450
tell model exit
tell server exit

# A job queue that learns how much a job needs by trying: of one order every day, of four with
# CASE_LONG, 20 times in all.
run -- rmtool "alloc 2M 16" "touch 16M" "sleep 1"
once=$(($(needed total) / MIB))
tried=0
needs_once() { # WHEN COMMAND...
	when=$1
	shift
	low=$((once - 16))
	high=$((once + 16))
	while [ $((high - low)) -gt 1 ]; do
		middle=$(((low + high) / 2))
		tried=$((tried + 1))
		if run --total ${middle}M -- rmtool "$@" && [ "$(field failures)" = 0 ]; then
			high=$middle
		else
			low=$middle
		fi
	done
	within "the smallest limit that a job passes is what it needed, within a block: $when" \
		$high $((once + 1)) 2
}
needs_once "the driver's memory last" "touch 16M" "alloc 2M 16"
if [ "${CASE_LONG-}" ]; then
	needs_once "the program's memory last" "alloc 2M 16" "touch 16M"
	needs_once "the program's memory between" "alloc 2M 8" "touch 16M" "alloc 2M 8"
	needs_once "the driver's memory between" "touch 8M" "alloc 2M 16" "touch 8M"
	is "it tried 20 times" $tried 20
fi

done_testing
