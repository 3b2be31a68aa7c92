#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# umacct is unloaded and loaded all the time while processes take memory and let it go in
# every way, with limits and charging: by direct calls and by kprobes in turn. Nobody
# crashes, nobody hangs, and at the end nothing is held and all memory is free again.
#
# SEED and SECONDS_OF_STORM say which storm, and how long it lasts.

. "$(dirname "$0")/../lib/helpers.sh"
needs_vm "it loads and unloads modules"
needs_accounting

: "${SEED:=1}" "${SECONDS_OF_STORM:=30}"
complaints=$(kernel_complaints)

set --
for name in a b c; do
	cgroup_leaf "$name"
	set -- "$@" "$(cgroup_dir "$name")"
done
quiesce
memory_before=$(unowned)

# It never pauses: there is nothing to compare with.
cgroup_leaf start
in_cgroup_exec start storm "$SEED" "$SECONDS_OF_STORM" 1000000 6 "$@" >"$TEST_DIR/told" &
storm=$!
holders="$holders $storm"

loads=0
while kill -0 "$storm" 2>/dev/null; do
	rmmod umacct || break
	load umacct direct_calls=$((loads % 2)) charge=$((loads / 2 % 2)) || break
	umacct limit "$(cgroup_path a)" --hard 512K >/dev/null
	loads=$((loads + 1))
done
wait "$storm"
is "the storm came to its end" $? 0
check "umacct is loaded" [ -d /sys/module/umacct ]
# The last load's own allocations may be recorded, none that is held.
read -r word figures <"$TEST_DIR/told"
diag "$figures loads=$loads"
is "it says so" "$word" end
is "the driver answered nothing but yes and that memory is short" "${figures##*oddities=}" 0
check "nothing is held" eventually status_is system 0
check "no record is left" eventually status_is records 0
for dir; do
	eventually rmdir "$dir"
done
settles "all memory is free again" 0 $((2 * MIB)) unowned_since "$memory_before"
is "the kernel has nothing to complain of" "$(kernel_complaints)" "$complaints"
rmmod umacct
load umacct

done_testing
