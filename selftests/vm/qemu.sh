# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # load_machine sets what is not set here
#
# What all virtual machines share.

# A kernel that says one of these is not well, whatever else was found.
trouble='WARNING:|BUG:|Oops|Kernel panic|Call Trace:|soft lockup|blocked for more than|detected stalls|UBSAN:'

end_of_console() { # FILE
	{ grep -nE -B 2 -A 25 "$trouble" "$1" || tail -n 40 "$1"; } | head -n 80 | tr -d '\r'
}

# Until 8.1 QEMU could keep code that it translated while another processor was patching
# it. A breakpoint that is long gone is then met once more, and the kernel panics. With
# its processors on one thread it can't.
accelerator() {
	local version
	version=$("${qemu[0]}" --version | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
	if printf '%s\n' 8.1 "$version" | sort -CV; then
		echo tcg
	else
		echo tcg,thread=single
	fi
}
