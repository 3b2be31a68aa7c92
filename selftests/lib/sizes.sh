# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # helpers.sh uses and sets these
#
# What the driver keeps of what a client has: see "selftests/run sizes". Each of the functions makes
# so many of one thing and measures on the way.

TEST_DIR=$(mktemp -d)
# shellcheck source=/dev/null
. /selftests/lib/helpers.sh

COUNT=1000
FILES=10000
RANGES=400
LARGE=$((4 * MIB))
LARGES=100

# What the slab allocator holds, in bytes.
kept() {
	echo 2 >/proc/sys/vm/drop_caches
	settle_counters
	awk '$1 == "Slab:" { print $2 * 1024 }' /proc/meminfo
}

# measure H COMMAND: sets rise, of what is kept, by what H does.
measure() {
	measured=$(kept)
	ask "$@" || echo "# $*: $reply"
	rise=$(($(kept) - measured))
}

# begin PROGRAM: another one, that no other has the pipes of.
begin() {
	begun=$((${begun:-0} + 1))
	h=holder$begun
	start "$h" "$1"
}

end() {
	tell "$h" exit
	gone "$pid"
}

# Of two measurements two unknowns.
objects() {
	begin rmtool
	ask "$h" open
	measure "$h" alloc "$PAGE" $COUNT
	both=$((rise / COUNT))
	measure "$h" alloc $LARGE $LARGES
	page=$(((rise - both * LARGES) / (LARGES * (LARGE / PAGE - 1))))
	measure "$h" events $COUNT
	resource=$((rise / COUNT))
	object=$((both - page))
	end
}

# What an open file of something else takes is the kernel's, which charges it.
files() {
	begin uvmtool
	measure "$h" nulls $FILES
	measure "$h" nulls $FILES
	null=$((rise / FILES))
	measure "$h" files $FILES
	file=$((rise / FILES - null))
	end
	begin rmtool
	measure "$h" files $FILES
	measure "$h" files $FILES
	control_file=$((rise / FILES - null))
	end
}

clients() {
	begin rmtool
	measure "$h" clients $COUNT
	client=$((rise / COUNT - null - control_file))
	end
}

spaces() {
	begin uvmtool
	ask "$h" open
	measure "$h" spaces 100
	va_space=$((rise / 100 - file))
	measure "$h" groups $((COUNT * 100))
	group=$((rise / (COUNT * 100)))
	ask "$h" map $((COUNT * 100 * PAGE))
	measure "$h" assign $((COUNT * 100))
	assigned=$((rise / (COUNT * 100)))
	end
}

ranges() {
	begin uvmtool
	ask "$h" open
	measure "$h" external $((64 * KIB)) $COUNT
	external=$((rise / COUNT))
	measure "$h" pool "$PAGE" $COUNT
	pool=$((rise / COUNT))
	end
	begin uvmtool
	ask "$h" open
	ask "$h" mm
	measure "$h" map $((2 * MIB)) $RANGES
	managed=$((rise / RANGES))
	measure "$h" touch $((2 * MIB * RANGES)) $((2 * MIB))
	block=$((rise / RANGES))
	end
}

ulimit -n 100000
for pass in first second; do
	for each in objects files clients spaces ranges; do
		$each
	done
	echo "$pass: page $page, object $object, resource $resource, client $client, control_file $control_file, file $file," \
		"va_space $va_space, group $group, assigned $assigned, external $external," \
		"pool $pool, managed $managed, block $block"
done
