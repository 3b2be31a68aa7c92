# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh, load_cell and read_head set what is not set here
#
# Which machines the cases want in the cell.

# shellcheck source=/dev/null
. "$clone/selftests/lib/heads.sh"

# any_case GLOBS: is there one?
any_case() {
	local file
	for file in "$clone"/selftests/cases/*/*.sh; do
		! is_case "$file" "$1" || return 0
	done
	return 1
}

# machines_of_cases GLOBS [yes]: a line each: "MACHINE|IMAGE|CLOCK|PARAMETERS", as in their heads.
# With "yes" for those that take long alone; without for the others.
machines_of_cases() {
	local file
	for file in "$clone"/selftests/cases/*/*.sh; do
		is_case "$file" "$1" || continue
		read_head "$file"
		is_one_of "$cell" "${head_cell:-*}" || continue
		is_of_list "${2-}" || continue
		echo "$head_machine|$head_image|$head_clock|$head_boot"
	done | awk '!seen[$0]++'
}

# images_of_cases GLOBS: a line each.
images_of_cases() {
	machines_of_cases "$1" | cut -d '|' -f 2 | sort -u | sed '/^$/d'
}
