#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The audit adds up to MemTotal, finds the driver's memory that no counter of the
# kernel's has, and tells a blind cgroup from a charged one by the kernel's own count.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it measures the whole machine's free memory"
needs_accounting

SIZE=$((64 * MIB))

audit() { # [OPTION...]
	umacct audit --json "$@" >"$TEST_DIR/audit"
}

# A part of the machine's statement, which comes first.
part() { # KEY
	json_field "$1" <"$TEST_DIR/audit"
}

# A figure of one cgroup's statement.
figure() { # NAME KEY
	sed 's/,"diff":.*//' "$TEST_DIR/audit" | tr '{' '\n' |
		grep "^\"path\":\"$(cgroup_path "$1")\"" -A 2 | head -n 3 | json_field "$2"
}

# Every part but the total, summed up.
parts_sum() {
	sed 's/,"diff":.*//; s/.*"machine":{\([^}]*\)}.*/\1/' "$TEST_DIR/audit" | tr ',' '\n' |
		awk -F: '$1 != "\"total_bytes\"" { sum += $2 } END { printf "%d\n", sum }'
}

cgroup_leaf blind
cgroup_leaf charged
start_in blind blind
start_in charged charged
ask blind open
ask charged open
charge charged on

# What earlier cases freed is on its way.
quiesce
settle_counters
check "a first audit is made" audit
is "the first audit's parts add up to its total" "$(parts_sum)" "$(part total)"
is "the audit's total is MemTotal" "$(part total)" \
	"$(awk '$1 == "MemTotal:" { print $2 * 1024 }' /proc/meminfo)"
# Read a moment later, when the audit's own process has given its memory back.
free_is_memfree() {
	umacct audit --json >"$TEST_DIR/audit" && moved=$(($(part free) - $(memfree))) &&
		[ "${moved#-}" -le $((8 * MIB)) ]
}
check "the audit's free is MemFree, when nothing else moves that" eventually free_is_memfree
check "what stays unexplained is at most 0.5 % of the machine" \
	[ "$(part unexplained)" -le $(($(part total) / 200)) ]
diag "$(part unexplained) of $(part total) bytes are unexplained"
bookkeeping() {
	echo $(($(part bookkeeping_slab) + $(part bookkeeping_vmalloc)))
}

# What memory.stat has of a cgroup besides whole pages.
kernel_objects() { # NAME
	cgroup_read "$1" memory.stat | awk '$1 ~ /^(slab|vmalloc)$/ { sum += $2 } END { print sum }'
}

unexplained=$(part unexplained)
bookkept=$(bookkeeping)
objects=$(kernel_objects charged)
uncharged=$(part driver_uncharged)
charged=$(part driver_charged)
cp "$TEST_DIR/audit" "$TEST_DIR/before"

check "a blind cgroup takes 64 MiB" ask blind alloc 1M 64
check "a charged cgroup takes 64 MiB" ask charged alloc 1M 64
check "a second audit is made, compared with the first" audit --diff "$TEST_DIR/before"
is "the second audit's parts add up" "$(parts_sum)" "$(part total)"
is "uncharged rose by 64 MiB" $(($(part driver_uncharged) - uncharged)) $SIZE
is "charged rose by 64 MiB" $(($(part driver_charged) - charged)) $SIZE
# Without them it would have risen by 128 MiB. What the kernel was about to free at the first audit is
# in that one alone: 4 MiB were seen.
unexplained_is_as_before() {
	audit --diff "$TEST_DIR/before" && moved=$(($(part unexplained) - unexplained)) &&
		[ "${moved#-}" -le $((8 * MIB)) ]
}
check "the unexplained is what it was in the first audit" eventually unexplained_is_as_before
diag "of the driver's bookkeeping: $(part bookkeeping_slab) in slab, $(part bookkeeping_vmalloc) in vmalloc"
# At least the address of each page; nobody is charged for that.
# Unless the driver has no cache for it, or the kernel has merged that with others.
has_own_cache() {
	grep -q '^nvidia_pte_cache' /proc/slabinfo || return 1
	cache=$(stat -L -c %i /sys/kernel/slab/nvidia_pte_cache)
	! stat -L -c '%i %n' /sys/kernel/slab/[!:]* | grep -v -e /nvidia_ -e /uvm_ | grep -q "^$cache "
}
if ! has_own_cache; then
	is "the audit says that the notes of each page can't be told apart" \
		"$(part bookkeeping_slab_partial)" true
