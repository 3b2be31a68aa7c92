# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# For cases in which the observer counts, and not the module.

# Unloads the module.
without_module() {
	OBSERVED=yes
	export OBSERVED
	rmmod umacct
	# Whoever asks for the module's family would have the kernel start modprobe, and where a case takes
	# all memory, the kernel would kill for that.
	echo >/proc/sys/kernel/modprobe
}

# again CASE: its checks, as checks of this one.
again() {
	sh "$SELFTESTS/cases/$1.sh" >"$TEST_DIR/again" 2>&1
	again_code=$?
	while read -r again_word again_rest; do
		case $again_word in
		ok | not)
			again_rest=${again_rest#*- }
			case $again_word$again_rest in
			*'# SKIP'*) skip "$1: ${again_rest%% \# SKIP*}" "${again_rest##*\# SKIP }" ;;
			ok*) result ok "$1: $again_rest" ;;
			*) result not_ok "$1: $again_rest" ;;
			esac
			;;
		1..*) ;;
		*) diag "${again_word#'#'} $again_rest" ;;
		esac
	done <"$TEST_DIR/again"
	is "$1 ends well without the module" "$again_code" 0
}
