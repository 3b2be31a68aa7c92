#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A hard limit is exact: the last block that fits is given, the next is refused
# before the driver takes it, and nothing else is disturbed.

. "$(dirname "$0")/../../lib/helpers.sh"
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
	# What the driver keeps of an object can be refused before its pages; "kernel" asks for pages alone.
	if [ "$1" = kernel ]; then
		is "$refused_what" "$(echo "$reply" | cut -d' ' -f1,3)" "refused status=$NO_MEMORY"
	else
		check "$refused_what" lacks_memory "$(reply_field status)"
	fi
}

# Less is left below the limit than a page takes with its metadata, which counts in pages near a limit.
is_full() {
	[ $(($(account held hard) - $(account held usage))) -lt $(($(with_metadata "$PAGE" 1 0) + PAGE)) ]
}

hard=$(with_metadata $((16 * MIB)) 4 1)
check "a limit of 16 MiB and their metadata is set" limit held --hard "$hard"
is "the limit reads back" "$(account held hard)" "$hard"
check "4 x 4 MiB fit below the limit, to the byte" ask holder alloc 4M 4
is "the account is full at the limit" "$(account held usage)" "$hard"
quiesce
before=$(unowned)
refused "at the limit 4 MiB more are refused" alloc 4M
refused "at the limit one page more is refused" alloc 4K
is "2 refusals are counted" "$(account held refusals)" 2
is "a refusal is no failure of the driver's" "$(account held failures)" 0
is "a refusal leaves usage as it was" "$(account held usage)" "$hard"
settles "the driver took nothing for what was refused" 0 $((256 * KIB)) unowned_since "$before"

check "the refused process frees one of its 4 MiB" ask holder free 0
limit held --hard "$(with_metadata $((16 * MIB)) $((3 + 4 * MIB / PAGE)) 1)"
check "after the free there is room for 4 MiB of pages" ask holder alloc 4K $((4 * MIB / PAGE))
ask holder fill "$PAGE"
refused "when the limit is filled page by page, there is no room for one more" alloc 4K
check "what is filled page by page is full to the page" is_full
check "of pages no more fit than that, and what their objects take less than is counted for them" \
	[ "$(system_memory held)" -le $((16 * MIB + 96 * KIB)) ]
check "a neighbour without a limit is not held" ask neighbour alloc 4M 8

ask holder free all
# As many blocks of each size as it takes, and one byte less.
limit held --hard $(($(with_metadata $((16 * MIB)) 4 1) - 1))
filled=0
for size in $((4 * MIB)) $MIB $((64 * KIB)) $PAGE; do
	ask holder fill "$size"
	filled=$((filled + $(reply_field count) * size))
done
check "with one byte less than 4 x 4 MiB take, three of them fit, and smaller blocks" \
	[ $filled -gt $((15 * MIB)) ]
check "what is filled in smaller blocks is full to the page" is_full
check "what is filled in smaller blocks is not above the limit" \
	[ "$(account held usage)" -le "$(account held hard)" ]
is "what was filled in blocks is all that the cgroup holds" "$(system_memory held)" $filled
ask holder free all

# What counts is what is taken, not what is asked for.
limit held --hard "$(with_metadata $((64 * KIB)) 4 1)"
ask holder fill 12K
is "of requests for 12 KiB, which take 16, 4 fit in 64" "$(reply_field count)" 4
ask holder free all
limit held --hard "$(with_metadata $((8 * MIB)) 1 1)"
check "8 MiB of pages fit that are not contiguous" ask holder kernel alloc $((8 * MIB / PAGE)) $PAGE 0
ask holder kernel free
refused "a page more than 8 MiB doesn't fit, though 8 MiB of it would" kernel alloc $((8 * MIB / PAGE + 1)) $PAGE 0
is "nothing of a request that doesn't fit stays" "$(system_memory held)" 0

# The driver asks again in smaller blocks, from 545 on: that is one refusal.
if [ "$(driver_major)" -ge 545 ]; then
	refusals=$(account held refusals)
	limit held --hard 1M
	refused "2 MiB are refused in blocks of any size" kernel retry 512 $((2 * MIB)) 0
	is "a request that is refused in blocks of any size is counted once" "$(account held refusals)" $((refusals + 1))
	refused "asked for again from the start, they are refused again" \
		kernel retry 512 $((2 * MIB)) 0
	is "a request that begins again is counted again" "$(account held refusals)" $((refusals + 2))
	refused "2 MiB are refused in one block, too" kernel alloc 512 $((2 * MIB)) 0
	check "a page fits between two refusals" ask holder alloc 4K
	refused "a request after a page that fit is refused in smaller blocks" kernel alloc 512 $((64 * 1024)) 0
	is "a request after a page that fit is another refusal" "$(account held refusals)" $((refusals + 4))
	ask holder free all
	# 3 MiB are 1,024 pages in blocks of 2 MiB, and 768 in smaller ones.
	events=$(account held local_hard_count)
	refused "3 MiB are refused, however they are rounded" kernel retry 768 $((2 * MIB)) 0
	is "3 MiB that are refused as 4 and as 3 MiB are one refusal" "$(account held refusals)" $((refusals + 5))
	is "3 MiB that are refused as 4 and as 3 MiB are one event" "$(account held local_hard_count)" $((events + 1))
	limit held --hard "$(with_metadata $((3 * MIB)) 1 1)"
	check "3 MiB fit that are refused as 4 MiB" ask holder kernel retry 768 $((2 * MIB)) 0
	is "a request that fit in the end is no refusal" "$(account held refusals)" $((refusals + 5))
	is "a request that fit in the end is no event" "$(account held local_hard_count)" $((events + 1))
	ask holder kernel free
fi

limit held --hard 0
refused "a limit of nothing refuses everything" alloc 4K
# What the driver needs for the first page of each 2 MiB is refused, too: a fault that isn't given
# that ends the program, and doesn't come again for ever.
if [ -c /dev/nvidia-uvm ]; then
	cgroup_leaf tourist
	start_in tourist tourist uvmtool
	ask tourist open
	ask tourist mm
	ask tourist map 8M
	ask tourist touch 4K 4K
	limit tourist --hard $(($(account tourist usage) + 1 * KIB))
	tell tourist touch 8M 2M
	gone "$pid"
	wait "$pid"
	is "where a limit has no room for the driver's metadata of a page, SIGBUS ends the program" $? \
		$((128 + 7))
else
	skip "a fault that needs metadata" "nvidia-uvm is not loaded"
fi

check "the limit is set to max" limit held --hard max
check "a limit of max refuses nothing" ask holder alloc 4M 8
within "the peak says how far usage went" "$(account held peak)" "$(with_metadata $((32 * MIB)) 8 1)" \
	$((64 * KIB))

done_testing
