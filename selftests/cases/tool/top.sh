#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-*,arm64-6.12-16k-*
#
# top, as somebody sees it who sits at a terminal: what is on the screen is what the
# module says, keys do what they say, and the terminal is as it was in the end.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it unloads the module"
needs_accounting
command -v tmux >/dev/null || skip_all "no tmux"

export LC_ALL=C.UTF-8
tree=$(cgroup_path tree)

tm() {
	tmux -u -L "umacct.$$" -f "$TEST_DIR/tmux.conf" "$@"
}

screen() {
	tm capture-pane -p -t 0
}

press() { # KEY...
	tm send-keys -t 0 "$@"
}

# Letter for letter, where a word could be a key's name.
type_text() { # TEXT
	tm send-keys -t 0 -l "$1"
}

screen_has() { # PATTERN
	screen | grep -qE -e "$1"
}

screen_lacks() { # PATTERN
	! screen_has "$1"
}

shows() { # DESCRIPTION PATTERN
	check "$1" eventually screen_has "$2"
	screen_has "$2" || show_screen
}

hides() { # DESCRIPTION PATTERN
	check "$1" eventually screen_lacks "$2"
	screen_lacks "$2" || show_screen
}

show_screen() {
	screen | sed '/^ *$/d; s/^/# |/'
}

# The first is above the second.
in_order() { # PATTERN PATTERN
	screen | awk -v a="$1" -v b="$2" '
		$0 ~ a && !at_a { at_a = NR }
		$0 ~ b && !at_b { at_b = NR }
		END { exit !(at_a && at_b && at_a < at_b) }'
}

# A command line in the terminal's shell; ended() takes its exit code.
start_line() { # WORDS
	type_text "clear; $*; echo \"code=\$?\""
	eventually screen_has 'clear; '
	press Enter
	eventually screen_lacks 'clear; '
}

hard() { # NAME
	umacct limit --json "$(cgroup_path "$1")" | json_field hard
}

hard_is() { # NAME VALUE
	[ "$(hard "$1")" = "$2" ]
}

# As the screen has it, for a pattern: the usage of COUNT blocks of 4 MiB, of CLIENTS clients.
blocks() { # COUNT [CLIENTS]
	in_mib "$(with_metadata $(($1 * 4 * MIB)) "$1" "${2:-1}")" | sed 's/[.]/\\./'
}

# TOTAL, which has what the program takes besides.
any='[0-9.]+ [KMG]iB'

echo "set -g default-terminal screen" >"$TEST_DIR/tmux.conf"
cgroup_make tree
cgroup_leaf tree/held
cgroup_leaf tree/other
start_in tree/held held
start_in tree/other other
ask held open
ask other open
ask held alloc 4M 4
ask other alloc 4M 2

check "top has a terminal of 100 by 30" tm new-session -d -x 100 -y 30 sh

start_line "stty -g >$TEST_DIR/tty.before; umacct top $tree -d 0.25"

# --- figures -------------------------------------------------------------------

shows "a cgroup with its usage, limit and peak" "held +$any +$(blocks 4) +max +$(blocks 4)"
shows "another cgroup with its usage, limit and peak" "other +$any +$(blocks 2) +max +$(blocks 2)"
shows "the cgroup above both has their sum" "tree +$any +$(blocks 6 2) +max +$(blocks 6 2)"
# With pages of 16 KiB a cgroup that holds next to nothing has a megabyte.
shows "memory.current is on the screen" "held +$any +$(blocks 4) +max +$(blocks 4) .* B/s +([0-9.]+ KiB|0 B|[0-9]\.[0-9]+ MiB) "
shows "the machine's total" \
	"of $(awk '$1 == "MemTotal:" { printf "%.2f GiB", $2 / 1048576 }' /proc/meminfo)"
# Of the whole machine: who loaded nvidia-uvm has a client, too.
shows "the machine's uncharged memory" \
	"uncharged $(in_mib "$(umacct --json | json_field uncharged)" | sed 's/[.]/\\./')"
shows "that there is no reserve is on the screen" 'reserve off'
shows "a bar of the memory is on the screen" 'Memory \[.*█.*\]'
shows "a line of history is on the screen" 'held .*[█▇]'
show_screen
ask held alloc 4M 4
shows "usage on the screen follows" "held +$any +$(blocks 8)"
shows "usage that doesn't change is steady on the screen" 'held .* 0 B/s'
check "a reserve is set beside top" umacct reserve 1M
shows "the reserve is on the screen" 'reserve 1\.00 MiB'
umacct reserve off
ask held free 0
ask held free 1
shows "what is freed leaves usage, not peak" "held +$any +$(blocks 6) +max +$(blocks 8)"

# --- keys ----------------------------------------------------------------------

