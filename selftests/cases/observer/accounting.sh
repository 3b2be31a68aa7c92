#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# boot:
#
# Where the kernel lets no module in that isn't signed, BPF programs count in its place: the
# cases that say what is counted pass as they do with the module, to the byte, and none of
# what many processes do at once is lost. What takes the module says so.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/observer.sh"
needs_vm "it locks the kernel down"
needs_accounting
needs_uvm
needs_kernel_alloc
needs_observer

LOCKDOWN=/sys/kernel/security/lockdown
PINNED=/sys/fs/bpf/umacct
[ -e "$LOCKDOWN" ] || mount -t securityfs securityfs /sys/kernel/security

events_of_ours() {
	grep -c umacct /sys/kernel/tracing/kprobe_events
}

# All of what the hooks missed.
missed() {
	umacct --json | tr ',' '\n' | awk -F: '/"missed"/ { sum += $2 } END { print sum + 0 }'
}

without_module

is "as long as nobody asks, nothing is hooked" "$(events_of_ours)" 0
fails umacct ls 2>"$TEST_DIR/said"
check "without the module and the observer there is nobody to ask" \
	grep -q 'the umacct kernel module is not loaded' "$TEST_DIR/said"
check "the doctor says what counts without it" sh -c "umacct doctor | grep -q 'umacct setup observer on'"

check "no bpffs is mounted" fails grep -q ' /sys/fs/bpf bpf ' /proc/mounts
check "the observer is told to begin" umacct setup observer on
check "the observer has mounted a bpffs, for root alone" grep -q ' /sys/fs/bpf bpf .*mode=700' /proc/mounts
check "a command says since when the observer counts" sh -c "umacct ls 2>'$TEST_DIR/said'"
check "the time since when the observer counts is right to the minute" \
	grep -q 'only allocations since [0-9][0-9]:[0-9][0-9] are known' "$TEST_DIR/said"
check "JSON says that the observer answers" sh -c "umacct --json | grep -q '\"observer\" *: *true'"
check "the doctor warns that the observer counts" sh -c "umacct doctor | grep -q 'warn  observer: '"
cgroup_leaf limited
check "a limit is refused without the module" fails limit limited --hard 1M 2>"$TEST_DIR/said"
check "the refusal of a limit says what gets the module" grep -q modprobe "$TEST_DIR/said"
check "nobody but root may read what the observer has counted" fails runas $UNPRIVILEGED ls $PINNED
check "nobody but root may ask the tool what the observer has counted" fails runas $UNPRIVILEGED umacct ls
again accounting/managed
check "the observer ends when it is told" umacct setup observer off
is "the observer leaves no event behind" "$(events_of_ours)" 0
check "the observer leaves nothing in bpffs" [ ! -e $PINNED ]

echo integrity >$LOCKDOWN
check "the kernel is locked down" grep -q '\[integrity\]' $LOCKDOWN
check "a kernel that is locked down refuses the module" fails load umacct 2>/dev/null
check "a kernel that is locked down takes the observer" umacct setup observer on
again accounting/lifetimes
again accounting/attribution
again accounting/removed_cgroup
again accounting/shapes
# It takes all memory, for which the kernel of the arm64 machine may kill the reader of the events.
[ "$(uname -m)" != x86_64 ] || again limits/failed_requests

# Deeper than accounts are: what is there counts for the cgroup of the deepest level that has one.
nested() { # NAME LEVEL: of so many levels below the root, as the case's own is of the first
	nested_name=$1
	for _ in $(seq $(($2 - 2))); do nested_name=$nested_name/d; done
	echo "$nested_name"
}
# Each first allocation makes 63 accounts, and must find room for all of them in one call.
for branch in 1 2 3 4; do
	cgroup_leaf "$(nested deep$branch 64)"
	start_in "$(nested deep$branch 64)" "deep$branch"
done
for branch in 1 2 3 4; do
	ask deep$branch alloc 4K 3
	is "in branch $branch of 64 levels the first allocation counts on the deepest" \
		"$(account "$(nested deep$branch 64)" system)" $((3 * 4 * KIB))
	is "in branch $branch of 64 levels nothing is untracked" "$(status_field untracked_count)" 0
	tell deep$branch exit
