#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# With charging on, the kernel's own memory.current rises by what is taken, for every shape of
# allocation, and falls by it at the free: by the pages, and by what counts in lots for the driver's
# heap. The driver's notes of each page aren't charged; umacct's records are.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "umacct_test_alloc is for virtual machines only"
needs_accounting
needs_kernel_alloc

# memory.current is also what the program needs for itself: a page of its page
# tables or of its heap may come with an allocation.
TOLERANCE=$((8 * PAGE))

measure() { # WHAT COUNT FREE_COMMAND COMMAND...
	what=$1
	count=$2
	free_command=$3
	shift 3
	before=$(cgroup_current leaf)
	kept=$(account leaf metadata)
	if ! ask holder "$@"; then
		result not_ok "$what: allocated"
		diag "$* -> $reply"
		ask holder "$free_command"
		return
	fi
	bytes=$(system_memory leaf)
	kept=$(($(account leaf metadata) - kept))
	settles "$what: memory.current rose by umacct's $bytes bytes, and $kept of metadata" \
		$((bytes + kept)) $((bytes * 40 / PAGE + count * 256 + TOLERANCE)) cgroup_current_since leaf "$before"
	is "$what: umacct says that all is charged" "$(account leaf charged)" "$bytes"
	ask holder "$free_command"
	settles "$what: memory.current fell by them at the free" 0 $TOLERANCE \
		cgroup_current_since leaf "$before"
	is "$what: nothing is charged any more" "$(account leaf charged)" 0
}

by_ioctl() { # KIB COUNT
	measure "ioctl, $1 KiB x $2" "$2" "free all" alloc "${1}K" "$2"
}

by_kernel() { # PAGES PAGE_SIZE CONTIGUOUS COUNT
	measure "$1 pages, blocks of $(($2 / KIB)) KiB, contiguous $3, x $4" "$4" "kernel free" \
		kernel alloc "$1" "$2" "$3" "$4"
}

cgroup_leaf leaf
check "charging is switched on" charge leaf on
start_in leaf holder
ask holder alloc 4K 2048
ask holder free all
ask holder kernel alloc 1024 $PAGE 0 8
ask holder kernel free

for shape in "4 2048" "8 1024" "12 512" "64 256" "100 128" "1024 16" "1028 8" "4096 8"; do
	# shellcheck disable=SC2086 # two words
	by_ioctl $shape
done
for shape in "1 $PAGE 1 2048" "3 $PAGE 1 1024" "7 $PAGE 1 512" "513 $PAGE 1 8" \
	"1 $PAGE 0 2048" "7 $PAGE 0 512" "512 $PAGE 0 8" "4097 $PAGE 0 1" \
	"16384 $PAGE 0 1" "16 65536 0 128" "1008 65536 0 4" "512 2097152 0 4" \
	"4608 2097152 0 1"; do
	# shellcheck disable=SC2086 # four words
	by_kernel $shape
done
measure "heap of the driver's, where a task can't sleep" 512 "kernel free" kernel heap 4000 512

done_testing
