#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# top, as somebody sees it who sits at a terminal: what is on the screen is what the
# module says, keys do what they say, and the terminal is as it was in the end.

. "$(dirname "$0")/../lib/helpers.sh"
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
	press Enter
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

check "a terminal of 100 by 30" tm new-session -d -x 100 -y 30 sh

start_line "stty -g >$TEST_DIR/tty.before; umacct top $tree -d 0.25"

# --- figures -------------------------------------------------------------------

shows "a cgroup with its usage, limit and peak" "held +$(blocks 4) +max +$(blocks 4)"
shows "another" "other +$(blocks 2) +max +$(blocks 2)"
shows "what is above them has the sum" "tree +$(blocks 6 2) +max +$(blocks 6 2)"
# With pages of 16 KiB a cgroup that holds next to nothing has a megabyte.
shows "memory.current" "held +$(blocks 4) +max +$(blocks 4) .* B/s +([0-9.]+ KiB|0 B|[0-9]\.[0-9]+ MiB) "
shows "the machine's total" \
	"of $(awk '$1 == "MemTotal:" { printf "%.2f GiB", $2 / 1048576 }' /proc/meminfo)"
# Of the whole machine: who loaded nvidia-uvm has a client, too.
shows "the machine's uncharged memory" \
	"uncharged $(in_mib "$(umacct --json | json_field uncharged)" | sed 's/[.]/\\./')"
shows "no reserve" 'reserve off'
shows "a bar" 'Memory \[.*█.*\]'
shows "a line of history" 'held .*[█▇]'
show_screen
ask held alloc 4M 4
shows "usage follows" "held +$(blocks 8)"
shows "and is steady" 'held .* 0 B/s'
check "a reserve" umacct reserve 1M
shows "is shown" 'reserve 1\.00 MiB'
umacct reserve off
ask held free 0
ask held free 1
shows "what is freed leaves usage, not peak" "held +$(blocks 6) +max +$(blocks 8)"

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
shows "and not set when it isn't" 'nothing was changed'
is "truly" "$(hard tree/held)" null
press l
type_text "$hard"
press Enter
shows "asked again" 'y/n'
press y
check "and set when it is" eventually hard_is tree/held "$hard"
shows "as the screen says" "$tree/held: hard limit max -> $(blocks 8)"
shows "in the row too" "held +$(blocks 6) +$(blocks 8)"
show_screen
ask held fill 4M
is "the limit holds" "$(system_memory tree/held)" $((32 * MIB))
shows "a refusal is told" "refused: $tree/held"
show_screen
press r
shows "r reverses the order" 'by usage, reversed'
check "of siblings" eventually in_order '^ +other' '^ +held'
press r s n
shows "s chooses a column" 'by name'
press r
check "names backwards" eventually in_order '^ +other' '^ +held'
press s u
check "usage again" eventually in_order '^ +held' '^ +other'
press /
type_text oth
shows "a filter is shown as it is typed" 'filter: oth_'
hides "and works at once" 'held'
press Enter
shows "what matches stays" "other +$(blocks 2)"
press Escape
shows "Esc ends it" "held +$(blocks 8)"
press Home -
hides "a folded cgroup hides what is below it" 'held'
shows "and is marked" "▸ .*tree +$(blocks 10 2)"
press +
shows "unfolded it shows it" "held +$(blocks 8)"
press p
shows "processes, with their pids" "$pid +rmtool +$(blocks 2)"
shows "and their cgroups" 'rmtool .*tree/held'
show_screen
press p Space
shows "pausing is said" 'PAUSED'
ask other alloc 4M
sleep 1
shows "and what was there stays" "other +$(blocks 2)"
press Space
shows "until it goes on" "other +$(blocks 3)"
press h
shows "help" 'the blind spot'
show_screen
press q
hides "any key leaves it" 'the blind spot'

# --- sizes -----------------------------------------------------------------------

tm resize-window -t 0 -x 80 -y 24
shows "80 columns have all of it" "held +$(blocks 8) +$(blocks 8) +$(blocks 8) .* (B|KiB|MiB) [▁▂▃▄▅▆▇█]+"
show_screen
tm resize-window -t 0 -x 30 -y 8
shows "30 have usage" 'USAGE'
show_screen
for size in "10 3" "3 2" "1 1"; do
	tm resize-window -t 0 -x "${size% *}" -y "${size#* }"
	sleep 0.5
done
tm resize-window -t 0 -x 160 -y 40
shows "even a single character is survived, and 160 columns tell more" 'UNCHARGED'
shows "of each row" "held +$(blocks 8) .* $(blocks 8)"
show_screen

# --- what goes away ----------------------------------------------------------------

tell other exit
gone "$pid"
cgroup_remove "$tree/other"
shows "a removed cgroup is told" "cgroup removed: $tree/other"
hides "and is gone from the list" '^ *other'
rmmod umacct
shows "without the module it says so" 'module is not loaded'
check "and lives" eventually screen_has 'trying again'
load umacct
hides "with the module" 'not loaded'
ask held free all
ask held alloc 4M 3
# Its client is from before umacct was loaded anew.
held_now=$(blocks 3 0)
shows "figures are back" "held +$held_now"

