#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Memory runs out just when it is to be found out whose an allocation is. While nothing
# is asked for, the driver gets what it wants; where there is a limit anywhere, nothing
# goes by it.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it has functions of umacct fail"
needs_accounting
needs_kernel_alloc

# fail FUNCTION COUNT: the next calls of it find no memory.
fail() {
	ask breaker kernel fail "umacct:$1" "$2"
}

cgroup_leaf home
start_in home breaker
ask breaker open

# A client of the driver's would be its first: it makes that elsewhere.
first_allocation() { # HOLDER: in a cgroup that has no account yet
	start_in home "$1"
	ask "$1" open
	cgroup_leaf "$1"
	cgroup_add "$1" "$pid"
}

untracked=$(status_field untracked_count)
for function in umacct_account_create umacct_client_alloc; do
	first_allocation "free_$function"
	check "without a limit $function will fail once" fail $function 1
	check "no limit, $function fails: the driver allocates" ask "free_$function" alloc 4K
	is "$function: the allocation is counted as untracked" \
		$(($(status_field untracked_count) - untracked)) 1
	untracked=$(status_field untracked_count)
	ask "free_$function" free all
done

unattributed() {
	umacct --json | json_field unattributed_count
}

unattributed_before=$(unattributed)
cgroup_leaf limited
limit limited --hard 64K
for function in umacct_account_create umacct_client_alloc umacct_record_set_aside_locked; do
	first_allocation "tight_$function"
	check "with a limit somewhere $function will fail once" fail $function 1
	check "a limit somewhere, $function fails: it is refused" \
		fails ask "tight_$function" alloc 4K
	is "$function: the refusal is as if there were no memory" "$(reply_field status)" $NO_MEMORY
	check "$function: the next allocation is made" ask "tight_$function" alloc 4K
	is "$function: the next allocation is counted" "$(system_memory "tight_$function")" $PAGE
done
is "allocations that were refused for want of a record are counted" $(($(unattributed) - unattributed_before)) 3
is "no allocation went by unrecorded where there is a limit" "$(status_field untracked_count)" "$untracked"
fail umacct_client_alloc 0

done_testing
