# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The tool itself knows what may come next. The words so far are split at spaces alone:
# names have '@', ':' and '=' in them, at which readline splits words too.
_umacct() {
	local line=${COMP_LINE:0:COMP_POINT} cur='' reply
	local -a words=()
	read -ra words <<<"$line"
	case $line in
	*[[:space:]]) words+=('') ;;
	esac
	cur=${words[${#words[@]} - 1]}
	COMPREPLY=()
	while IFS=$'\t' read -r reply _; do
		case $reply in
		:file) compopt -o default 2>/dev/null ;;
		":command $((${#words[@]} - 2))") mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
		:command*) compopt -o default 2>/dev/null ;;
		*=) compopt -o nospace 2>/dev/null && COMPREPLY+=("$reply") ;;
		*) COMPREPLY+=("$reply") ;;
		esac
	done < <("$1" complete -- "${words[@]:1}" 2>/dev/null)
	# Readline replaces what follows the last character that it splits words at.
	# An '@' it takes for the beginning of a word, though.
	local word=${cur%"${cur##*["$COMP_WORDBREAKS"]}"} i
	word=${word%@}
	for ((i = 0; i < ${#COMPREPLY[@]}; i++)); do
		COMPREPLY[i]=${COMPREPLY[i]#"$word"}
	done
}
complete -F _umacct umacct
