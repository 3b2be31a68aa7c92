#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The story that "demo" tells, inside the machine. Every number that it rests on is
# checked; the first that isn't as told ends it.

SELFTESTS_BIN=/selftests/bin
# shellcheck source=selftests/lib/helpers.sh
. /selftests/lib/helpers.sh
TEST_CGROUP=/demo

# What the kernel itself moves meanwhile: for the programs, and for the driver's
# own notes, some 50 bytes for each page of 336 MiB.
SLACK=$((8 * MIB))

say() {
	printf '\n%s\n' "$*"
}

# shown COMMAND...: as a person would type it.
shown() {
	printf '\n$ %s\n' "$*"
	"$@"
}

claim() { # SENTENCE COMMAND...
	claim_sentence=$1
	shift
	if "$@"; then
		echo "  => $claim_sentence"
	else
		echo "  => NOT SO: $claim_sentence (failed: $*)"
		exit 1
	fi
}

must() { # COMMAND...
	"$@" || {
		echo "  failed: $*${reply:+ ($reply)}"
		exit 1
	}
}

# An unprivileged program of that name, in the cgroup of that name; sets pid.
program() { # NAME
	cp $SELFTESTS_BIN/rmtool "$TEST_DIR/$1"
	start_in "$1" "$1" runas "$UNPRIVILEGED" "$TEST_DIR/$1"
}

quit() { # NAME PID
	tell "$1" exit
	must gone "$2"
}

current() { # NAME
	cgroup_read "$1" memory.current
}

process_usage() { # PID
	umacct ps --json | tr -d '\n' | tr '}' '\n' | grep "\"pid\" *: *$1 *[,}]*" |
		json_field system
}

equal() { # GOT WANTED
	[ "$1" = "$2" ]
}

at_most() { # NUMBER MAXIMUM
	[ "$1" -le "$2" ]
}

near() { # NUMBER NUMBER
	near_off=$(($1 - $2))
	[ "${near_off#-}" -le $SLACK ]
}

echo "Linux $(uname -r) on $(uname -m), NVIDIA's driver $(cat /sys/module/nvidia/version), no GPU"
echo 0 >/proc/sys/kernel/printk
must cgroup_make ""
for name in llama vllm greedy neighbour trainer; do
	must cgroup_leaf $name
done

say "1. THE BLIND SPOT. Two unprivileged programs take memory through the driver."
row() { # LABEL BEFORE HOLDING AFTER
	printf '  %-22s %10s %10s %10s\n' "$@"
}
# in_mib BYTES: with one digit after the point.
in_mib() {
	echo "$(($1 / MIB)).$(($1 % MIB * 10 / MIB))"
}
mib() { # LABEL BEFORE HOLDING AFTER, in bytes
	row "$1" "$(in_mib "$2")" "$(in_mib "$3")" "$(in_mib "$4")"
}
program llama
llama=$pid
program vllm
vllm=$pid
must ask llama open
must ask vllm open
quiesce
free_before=$(free_memory)
llama_before=$(current llama)
vllm_before=$(current vllm)
must ask llama alloc 4M 24
must ask vllm alloc 4M 60
free_holding=$(free_memory)
llama_holding=$(current llama)
vllm_holding=$(current vllm)
shown umacct ls -o account,usage,metadata,memory.current /demo
shown umacct ps -o pid,user,usage,metadata,account /demo
claim "umacct: llama took 96 MiB and vllm 240 MiB, to the byte; METADATA is what the driver keeps for it" \
	equal "$(system_memory llama) $(system_memory vllm)" "$((96 * MIB)) $((240 * MIB))"
claim "and so did their processes" \
	equal "$(process_usage "$llama") $(process_usage "$vllm")" "$((96 * MIB)) $((240 * MIB))"
quit llama "$llama"
quit vllm "$vllm"
free_after=$(free_memory)
echo
row "MiB" before holding "after exit"
mib "free" "$free_before" "$free_holding" "$free_after"
mib "llama memory.current" "$llama_before" "$llama_holding" "$(current llama)"
mib "vllm  memory.current" "$vllm_before" "$vllm_holding" "$(current vllm)"
seen=$((llama_holding + vllm_holding))
claim "336 MiB, and the metadata, are no longer free ..." near $((free_before - free_holding)) $((336 * MIB))
claim "... and memory.current did not see them" \
	at_most "$seen" $SLACK