else
	is "the notes of each page are in their own cache" "$(part bookkeeping_slab_partial)" false
	check "the driver's bookkeeping is known" \
		[ $(($(bookkeeping) - bookkept)) -ge $((2 * SIZE * 8 / PAGE)) ]
fi
check "the driver's bookkeeping is not charged to who is charged for its pages" \
	[ $(($(kernel_objects charged) - objects)) -lt $((SIZE * 8 / PAGE)) ]

counted=$(with_metadata $SIZE 64 1)
held=$(figure blind usage)
within "blind: the driver holds it, and its metadata" "$held" "$counted" $((32 * KIB))
is "blind: nothing of the driver's memory is seen" "$(figure blind unseen)" "$held"
is "blind: the verdict" "$(figure blind verdict)" blind
within "blind: memory.current is the kernel's" "$(figure blind memory_current)" \
	"$(cgroup_read blind memory.current)" $MIB
check "blind: memory.current is less than the driver's memory" \
	[ "$(figure blind memory_current)" -lt $SIZE ]
is "charged: all of it is seen once" "$(figure charged once)" $SIZE
is "charged: nothing twice" "$(figure charged twice)" 0
within "charged: the metadata alone is unseen" "$(figure charged unseen)" $((counted - SIZE)) $((32 * KIB))
is "charged: the verdict" "$(figure charged verdict)" charged
within "charged: the kernel's own count has it" "$(figure charged kernel_pages)" $SIZE $MIB
is "charged: memory.current is taken apart" "$(figure charged memory_current)" \
	$(($(figure charged anonymous) + $(figure charged file) + \
	$(figure charged kernel) + $(figure charged other)))

diff_part() { # KEY
	sed 's/.*"diff":{"machine"//' "$TEST_DIR/audit" | json_field "$1"
}
is "the difference: total" "$(diff_part total)" 0
is "the difference: uncharged" "$(diff_part driver_uncharged)" $SIZE
is "the difference: charged" "$(diff_part driver_charged)" $SIZE
umacct audit >"$TEST_DIR/text"
check "the audit's text has a bar" grep -q '\[.*U.*\]' "$TEST_DIR/text"
check "the audit's text has a verdict" grep -q "^$(cgroup_path blind) .* $(in_mib "$held") .* blind\$" "$TEST_DIR/text"

ask blind free all
check "an audit of one cgroup is made after its free" audit "$(cgroup_path blind)"
is "a cgroup that freed all holds nothing but its client" "$(figure blind usage)" "$(with_metadata 0 0 1)"
is "the verdict on a cgroup that freed all is none" "$(figure blind verdict)" none

# --- where MemAvailable went ---------------------------------------------------------

# A figure of what the difference says of it.
went() { # KEY
	sed 's/.*"available":{"change_bytes"/{"change_bytes"/' "$TEST_DIR/audit" | json_field "$1"
}

rest_of_available() {
	sed 's/.*"available":{"memory_available_bytes"/{"memory_available_bytes"/' "$TEST_DIR/audit" |
		json_field rest
}

