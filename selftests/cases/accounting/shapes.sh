#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For every shape of allocation, umacct's usage is the bytes that first principles
# say the driver takes, and the memory that went from MemFree is as much.
#
# First principles: contiguous memory is one block of the page allocator, rounded
# up to a power of two of pages; memory that is not contiguous is blocks of the
# page size asked for (driver 545 and later) or single pages (earlier drivers).

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting
needs_kernel_alloc

# What the rest of the machine does during a measurement moves free memory too:
# pages of pipes, sockets and page tables that no counter shows, and what waits for
# a grace period before it is free. Each shape is repeated until it takes at least
# 8 MiB, so this is 3 % of the least of them; the typical difference is 30 KiB.
TOLERANCE=$((256 * KIB))
PATIENCE=30

power_of_two() { # PAGES
	awk -v n="$1" 'BEGIN { for (p = 1; p < n; p *= 2); print p }'
}

whole_blocks() { # PAGES PAGE_SIZE
	[ "$(driver_major)" -ge 545 ] || set -- "$1" $PAGE
	block=$(($2 / PAGE))
	echo $((($1 + block - 1) / block * block))
}

# measure WHAT BYTES FREE-COMMAND COMMAND...: allocates by COMMAND, then frees, comparing.
measure() {
	what=$1
	bytes=$2
	shift 2

	# What the machine does of its own accord, while it recovers from a probe that was
	# removed for example, can move free memory for good. It doesn't do so thrice.
	for _ in 1 2 3; do
		if ! compare "$@"; then
			result not_ok "$what: allocated"
			diag "$* -> $reply"
			return
		fi
		[ "$moved" ] || break
	done
	is "$what: usage is $bytes bytes" "$held" "$bytes"
	within "$what: as much as usage is gone from free memory" "$gone" "$bytes" $TOLERANCE
	diag "MemFree fell by $memfree_fell"
	is "$what: usage is 0 after the free" "$held_after" 0
	within "$what: all came back to free memory" "$left" 0 $TOLERANCE
}

# Sets held, gone and memfree_fell as they are then, held_after and left after the free, and
# moved where free memory has not become what it should.
compare() { # FREE-COMMAND COMMAND...
	free_command=$1
	shift
	moved=
	before=$(unowned)
	free_before=$(memfree)
	if ! ask holder "$@"; then
		allocation=$reply
		ask holder "$free_command"
		reply=$allocation
		return 1
	fi
	held=$(system_memory leaf)
	settle_at "$bytes" $TOLERANCE unowned_since "$before" || moved=1
	gone=$settles_got
	memfree_fell=$((free_before - $(memfree)))
	ask holder "$free_command"
	held_after=$(system_memory leaf)
	settle_at 0 $TOLERANCE unowned_since "$before" || moved=1
	left=$settles_got
}

by_ioctl() { # KIB COUNT
	measure "ioctl, $1 KiB x $2" $(($(power_of_two $((($1 * KIB + PAGE - 1) / PAGE))) * PAGE * $2)) \
		"free all" alloc "${1}K" "$2"
}

contiguous() { # PAGES COUNT
	measure "contiguous, $1 pages x $2" $(($(power_of_two "$1") * PAGE * $2)) \
		"kernel free" kernel alloc "$1" $PAGE 1 "$2"
}

scattered() { # PAGES PAGE_SIZE COUNT
	measure "blocks of $(($2 / KIB)) KiB, $1 pages x $3" \
		$(($(whole_blocks "$1" "$2") * PAGE * $3)) \
		"kernel free" kernel alloc "$1" "$2" 0 "$3"
}

cgroup_leaf leaf
start_in leaf holder
ask holder open
ask holder kernel free

# The first calls of each kind fill the driver's and the kernel's caches.
ask holder alloc 4K 2048
ask holder free all
ask holder kernel alloc 1024 $PAGE 0 8
ask holder kernel free

by_ioctl 4 2048
by_ioctl 8 1024
by_ioctl 12 512
by_ioctl 20 256
by_ioctl 64 256
by_ioctl 100 128
by_ioctl 1024 16
by_ioctl 1028 8
by_ioctl 3072 4
by_ioctl 4096 8

contiguous 1 2048
contiguous 3 1024
contiguous 7 512
contiguous 512 8
contiguous 513 8
contiguous 1000 8

scattered 1 $PAGE 2048
scattered 3 $PAGE 1024
scattered 7 $PAGE 512
scattered 512 $PAGE 8
scattered 1000 $PAGE 8
scattered 4097 $PAGE 1
scattered 16384 $PAGE 1
scattered 16 65536 128
scattered 112 65536 32
scattered 1008 65536 4
scattered 512 2097152 4
scattered 4608 2097152 1

done_testing
