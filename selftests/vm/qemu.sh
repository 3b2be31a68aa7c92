# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # load_machine sets what is not set here
#
# What all virtual machines share.

# A kernel that says one of these is not well, whatever else was found.
trouble='WARNING:|BUG:|Oops|Kernel panic|Call Trace:|soft lockup|blocked for more than|detected stalls|UBSAN:|unreferenced object'

end_of_console() { # FILE
	{ grep -nE -B 2 -A 25 "$trouble" "$1" || tail -n 40 "$1"; } | sed -n 1,80p | tr -d '\r'
}

# Until 8.1 QEMU could keep code that it translated while another processor was patching
# it. A breakpoint that is long gone is then met once more, and the kernel panics. With
# its processors on one thread it can't.
runs_in_parallel() {
	local version
	version=$("${qemu[0]}" --version | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
	printf '%s\n' 8.1 "$version" | sort -CV
}

# prepare_qemu: sets qemu_tree, where a QEMU is whose processors run at once; empty where
# the machine's own does, and where the cell can do without. A kernel with PREEMPT_RT, or
# one that looks at every access to memory, can't; storms of hours are not to
# (UMACCT_PARALLEL). Debian 12's own kernel doesn't boot on QEMU 10's -cpu max.
prepare_qemu() {
	local name
	local -a packages=()
	# shellcheck disable=SC2034 # used by build
	qemu_tree=
	if runs_in_parallel; then
		return
	fi
	is_long_cell || [[ ${UMACCT_PARALLEL-} && $kernel_suite != bookworm ]] || return 0
	for name in qemu-system-{x86,arm,common,data:all} seabios:all; do
		[[ $name == *:* ]] || name+=:$host_arch
		packages+=("$(newest "$name" bookworm-backports)")
	done
	# shellcheck disable=SC2034
	qemu_tree=$(unpacked "${packages[@]}")
}

# use_qemu TREE: from now on that of prepare_qemu.
use_qemu() {
	[[ $1 ]] || return 0
	qemu=("$1/usr/bin/${qemu[0]}" -L "$1/usr/share/qemu" -L "$1/usr/share/seabios"
		-L /usr/lib/ipxe/qemu "${qemu[@]:1}")
}

accelerator() {
	if runs_in_parallel; then
		echo tcg
	else
		echo tcg,thread=single
	fi
}
