# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# shellcheck disable=SC2034 # who sources this uses it
#
# What the head of a case says of the machine that it needs:
#
#   # boot: [PARAMETERS] one of its own, with nothing left of others; booted with those
#   # image: NAME        one that has what vm/images/NAME.sh says; cases with the same image
#                        share it
#   # clock: instructions  one whose clock goes by a nanosecond for each instruction that it
#                        executes, however busy its host is; cases with it share it
#   # cell: GLOB,...     it runs in these cells alone: what is the same on every kernel and
#                        driver, as most of the tool is, takes its time but once
#   # long: yes          it takes its time: "make test-long" runs it, or a run that names it with --long
#   # long: also         every day, and in "make test-long" once more: with CASE_LONG it does more

# read_head FILE: sets head_boot, head_image, head_clock, head_cell and head_long, and
# head_machine: the machine's name, empty for that of most cases.
read_head() {
	head_boot='' head_image='' head_clock='' head_cell='' head_long='' head_machine=''
	while read -r head_mark head_word head_value; do
		case $head_mark$head_word in
		'#boot:') head_boot=$head_value head_machine=own:${1##*/cases/} ;;
		'#image:') head_image=$head_value head_machine=image:$head_value ;;
		'#clock:') head_clock=$head_value head_machine=clock:$head_value ;;
		'#cell:') head_cell=$head_value ;;
		'#long:') head_long=$head_value ;;
		'#'*) ;;
		*) break ;;
		esac
	done <"$1"
}

# is_of_list LONG: the case whose head was read is among those that take long ("yes"), or those of
# every day ("").
is_of_list() {
	[ "$head_long" = "$1" ] || [ "$head_long" = also ]
}

# is_one_of NAME GLOBS: it matches one of those between commas, and none that has a "!" before it.
is_one_of() {
	one_of_globs=$2,
	one_of_answer=1
	while [ "$one_of_globs" ]; do
		one_of_glob=${one_of_globs%%,*}
		# shellcheck disable=SC2254 # they are meant as globs
		case $1 in
		${one_of_glob#!})
			[ "$one_of_glob" = "${one_of_glob#!}" ] || return 1
			one_of_answer=0
			;;
		esac
		one_of_globs=${one_of_globs#*,}
	done
	return $one_of_answer
}

# is_case FILE GLOBS: the case's name is one of them, as "limits/hard_limit" is of "limits/*".
is_case() {
	is_case_name=${1##*/cases/}
	is_one_of "${is_case_name%.sh}" "$2"
}
