#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: nvml
# cell: amd64-6.12-550
#
# Programs that ask NVML are told what umacct knows, where NVML itself knows nothing: the memory
# as a view has it, and each process with what "umacct ps" says. NVML is a stand-in that answers
# as a GB10's does; the driver, the memory and the programs are real.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it unloads the module"
needs_accounting
command -v nvtop >/dev/null || skip_all "no programs that ask NVML"

LIMIT=$((256 * MIB))
HELD=$(with_metadata $((64 * MIB)) 16 1)
HELD_BY_TWO=$(with_metadata $((24 * MIB)) 24 1)
HELD_BY_THREE=$(with_metadata $((8 * MIB)) 8 1)
export LC_ALL=C.UTF-8
# As NVIDIA's, in a folder of its own.
export LD_LIBRARY_PATH="$SELFTESTS/nvml"

plain() { # [ARGUMENT]...
	python3 "$SELFTESTS/programs/nvml.py" "$@"
}

with_umacct() { # COMMAND...
	umacct run --nvml -- "$@"
}

answered() { # [CGROUP]
	if [ "${1-}" ]; then
		in_cgroup "$1" umacct run --nvml -- python3 "$SELFTESTS/programs/nvml.py"
	else
		with_umacct python3 "$SELFTESTS/programs/nvml.py"
	fi
}

processes() {
	grep -v '^memory'
}

memory() { # COLUMN: of total, free, used
	awk -v column="$1" '$1 == "memory" { print $(column + 1) }'
}

cgroup_make held
cgroup_leaf held/inner
cgroup_leaf other
start_in held/inner one
one=$pid
ask one alloc 4M 16
start_in other two
two=$pid
ask two alloc 1M 24

plain >"$TEST_DIR/plain"
is "NVML alone has no memory" "$(cat "$TEST_DIR/plain")" "memory Not Supported"

# --- processes ---------------------------------------------------------------

answered >"$TEST_DIR/answered"
umacct ps --json | plain ps >"$TEST_DIR/ps"
is "pynvml has the processes of umacct ps, and their bytes" \
	"$(processes <"$TEST_DIR/answered")" "$(cat "$TEST_DIR/ps")"
check "pynvml has the process that holds in one cgroup" grep -qx "$one $HELD" "$TEST_DIR/answered"
check "pynvml has each process with what it took" grep -qx "$two $HELD_BY_TWO" "$TEST_DIR/answered"
export STAND_IN_COMPUTE=$one,4242
is "a program gets the bytes of its own processes from NVML, and of strangers' none" \
	"$(answered | processes)" "$(printf '%s\n' "$one $HELD" "$two $HELD_BY_TWO" \
		"4242 None" | sort -n)"
unset STAND_IN_COMPUTE

with_umacct gpustat --json 2>"$TEST_DIR/err" | plain gpustat >"$TEST_DIR/gpustat"
is "gpustat has them as well, in whole MiB" "$(processes <"$TEST_DIR/gpustat")" \
	"$(awk -v mib=$MIB '{ print $1, int($2 / mib) * mib }' "$TEST_DIR/ps")"
diag "$(cat "$TEST_DIR/err")"

chown -R $UNPRIVILEGED "$(cgroup_dir held/inner)"
is "a tenant gets its own processes from NVML alone" \
	"$(in_cgroup held/inner runas $UNPRIVILEGED sh -c "XDG_RUNTIME_DIR=\$(mktemp -d) \
		umacct run --nvml python3 $SELFTESTS/programs/nvml.py" | processes)" "$one $HELD"

# A process that is the first of its pid namespace.
mkfifo -m 666 "$TEST_DIR/three.in" "$TEST_DIR/three.out"
in_cgroup_exec other unshare -pf rmtool -f "$TEST_DIR/three" &
holders="$holders $!"
ask three alloc 1M 8
inner=$(cat "/proc/$!/task/$!/children")
holders="$holders $inner"
inside() {
	nsenter --pid="/proc/${inner%% *}/ns/pid" env LD_LIBRARY_PATH=/run/umacct/nvml \
		python3 "$SELFTESTS/programs/nvml.py"
}
is "pids from NVML are those of the caller's namespace" "$(inside | processes)" "1 $HELD_BY_THREE"