settle_counters
# The kernel's counts are of one moment each, and this machine does more than one thing.
available_is_taken_apart() {
	umacct audit --json >"$TEST_DIR/audit" && rest=$(rest_of_available) &&
		[ "${rest#-}" -le "$MIB" ]
}
check "all of MemAvailable but 1 MiB is taken apart" eventually available_is_taken_apart
diag "$rest bytes of MemAvailable are not taken apart"
cp "$TEST_DIR/audit" "$TEST_DIR/before"
huge_before=$(cat /proc/sys/vm/nr_hugepages)
ask blind alloc 1M 96
check "a program locks memory of its own" ask charged lock 96M
dd if=/dev/zero of="$TEST_DIR/shared" bs=1M count=64 2>/dev/null
echo $((huge_before + 16)) >/proc/sys/vm/nr_hugepages
settle_counters
check "an audit is made with all kinds of memory taken" audit --diff "$TEST_DIR/before"
diag "MemAvailable: $(went change), $(went accounted_percent) % of it accounted for"
check "MemAvailable fell by what was taken" \
	[ "$(went change)" -le $((-(96 + 96 + 64) * MIB)) ]
nearly_all_is_accounted_for() {
	audit --diff "$TEST_DIR/before" &&
		awk -v percent="$(went accounted_percent)" 'BEGIN { exit percent < 99 }'
}
check "99 % of what MemAvailable fell by is accounted for" eventually nearly_all_is_accounted_for
is "driver memory has its part of what MemAvailable fell by" "$(went driver_uncharged)" $((96 * MIB))
within "programs' own memory has its part of what MemAvailable fell by" "$(went anonymous)" $((96 * MIB)) $((2 * MIB))
within "tmpfs has its part of what MemAvailable fell by" "$(went shared_memory)" $((64 * MIB)) $((2 * MIB))
is "huge pages have their part of what MemAvailable fell by" "$(went hugetlb)" "$((($(cat /proc/sys/vm/nr_hugepages) - huge_before) * 2 * MIB))"
umacct audit --diff "$TEST_DIR/before" >"$TEST_DIR/text"
check "the audit says in words what MemAvailable fell by" grep -q '^MemAvailable fell by .* % of that is accounted for' "$TEST_DIR/text"
check "the audit says in words what MemAvailable is made of" grep -q 'of free memory .* that the kernel keeps for itself' "$TEST_DIR/text"
echo "$huge_before" >/proc/sys/vm/nr_hugepages
rm "$TEST_DIR/shared"
ask charged unlock
ask blind free all

# What the kernel has for itself and can't give back, when others are done with theirs.
kernel_memory() {
	kernel_before=-1
	for _ in $(seq 40); do
		kernel_now=$(awk '/^(SUnreclaim|VmallocUsed):/ { sum += $2 } END { print sum * 1024 }' \
			/proc/meminfo)
		kernel_moved=$((kernel_now - kernel_before))
		[ "${kernel_moved#-}" -gt $((32 * KIB)) ] || break
		kernel_before=$kernel_now
		sleep 0.5
	done
	echo "$kernel_now"
}

pages=$((512 * MIB / PAGE))
before=$(kernel_memory)
check "the blind cgroup takes 512 MiB" ask blind alloc 2M 256
rose=$((($(kernel_memory) - before) / pages))
check "an audit is made beside 512 MiB" audit
noted=$(($(figure blind metadata) / pages))
diag "for each page the kernel's memory rose by $rose bytes; $noted, says the account"
# What the slab allocator had in blocks that were in use in part is besides.
check "the driver's bookkeeping in the account is no more than what the kernel's memory rose by, and a third" \
	[ "$noted" -le $((rose + rose / 3)) ]
if is_debug_kernel; then
	skip "the driver's bookkeeping in the account is not less than half of what the kernel's memory rose by" "KASAN's margins take more than the objects"
else
	check "the driver's bookkeeping in the account is not less than half of what the kernel's memory rose by" [ $((noted * 2)) -ge "$rose" ]
fi
ask blind free all

umacct audit --diff /dev/null 2>"$TEST_DIR/error"
is "an audit without one to compare with ends with exit code 1" $? 1
check "the refusal of an audit without one to compare with names the option" grep -q -- '--diff' "$TEST_DIR/error"
umacct audit /no/such/cgroup 2>/dev/null
is "an audit of no such cgroup ends with exit code 1" $? 1

done_testing
