# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# The commands of docs/containers.md, as they are printed there, for the cases that have what these need. Each
# section of it that has commands is one case's: case tool/printed looks for that.

CONTAINERS_MD=$SELFTESTS/docs/containers.md

# printed_blocks: each line that is set in as code, behind its section and a bar. A block is commands, unless its
# first line is of a file or what a program says: a table's head, a key, a member, a setting, a message.
printed_blocks() {
	awk '
	/^## / { section = substr($0, 4) }
	/^ *$/ { blank = 1; next }
	/^    / && (blank || code) {
		line = substr($0, 5)
		if (!code)
			shown = line ~ /^ *(\[|"|[A-Za-z0-9_.-]+: ?$|[A-Z_]+=[^ ]*$|umacct-hook: )/
		code = 1
		if (!shown)
			print (section ? section : "the beginning") "|" line
		blank = 0
		next
	}
	{ code = blank = 0 }' "$CONTAINERS_MD"
}

# printed SECTION: its commands. What follows two spaces and a # is said about one.
printed() {
	printed_blocks | sed -n "s/^$1|//p" | sed 's/  *#.*//'
}

# try_printed SECTION: tries its commands. The case has why_not COMMAND, which prints why it can't be tried there, or
# nothing; and try_command COMMAND.
try_printed() {
	printed "$1" >"$TEST_DIR/printed"
	check "docs/containers.md has commands in its section $1" [ -s "$TEST_DIR/printed" ]
	while read -r printed_command <&8; do
		printed_why=$(why_not "$printed_command")
		if [ "$printed_why" ]; then
			skip "$1: $printed_command" "$printed_why"
		else
			check "as docs/containers.md has it: $printed_command" try_command "$printed_command"
		fi
	done 8<"$TEST_DIR/printed"
}

# Sets a part up. The devices are for as much memory as the machine has, so that this one has none of 40g, as commands
# have it: its 1g is made that.
set_up_as_printed() { # COMMAND
	eval "$1" >/dev/null || return 1
	[ ! -d "$WORLD/etc/cdi" ] ||
		sed 's/"1g"/"40g"/; s/=1g"/=40g"/' /etc/cdi/umacct-memory.json >"$WORLD/etc/cdi/umacct-memory.json"
}

# What each command that starts a container asks for.
PRINTED_LIMIT=$((40 * 1024 * MIB))

# starts_with_limit COMMAND REST: the command starts a container that has the limit that it asks for. What it leaves
# open ("...") is REST, by which the container's name is printed, and its program is rmtool -f /ctl/printed, a holder.
# The case has remove_printed.
starts_with_limit() {
	fifos printed
	[ "$1" != "${1% ...}" ] || return 1
	eval "${1% ...} $2" >"$TEST_DIR/printed.said" 2>&1 || {
		diag "$(cat "$TEST_DIR/printed.said")"
		return 1
	}
	ask printed alloc 1M
	printed_got=
	for printed_pid in $(processes_of /ctl/printed); do
		printed_cgroup=$(sed -n 's/^0:://p' "/proc/$printed_pid/cgroup" 2>/dev/null)
		case $(readlink "/proc/$printed_pid/exe") in
		*/rmtool) printed_got=$(target "$printed_cgroup" hard) ;;
		esac
	done
	remove_printed
	[ "$printed_got" = "$PRINTED_LIMIT" ] && return 0
	diag "its limit is '$printed_got', wanted $PRINTED_LIMIT; it said: $reply"
	return 1
}