# PyTorch asks NVML while it makes its out-of-memory error, and makes another one if that fails.
limit other --hard $((HELD_BY_TWO + HELD_BY_THREE + MIB)) >/dev/null
ask three alloc 4M
is "a program in a container is refused" "$(reply_field status)" $NO_MEMORY
inside >"$TEST_DIR/answered"
is "after a refusal NVML has the program's own pid and bytes" "$(processes <"$TEST_DIR/answered")" \
	"1 $HELD_BY_THREE"
check "after a refusal NVML has the memory" grep -qE '^memory [0-9]+ [0-9]+ [0-9]+$' "$TEST_DIR/answered"
limit other --hard max >/dev/null
tell three exit

# --- memory ------------------------------------------------------------------

total=$(in_cgroup other meminfo | awk '$1 == "sysinfo" { print $2 }')
is "the total from NVML is the machine's" "$(answered | memory 1)" "$total"
within "the free memory from NVML can be had" "$(answered | memory 2)" "$(status_field available)" \
	$((total / 50))
umacct view on
answered other >"$TEST_DIR/answered"
in_cgroup other meminfo >"$TEST_DIR/told"
within "with a view, free from NVML is the view's" "$(memory 2 <"$TEST_DIR/answered")" \
	"$(awk '$1 == "sysinfo" { print $3 }' "$TEST_DIR/told")" $((total / 50))
is "with a view, used from NVML is the rest" "$(memory 3 <"$TEST_DIR/answered")" \
	$((total - $(memory 2 <"$TEST_DIR/answered")))
limit held --hard $LIMIT >/dev/null
for view in on off; do
	umacct view $view
	is "view $view: within a limit, the total is the limit" \
		"$(answered held/inner | memory 1)" $LIMIT
	within "view $view: within a limit, free is what is left of it, to the page" \
		"$(answered held/inner | memory 2)" $((LIMIT - HELD)) $PAGE
	within "view $view: within a limit, used is what is held, to the page" \
		"$(answered held/inner | memory 3)" "$HELD" $PAGE
done
is "within a limit gpustat says the same as pynvml" "$(in_cgroup held/inner umacct run --nvml gpustat --json 2>/dev/null |
	plain gpustat | grep memory)" "memory $LIMIT $((64 * MIB))"

# --- a screen ----------------------------------------------------------------

cat >"$TEST_DIR/show" <<-END
	echo \$\$ >$(cgroup_dir held/inner)/cgroup.procs
	HOME=$TEST_DIR TERM=screen exec umacct run --nvml nvtop
END
tm() {
	tmux -u -L "umacct.$$" -f /dev/null "$@"
}
screen_has() { # PATTERN
	tm capture-pane -p -t 0 >"$TEST_DIR/screen"
	grep -qE -e "$1" "$TEST_DIR/screen"
}
tm new-session -d -x 160 -y 40 "sh $TEST_DIR/show 2>$TEST_DIR/nvtop"
check "nvtop shows the memory" eventually screen_has '64[.][0-9]+Mi/256[.]000Mi'
check "nvtop shows a process, with what it holds" eventually screen_has "$one .* 64MiB"
sed '/^ *$/d; s/^/# |/' "$TEST_DIR/screen" "$TEST_DIR/nvtop"
tm kill-server

# --- the whole machine -------------------------------------------------------

mkdir -p /etc/profile.d /var/lib
find /etc /var | sort >"$TEST_DIR/before"
check "NVML is set up for logins" umacct setup nvml
is "a login has NVML's answers, without a word" "$(env -u LD_LIBRARY_PATH sh -c "
	. /etc/profile.d/umacct-nvml.sh; python3 $SELFTESTS/programs/nvml.py" | processes)" \
	"$(umacct ps --json | plain ps)"
check "the doctor names who asks the driver without any library" sh -c \
	'umacct doctor | grep -q "as a static program does: rmtool"'
check "the setup of NVML is undone" umacct setup nvml --undo
find /etc /var | sort >"$TEST_DIR/after"
check "nothing is left of the setup of NVML" cmp -s "$TEST_DIR/before" "$TEST_DIR/after"
diff "$TEST_DIR/before" "$TEST_DIR/after" | sed 's/^/# /'

rmmod umacct
is "without the module NVML says what it says alone" "$(answered)" "memory Not Supported"
load umacct

done_testing
