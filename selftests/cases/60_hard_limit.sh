#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A hard limit is exact: the last block that fits is given, the next is refused
# before the driver takes it, and nothing else is disturbed.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting
needs_kernel_alloc

cgroup_leaf held
cgroup_leaf neighbour
start_in held holder
start_in neighbour neighbour
ask holder open

refused() { # DESCRIPTION COMMAND...
	refused_what=$1
	shift
	ask holder "$@"
	is "$refused_what" "$(echo "$reply" | cut -d' ' -f1,3)" "refused status=$NO_MEMORY"
}

hard=$(with_metadata $((16 * MIB)) 4 1)
check "a limit of 16 MiB and their metadata is set" limit held --hard "$hard"
is "and reads back" "$(account held hard)" "$hard"
check "4 x 4 MiB fit to the byte" ask holder alloc 4M 4
is "the account is full" "$(account held usage)" "$hard"
before=$(unowned)
refused "4 MiB more are refused" alloc 4M
refused "and so is one page" alloc 4K
is "with 2 refusals counted" "$(account held refusals)" 2
is "and no failure of the driver's" "$(account held failures)" 0
is "usage is what it was" "$(account held usage)" "$hard"
settles "the driver took nothing" 0 $((256 * KIB)) unowned_since "$before"

check "the refused process frees one" ask holder free 0
limit held --hard "$(with_metadata $((16 * MIB)) $((3 + 4 * MIB / PAGE)) 1)"
check "and has room for 4 MiB of pages again" ask holder alloc 4K $((4 * MIB / PAGE))
refused "not for one more" alloc 4K
is "to the block" "$(system_memory held)" $((16 * MIB))
check "a neighbour is not held" ask neighbour alloc 4M 8

ask holder free all
# As many blocks of each size as it takes, and one byte less.
limit held --hard $(($(with_metadata $((16 * MIB)) 4 1) - 1))
filled=0
objects=0
for size in $((4 * MIB)) $MIB $((64 * KIB)) $PAGE; do
	room=$(($(account held hard) - $(with_metadata $filled $objects 1)))
	count=$((room / $(with_metadata "$size" 1 0)))
	ask holder fill "$size"
	is "with one byte less than 4 x 4 MiB take, $count x $((size / KIB)) KiB" \
		"$(reply_field count)" "$count"
	filled=$((filled + count * size))
	objects=$((objects + count))
done
is "they are all that it holds" "$(system_memory held)" $filled
is "and usage is them and their metadata" "$(account held usage)" \
	"$(with_metadata $filled $objects 1)"
ask holder free all

# What counts is what is taken, not what is asked for.
limit held --hard "$(with_metadata $((64 * KIB)) 4 1)"
ask holder fill 12K
is "12 KiB take 16: 4 fit in 64" "$(reply_field count)" 4
ask holder free all
limit held --hard "$(with_metadata $((8 * MIB)) 1 1)"
check "8 MiB of pages fit" ask holder kernel alloc $((8 * MIB / PAGE)) $PAGE 0
ask holder kernel free
refused "a page more doesn't, though 8 MiB of it would" kernel alloc $((8 * MIB / PAGE + 1)) $PAGE 0
is "and none stays" "$(system_memory held)" 0

# The driver asks again in smaller blocks, from 545 on: that is one refusal.
if [ "$(driver_major)" -ge 545 ]; then
	refusals=$(account held refusals)
	limit held --hard 1M
	refused "2 MiB are refused in blocks of any size" kernel retry 512 $((2 * MIB)) 0
	is "and counted once" "$(account held refusals)" $((refusals + 1))
	refused "asked for again from the start, they are refused again" \
		kernel retry 512 $((2 * MIB)) 0
	is "and counted again" "$(account held refusals)" $((refusals + 2))
	refused "so they are in one block" kernel alloc 512 $((2 * MIB)) 0
	check "a page fits" ask holder alloc 4K
	refused "and what is asked for then, in smaller blocks" kernel alloc 512 $((64 * 1024)) 0
	is "is another refusal" "$(account held refusals)" $((refusals + 4))
	ask holder free all
fi

limit held --hard 0
refused "a limit of nothing refuses everything" alloc 4K
check "no limit" limit held --hard max
check "lifts it" ask holder alloc 4M 8
is "peak says how far it went" "$(account held peak)" "$(with_metadata $((32 * MIB)) 8 1)"

done_testing