press Home Down l
shows "l asks for the limit of the chosen cgroup" "hard limit of $tree/held \\(now max\\): _"
type_text 4x
press Enter
shows "what is no size is said" "'4x' is not a size"
press C-u
hard=$(with_metadata $((32 * MIB)) 8 1)
type_text "$hard"
press Enter
shows "a size is confirmed first" "set the hard limit of $tree/held to $(blocks 8)\\? y/n"
press n
shows "a size that isn't confirmed is not set" 'nothing was changed'
is "a size that isn't confirmed is truly not set" "$(hard tree/held)" null
press l
type_text "$hard"
press Enter
shows "a size is asked to be confirmed again" 'y/n'
press y
check "a size that is confirmed is set" eventually hard_is tree/held "$hard"
shows "the screen says that the size is set" "$tree/held: hard limit max -> $(blocks 8)"
shows "the row has the limit that is set" "held +$any +$(blocks 6) +$(blocks 8)"
show_screen
ask held fill 4M
is "the limit that top set holds" "$(system_memory tree/held)" $((32 * MIB))
shows "a refusal is told on the screen" "refused: $tree/held"
show_screen
press r
shows "r reverses the order" 'by total, reversed'
check "r reverses the order of siblings" eventually in_order '^ +other' '^ +held'
press r s n
shows "s chooses a column" 'by name'
press r
check "siblings are sorted by name, backwards" eventually in_order '^ +other' '^ +held'
press s u
check "siblings are sorted by usage again" eventually in_order '^ +held' '^ +other'
press /
type_text oth
shows "a filter is shown as it is typed" 'filter: oth_'
hides "a filter works at once" 'held'
press Enter
shows "what matches the filter stays" "other +$any +$(blocks 2)"
press Escape
shows "Esc ends the filter" "held +$any +$(blocks 8)"
press Home -
hides "a folded cgroup hides what is below it" 'held'
shows "a folded cgroup is marked" "▸ .*tree +$any +$(blocks 10 2)"
press +
shows "a cgroup that is unfolded shows what is below it" "held +$any +$(blocks 8)"
press p
shows "processes, with their pids" "$pid +rmtool +$any +$(blocks 2)"
shows "processes are shown with their cgroups" 'rmtool .*tree/held'
show_screen
press p Space
shows "pausing is said on the screen" 'PAUSED'
ask other alloc 4M
sleep 1
shows "what was on the screen stays during a pause" "other +$any +$(blocks 2)"
press Space
shows "what is new is shown when the pause ends" "other +$any +$(blocks 3)"
press h
shows "the help is on the screen" 'what memory.current does not see'
show_screen
press q
hides "any key leaves the help" 'what memory.current does not see'

# --- sizes -----------------------------------------------------------------------

tm resize-window -t 0 -x 80 -y 24
shows "80 columns have all figures" "held +$any +$(blocks 8) +$(blocks 8) +$(blocks 8) .* B/s [▁▂▃▄▅▆▇█]+"
show_screen
tm resize-window -t 0 -x 30 -y 8
shows "30 columns have the total" 'TOTAL'
show_screen
for size in "10 3" "3 2" "1 1"; do
	tm resize-window -t 0 -x "${size% *}" -y "${size#* }"
	sleep 0.5
done
tm resize-window -t 0 -x 160 -y 40
shows "even a terminal of a single character is survived, and 160 columns tell more" 'UNCHARGED'
shows "160 columns tell more of each row" "held +$any +$(blocks 8) .* $(blocks 8)"
show_screen

# --- what goes away ----------------------------------------------------------------

tell other exit
gone "$pid"
cgroup_remove "$tree/other"
shows "a removed cgroup is told on the screen" "cgroup removed: $tree/other"
hides "a removed cgroup is gone from the list" '^ *other'
eventually rmmod umacct
shows "top says that the module is not loaded" 'module is not loaded'
check "top lives without the module" eventually screen_has 'trying again'
load umacct
hides "top has the module again" 'not loaded'
ask held free all
ask held alloc 4M 3
# Its client is from before umacct was loaded anew.
held_now=$(in_mib "$(account tree/held usage)" | sed 's/[.]/\\./')
shows "figures are back with the module" "held +$any +$held_now"

# --- the end -------------------------------------------------------------------------