# --- the end -------------------------------------------------------------------------

press q
shows "q ends it well" 'code=0'
hides "and leaves nothing behind" 'MEMORY.CURRENT'
start_line "stty -g >$TEST_DIR/tty.after"
shows "the shell goes on" 'code=0'
is "the terminal is as it was" "$(cat "$TEST_DIR/tty.after")" "$(cat "$TEST_DIR/tty.before")"
start_line "umacct top -d 0.25"
shows "it starts again, for all cgroups" "held +$held_now"
kill -TERM "$(pidof umacct)"
shows "SIGTERM ends it as it ends others" 'code=143'
start_line "stty -g >$TEST_DIR/tty.after"
shows "the shell goes on" 'code=0'
is "the terminal is as it was" "$(cat "$TEST_DIR/tty.after")" "$(cat "$TEST_DIR/tty.before")"
start_line "umacct top -d 0.25"
shows "it starts once more" "held +$held_now"
press C-c
check "Ctrl-C ends it" eventually fails pidof umacct
type_text 'echo "code=$?"'
press Enter
shows "as it ends others" 'code=130'
start_line "stty -g >$TEST_DIR/tty.after"
shows "the shell goes on" 'code=0'
is "the terminal is as it was" "$(cat "$TEST_DIR/tty.after")" "$(cat "$TEST_DIR/tty.before")"

start_line "LC_ALL=C umacct top $tree"
shows "without UTF-8 the bar is ASCII" 'Memory \[\.+#* *\]'
show_screen
press q
shows "it ends" 'code=0'
start_line "TERM=dumb umacct top $tree -n 2 -d 0.2"
shows "a dumb terminal gets batches" 'code=0'
# The code on the screen may have been that of the command before.
two_refreshes() {
	[ "$(screen | grep -cE "held +$held_now")" -eq 2 ]
}
check "of two refreshes" eventually two_refreshes
start_line "TERM=nonsense umacct top $tree -n 1"
shows "and so does an unknown one" 'code=0'
shows "with the same figures" "held +$held_now"

# Without privilege: one sees one's own, and may change nothing.
chmod 711 "$TEST_DIR"
start_line "sh -c 'echo \$\$ >$(cgroup_dir tree/held)/cgroup.procs;" \
	"exec runas $UNPRIVILEGED umacct top'"
shows "a user sees its own cgroup" "held +$held_now"
press Home Down
press l
type_text 1G
press Enter
press y
shows "and may not limit it" 'permission denied'
show_screen
is "nothing was set" "$(hard tree/held)" null
press q
shows "it ends" 'code=0'
tm kill-server

# --- in a pipe -------------------------------------------------------------------------

umacct top "$tree" >"$TEST_DIR/out"
is "in a pipe, one batch" "$(grep -cE "held +$held_now" "$TEST_DIR/out")" 1
check "of plain text" fails grep -q "$(printf '\033')" "$TEST_DIR/out"
sed 's/^/# /' "$TEST_DIR/out"
umacct top "$tree" -P --batch -n 3 -d 0.1 >"$TEST_DIR/out"
is "of processes, three when asked" "$(grep -c ' rmtool ' "$TEST_DIR/out")" 3
: >"$TEST_DIR/out"
umacct top "$tree" --json -n 2 -d 3 >"$TEST_DIR/out" &
reader=$!
eventually [ -s "$TEST_DIR/out" ]
ask held alloc 4M 6
wait $reader
is "as JSON, a line for each refresh" "$(wc -l <"$TEST_DIR/out")" 2
last=$(tail -n 1 "$TEST_DIR/out" | sed 's/.*"path":"[^"]*held"/{/')
is "with the usage" "$(echo "$last" | json_field system)" $((36 * MIB))
within "and what changed in about 3 s, per second" \
	"$(echo "$last" | json_field rate)" $((8 * MIB)) $((2 * MIB))
# What goes away comes back, as a service that restarts does: by its name.
: >"$TEST_DIR/out"
umacct top "$tree" --batch -d 0.2 >"$TEST_DIR/out" 2>"$TEST_DIR/err" &
reader=$!
check "a target is followed" eventually grep -q held "$TEST_DIR/out"
tell held exit
cgroup_remove "$tree"
check "one that is gone is told" eventually grep -q "^note: .*; trying again" "$TEST_DIR/err"
cgroup_make tree
cgroup_leaf tree/again
start_in tree/again again
ask again open
ask again alloc 4M 5
check "and shown when it is back" eventually grep -qE "again +$(blocks 5)" "$TEST_DIR/out"
rmmod umacct
check "without the module, batches say so" eventually grep -q 'not loaded; trying again' "$TEST_DIR/err"
load umacct
ask again alloc 4M 3
again_now=$(blocks 3 0)
check "and go on with it" eventually grep -qE "again +$again_now" "$TEST_DIR/out"
check "until they are ended" kill $reader
wait $reader

umacct top --delay 0 2>/dev/null
is "a wrong option" $? 2
umacct top "$tree/nowhere" 2>/dev/null
is "a wrong target" $? 1

done_testing
