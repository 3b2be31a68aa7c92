# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh, load_cell and read_head set what is not set here
#
# Which machines the cases want in the cell.

# shellcheck source=/dev/null
. "$clone/selftests/lib/heads.sh"

# machines_of_cases GLOB [yes]: a line each: "MACHINE|IMAGE|CLOCK|PARAMETERS", as in their heads.
# With "yes" for those that take long alone; without for the others.
machines_of_cases() {
	local file name
	for file in "$clone"/selftests/cases/*.sh; do
		name=${file##*/}
		# shellcheck disable=SC2053 # the right side is a glob
		[[ ${name%.sh} == $1 ]] || continue
		read_head "$file"
		# shellcheck disable=SC2053
		[[ $cell == ${head_cell:-*} && $head_long == "${2-}" ]] || continue
		echo "$head_machine|$head_image|$head_clock|$head_boot"
	done | awk '!seen[$0]++'
}

# images_of_cases GLOB: a line each.
images_of_cases() {
	machines_of_cases "$1" | cut -d '|' -f 2 | sort -u | sed '/^$/d'
}
