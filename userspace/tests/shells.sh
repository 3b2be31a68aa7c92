#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# shells.sh bash|zsh|fish COMPLETIONS: drives the shell's completion as a user would, with
# a umacct that knows a few words and tells how it was called.

set -euo pipefail
shell=$1
completions=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/bin" "$work/folder"
cat >"$work/bin/umacct" <<'END'
#!/bin/sh
if [ "$1" = complete ]; then
	[ "$2" = -- ] || exit
	shift 2
	case "$*" in
	*--diff\ *) echo :file; exit ;;
	"run --hard 1G -- "*) echo ":command 4"; exit ;;
	esac
	for last; do :; done
	for word in doctor vllm default/llm-0 default/llm-0/vllm user@1000.service /a/x:y /b \
		--throttle uncharged inherit view= view=on; do
		case $word in "$last"*) printf '%s\tsomething\n' "$word" ;; esac
	done
	exit
fi
echo "ran: $*"
END
chmod +x "$work/bin/umacct"
touch "$work/folder/before.json"
cd "$work/folder"
export PATH=$work/bin:$PATH
export HOME=$work TERM=xterm

# What is typed ("!" is the key that completes), and what runs then.
cat >"$work/typed" <<'END'
umacct doc!|ran: doctor
umacct show vl!|ran: show vllm
umacct show default/llm-0/!|ran: show default/llm-0/vllm
umacct limit user@1!--hard 1G|ran: limit user@1000.service --hard 1G
umacct --json ps /a/x:!|ran: --json ps /a/x:y
umacct limit --hard 1G vl!|ran: limit --hard 1G vllm
umacct limit vllm --thr!5ms|ran: limit vllm --throttle 5ms
umacct ls --sort unch!|ran: ls --sort uncharged
umacct charge vl!inh!|ran: charge vllm inherit
umacct set vllm vie!on|ran: set vllm view=on
umacct set vllm view=o!|ran: set vllm view=on
umacct audit --diff bef!|ran: audit --diff before.json
umacct run --hard 1G -- umac!x|ran: run --hard 1G -- umacct x
END

# Types at the shell's speed: it takes a tab that comes with more for text.
type_all() { # TENTHS-OF-A-SECOND
	local typed pause=$(($1 / 10)).$(($1 % 10))
	sleep "$pause"
	case $shell in
	bash) echo "source $completions/umacct.bash; PS1='> '" ;;
	zsh) echo "fpath=($completions \$fpath); autoload -Uz compinit; compinit -u -D; PS1='> '" ;;
	esac
	sleep "$pause"
	sleep "$pause"
	while IFS='|' read -r typed _; do
		for ((; ; )); do
			printf '%s' "${typed%%!*}"
			sleep "$pause"
			[[ $typed == *!* ]] || break
			printf '\t'
			sleep "$pause"
			typed=${typed#*!}
		done
		echo
		sleep "$pause"
	done <"$work/typed"
	echo exit
}

# typed_as_wanted TENTHS-OF-A-SECOND: whether all that was typed ran as it should.
typed_as_wanted() {
	local typed wanted ran failed=0
	type_all "$1" | timeout 300 script -qec "${start[$shell]}" /dev/null | tr -d '\r' >"$work/seen"
	exec 3< <(grep -o 'ran: .*' "$work/seen")
	while IFS='|' read -r typed wanted; do
		ran='no answer'
		read -r ran <&3 || true
		if [[ $ran == "$wanted" ]]; then
			echo "ok - $typed"
		else
			echo "not ok - $typed: got '$ran', wanted '$wanted'"
			failed=1
		fi
	done <"$work/typed"
	return $failed
}

declare -A start=([bash]='bash --norc --noprofile -i' [zsh]='zsh -f -i')
case $shell in
bash | zsh)
	# The slower, the surer: others may use the machine.
	typed_as_wanted 3 || typed_as_wanted 10 || typed_as_wanted 25
	;;
fish)
	failed=0
	while IFS='|' read -r typed wanted; do
		# The words to be completed are looked at one by one; the last is what counts.
		line=${typed%!*}
		line=${line//!/ }
		word=${line##* }
		[[ $typed != *inh!* ]] || line='umacct charge vllm inh' word=inh
		candidates=$(fish --no-config -c "source $completions/umacct.fish; complete -C '$line'" |
			cut -f 1)
		found=
		while read -r candidate; do
			[[ " $wanted " != *" $candidate"* || $candidate != "$word"* ]] || found=1
		done <<<"$candidates"
		if [[ $found ]]; then
			echo "ok - $line"
		else
			echo "not ok - $line: got '$candidates', wanted '$wanted'"
			failed=1
		fi
	done <"$work/typed"
	exit $failed
	;;
esac
