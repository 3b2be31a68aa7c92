#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A fault of a GPU on managed memory is served by a thread of nvidia-uvm's, together with the faults
# of others. If the driver finds no page for one, it cancels all of them: other programs lose their
# work. So a page is never refused there; the next fault of an account that is above its limit is,
# where the driver still knows whose it is.
#
# There is no GPU here: a kernel thread of the tests calls the driver's functions as nvidia-uvm does.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it calls the driver from a kernel thread"
needs_accounting
needs_uvm
needs_kernel_alloc

# fault HOLDER SIZE COUNT [MIB]: a fault in the holder's process, in the MIB-th 2 MiB of what it mapped.
fault() {
	fault_pid=$(cat "$TEST_DIR/$1.pid")
	# shellcheck disable=SC2012 # a number and a device's name
	fault_fd=$(ls -l "/proc/$fault_pid/fd" | awk '/nvidia-uvm$/ { print $(NF - 2) }' | sort -n | head -n 1)
	fault_at=$(awk '/nvidia-uvm/ { split($1, ends, "-"); print ends[1]; exit }' "/proc/$fault_pid/maps")
	fault_at=$((0x$fault_at + ${4:-0} * 2 * MIB))
	ask guard kernel thread fault "$fault_pid" "$fault_fd" "$(printf %x "$fault_at")" "$2" "$3"
}

process_managed() { # HOLDER
	umacct ps --json | tr -d '\n' | tr '}' '\n' |
		grep "\"pid\" *: *$(cat "$TEST_DIR/$1.pid") *[,}]*" | json_field managed
}

start guard rmtool
ask guard open
# Of no process: it only tells whether there is such a command.
ask guard kernel thread fault 0 0 0 "$PAGE" 1
[ "$(reply_field errno)" != 95 ] || skip_all "the kernel has no direct calls, which the tests' thread needs"
for name in full neighbour; do
	cgroup_leaf $name
	start_in $name $name uvmtool
	echo "$pid" >"$TEST_DIR/$name.pid"
	ask $name open
	ask $name mm
	ask $name map 16M
done

# M5: what a GPU touches first is its process's.
check "a fault of a GPU takes a page" fault full "$PAGE" 1
is "a page that a GPU touched counts for the VA space's cgroup" "$(account full managed)" "$PAGE"
is "a page that a GPU touched counts for the VA space's process" "$(process_managed full)" "$PAGE"
ask guard kernel free
is "the page goes when it is freed" "$(account full managed)" 0

limit full --hard "$(account full usage)"
refusals=$(account full refusals)
check "at the limit a fault of a GPU gets no 64 KiB" fails fault full $((64 * KIB)) 1
is "what the driver asks for again in pages is no refusal" "$(account full refusals)" "$refusals"
check "at the limit a fault of a GPU gets its pages all the same" fault full "$PAGE" 16
is "the pages count, above the limit" "$(account full managed)" $((16 * PAGE))
check "the next fault in that VA space is refused" fails fault full "$PAGE" 1 1
is "it is refused before anything is served" "$(reply_field count)" 0
is "it is refused for want of memory" "$(reply_field status)" $NO_MEMORY
is "the refusal counts for the account" "$(account full refusals)" $((refusals + 1))
check "a neighbour's fault is served" fault neighbour "$PAGE" 1
is "a neighbour's fault counts for the neighbour" "$(account neighbour managed)" "$PAGE"
ask guard kernel free
check "below its limit again, the account's faults are served" fault full "$PAGE" 1 1
ask guard kernel free

# What is held above a limit that was lowered is in nobody's way.
limit full --hard max
ask full touch 4M
limit full --hard 1M
check "above a limit that was lowered the first fault of a GPU is served" fault full "$PAGE" 1 4
ask guard kernel free
limit full --hard max

umacct reserve $(($(available) + 64 * MIB))
check "the reserve refuses no fault of a GPU" fault full "$PAGE" 1 2
check "the reserve refuses no fault of a GPU in larger pages" fault full $((64 * KIB)) 1 2
umacct reserve off
ask guard kernel free

done_testing