press q
shows "q ends top well" 'code=0'
hides "top leaves nothing on the screen behind" 'MEMORY.CURRENT'
start_line "stty -g >$TEST_DIR/tty.after"
shows "the shell goes on after q" 'code=0'
is "the terminal is as it was before top, after q" "$(cat "$TEST_DIR/tty.after")" "$(cat "$TEST_DIR/tty.before")"
start_line "umacct top -d 0.25"
shows "top starts again, for all cgroups" "held +$any +$held_now"
kill -TERM "$(pidof umacct)"
shows "SIGTERM ends top as it ends others" 'code=143'
start_line "stty -g >$TEST_DIR/tty.after"
shows "the shell goes on after SIGTERM" 'code=0'
is "the terminal is as it was before top, after SIGTERM" "$(cat "$TEST_DIR/tty.after")" "$(cat "$TEST_DIR/tty.before")"
start_line "umacct top -d 0.25"
shows "top starts once more" "held +$any +$held_now"
press C-c
check "Ctrl-C ends top" eventually fails pidof umacct
type_text 'echo "code=$?"'
press Enter
shows "Ctrl-C ends top with 130, as it ends others" 'code=130'
start_line "stty -g >$TEST_DIR/tty.after"
shows "the shell goes on after Ctrl-C" 'code=0'
is "the terminal is as it was before top, after Ctrl-C" "$(cat "$TEST_DIR/tty.after")" "$(cat "$TEST_DIR/tty.before")"

start_line "LC_ALL=C umacct top $tree"
shows "without UTF-8 the bar is ASCII" 'Memory \[\.+#* *\]'
show_screen
press q
shows "top without UTF-8 ends" 'code=0'
start_line "TERM=dumb umacct top $tree -n 2 -d 0.2"
shows "a dumb terminal gets batches" 'code=0'
# The code on the screen may have been that of the command before.
two_refreshes() {
	[ "$(screen | grep -cE "held +$any +$held_now")" -eq 2 ]
}
check "a dumb terminal gets batches of two refreshes" eventually two_refreshes
start_line "TERM=nonsense umacct top $tree"
shows "an unknown terminal is taken for an xterm, with the same figures" "held +$any +$held_now"
press q
shows "top ends on an unknown terminal" 'code=0'

# Without privilege: one sees one's own, and may change nothing.
chmod 711 "$TEST_DIR"
start_line "sh -c 'echo \$\$ >$(cgroup_dir tree/held)/cgroup.procs;" \
	"exec runas $UNPRIVILEGED umacct top'"
shows "a user sees its own cgroup" "held +$any +$held_now"
press Home Down
press l
type_text 1G
press Enter
press y
shows "a user may not limit its own cgroup" 'permission denied'
show_screen
is "what a user tried in top set nothing" "$(hard tree/held)" null
press q
shows "top ends for a user" 'code=0'
tm kill-server

# --- in a pipe -------------------------------------------------------------------------

umacct top "$tree" >"$TEST_DIR/out"
is "in a pipe, top writes one batch" "$(grep -cE "held +$any +$held_now" "$TEST_DIR/out")" 1
check "in a pipe, top writes plain text" fails grep -q "$(printf '\033')" "$TEST_DIR/out"
sed 's/^/# /' "$TEST_DIR/out"
umacct top "$tree" -P --batch -n 3 -d 0.1 >"$TEST_DIR/out"
is "in a pipe, top writes three processes when asked" "$(grep -c ' rmtool ' "$TEST_DIR/out")" 3
: >"$TEST_DIR/out"
umacct top "$tree" --json -n 2 -d 6 >"$TEST_DIR/out" &
reader=$!
eventually [ -s "$TEST_DIR/out" ]
ask held alloc 4M 6
wait $reader
is "as JSON, top writes a line for each refresh" "$(wc -l <"$TEST_DIR/out")" 2
last=$(tail -n 1 "$TEST_DIR/out" | sed 's/.*"path":"[^"]*held"/{/')
is "a line of JSON has the usage" "$(echo "$last" | json_field system)" $((36 * MIB))
within "a line of JSON has what changed in about 6 s, per second" \
	"$(echo "$last" | json_field rate)" $((4 * MIB)) $((2 * MIB))
# What goes away comes back, as a service that restarts does: by its name.
: >"$TEST_DIR/out"
umacct top "$tree" --batch -d 0.2 >"$TEST_DIR/out" 2>"$TEST_DIR/err" &
reader=$!
check "batches follow a target" eventually grep -q held "$TEST_DIR/out"
tell held exit
cgroup_remove "$tree"
check "batches say that the target is gone" eventually grep -q "^note: .*; trying again" "$TEST_DIR/err"
cgroup_make tree
cgroup_leaf tree/again
start_in tree/again again
ask again open
ask again alloc 4M 5
check "batches show the target when it is back" eventually grep -qE "again +$any +$(blocks 5)" "$TEST_DIR/out"
eventually rmmod umacct
check "without the module, batches say so" eventually grep -q 'not loaded; trying again' "$TEST_DIR/err"
load umacct
ask again alloc 4M 3
again_now=$(in_mib "$(account tree/again usage)" | sed 's/[.]/\\./')
check "batches go on with the module" eventually grep -qE "again +$any +$again_now" "$TEST_DIR/out"
check "batches go on until they are ended" kill $reader
wait $reader

umacct top --delay 0 2>/dev/null
is "a wrong option ends top with 2" $? 2
umacct top "$tree/nowhere" 2>/dev/null
is "a wrong target ends top with 1" $? 1

done_testing