done
deepest=$(nested deep 64)
cgroup_leaf "$deepest"
start_in "$deepest" above
ask above alloc 4K 3
accounts=$(status_field accounts)
for level in 65 128 193 250; do
	cgroup_leaf "$(nested deep $level)"
	start_in "$(nested deep $level)" below
	ask below alloc 1M 5
	is "what is allocated in a cgroup of level $level counts for the one of level 64, to the byte" \
		"$(account "$deepest" system)" $((5 * MIB + 3 * 4 * KIB))
	is "what is allocated in a cgroup of level $level makes no account" "$(status_field accounts)" "$accounts"
	tell below exit
	check "what was allocated in a cgroup of level $level is gone with its holder" \
		eventually account_is "$deepest" system $((3 * 4 * KIB))
done
tell above exit
check "nothing is left on the account of level 64" eventually account_is "$deepest" usage 0
is "nothing that was allocated so deep is untracked" "$(status_field untracked_count)" 0

# Many at once. What they hold, they say themselves.
set --
for name in a b c d/e d/f d/g/h; do
	[ "$name" = "${name%/*}" ] || cgroup_make "${name%/*}"
	cgroup_leaf "$name"
	set -- "$@" "$(cgroup_dir "$name")"
done
mkfifo "$TEST_DIR/go" "$TEST_DIR/told"
cgroup_leaf start

agrees() {
	umacct ls --all --json 2>/dev/null | tr -d ' ' | tr '{' '\n' |
		sed -n 's/.*"path":"\([^"]*\)".*"system_bytes":\([0-9]*\).*/\1 \2/p' >"$TEST_DIR/counted"
	awk -v root="$CGROUPS" '
	NR == FNR { held[substr($1, length(root) + 1)] = $2; next }
	{ counted[$1] = $2 }
	END {
		for (path in held)
			if (held[path] != counted[path] + 0) {
				printf "%s holds %d, the account has %d\n", path, held[path], counted[path]
				bad = 1
			}
		exit bad
	}' "$TEST_DIR/held" "$TEST_DIR/counted" >"$TEST_DIR/differences"
}

# storm_of SEED DIR...: adds to $operations what it did.
storm_of() {
	storm_seed=$1
	shift
	in_cgroup_exec start storm "$storm_seed" 20 5 8 "$@" <"$TEST_DIR/go" >"$TEST_DIR/told" &
	holders="$holders $!"
	exec 3>"$TEST_DIR/go" 4<"$TEST_DIR/told"
	: >"$TEST_DIR/held"
	while read -r word dir bytes <&4; do
		case $word in
		held) echo "$dir $bytes" >>"$TEST_DIR/held" ;;
		pause)
			pauses=$((pauses + 1))
			check "pause $pauses of a storm: each account is what its processes hold" \
				eventually agrees
			diag "$(cat "$TEST_DIR/differences")"
			: >"$TEST_DIR/held"
			echo go >&3
			;;
		end)
			diag "$dir $bytes"
			operations=$((operations + ${dir#operations=}))
			break
			;;
		esac
	done
	exec 3>&- 4<&-
}

# A storm goes on for a time, and a machine with other work does less in it.
pauses=0
operations=0
for seed in 1 2 3 4 5 6 7 8; do
	[ "$operations" -ge 20000 ] || storm_of $seed "$@"
done
check "the storm paused more than once" [ "$pauses" -gt 1 ]
check "the storm did 5,000 operations or more" [ "${operations:-0}" -ge 5000 ]
check "the storm left nothing on the account" eventually account_is "" usage 0
is "no allocation of the storm was lost" "$(status_field untracked_count)" 0
is "no free of the storm was lost" "$(status_field stale_count)" 0
is "no call of the storm was missed" "$(missed)" 0
check "what the observer has counted outlives every command" sh -c "umacct setup observer | grep -q '^on'"
umacct setup observer off >/dev/null

done_testing