claim "all of it is back ..." at_most $((free_before - free_after)) $SLACK
claim "... and umacct counts nothing any more" equal "$(account "" usage)" 0

say "2. A LIMIT. A program asks for everything; its neighbour runs on."
shown umacct limit /demo/greedy --hard 64M
umacct watch >"$TEST_DIR/events" &
watcher=$!
holders="$holders $watcher"
program neighbour
neighbour=$pid
must ask neighbour alloc 4M 16
program greedy
greedy=$pid
sleep 1 # until the watcher listens
ask greedy fill 4M
echo "  greedy: the driver gave 4 MiB $(reply_field count) times, then said $(reply_field status):"
echo "  NV_ERR_NO_MEMORY, which a CUDA program gets as cudaErrorMemoryAllocation, \"out of memory\""
must equal "$(($(reply_field status)))" $((NO_MEMORY))
must ask neighbour alloc 4M 16
must eventually grep -q . "$TEST_DIR/events"
printf '\n$ umacct watch\n'
sed 's/  refused /\n    refused /' "$TEST_DIR/events"
claim "one event, by greedy" equal "$(grep -c "hard_refused .*pid $greedy (greedy)" \
	"$TEST_DIR/events")" 1
claim "greedy has 60 MiB: with the driver's metadata, 4 MiB more would be above 64 MiB" \
	equal "$(system_memory greedy)" $((60 * MIB))
claim "its usage is within the limit" at_most "$(account greedy usage)" $((64 * MIB))
claim "its neighbour holds 128 MiB, half of it since" equal "$(system_memory neighbour)" $((128 * MIB))
must ask greedy free 0
claim "the refused program lives, frees, and can allocate again" ask greedy alloc 4M
quit greedy "$greedy"
quit neighbour "$neighbour"

say "3. CHARGING. The same program, the same memory.max of 64 MiB: charging off, then on."
must cgroup_write trainer memory.max $((64 * MIB))
charge_row() { # LABEL ANSWER
	printf '  %-14s given %3d MiB, memory.current %3d MiB, %s, oom_kill %d\n' "$1" \
		$(($(system_memory trainer) / MIB)) $(($(current trainer) / MIB)) "$2" \
		"$(cgroup_event trainer memory.events oom_kill)"
}
program trainer
must ask trainer alloc 4M 40
charge_row "charging off:" "nothing refused"
unlimited=$(system_memory trainer)
claim "memory.max is ignored" equal "$(system_memory trainer)" $((160 * MIB))
quit trainer "$pid"
shown umacct charge on /demo/trainer
program trainer
ask trainer alloc 4M 40
must equal "$(($(reply_field status)))" $((NO_MEMORY))
charge_row "charging on:" "then $(reply_field status)"
limited=$(system_memory trainer)
claim "memory.max holds" at_most "$(current trainer)" $((64 * MIB))
claim "for as much as fits" near "$(system_memory trainer)" $((64 * MIB))
claim "nobody was killed" equal "$(cgroup_event trainer memory.events oom_kill)" 0
claim "the program lives, and has room for a smaller request" ask trainer alloc 64K
shown umacct ls /demo
quit trainer "$pid"
claim "back to nothing" at_most "$(current trainer)" $SLACK

say "IN SHORT, as measured just now:"
summary() { # LABEL WITHOUT WITH
	printf '  %-36s %-18s %s\n' "$@"
}
summary "" "without umacct" "with umacct"
summary "336 MiB that two programs take" "$(in_mib "$seen") MiB are seen" "336 MiB, by cgroup and process"
summary "a limit of 64 MiB for one program" "there is none" "60 MiB, then out of memory"
summary "memory.max of 64 MiB (charging)" "$(in_mib "$unlimited") MiB taken" "$(in_mib "$limited") MiB, then out of memory"
summary "programs that were refused memory" "-" "all live, and can allocate again"

say "To install it, from this clone, as root:"
echo "  make setup && make deb && apt install ./build/deb/umacct{,-dkms}_*.deb && umacct doctor"
