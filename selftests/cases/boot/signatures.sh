#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cell: amd64-6.12-550
# boot:
#
# A kernel that takes signed modules only, as with Secure Boot: an umacct that nobody signed
# does not load, and the doctor says why, and what to do.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it lets no unsigned module in until the next boot"
needs_accounting
ENFORCE=/sys/module/module/parameters/sig_enforce
[ -e $ENFORCE ] || skip_all "a kernel without signatures of modules"

INSTALLED=/lib/modules/$(uname -r)
mkdir -p "$INSTALLED/updates"
cp "$MODULES/umacct.ko" "$INSTALLED/updates/"
echo updates/umacct.ko: >"$INSTALLED/modules.dep"

doctor_says() { # TEXT
	umacct doctor -v | grep -A 2 ' signature: ' | tr '\n' ' ' >"$TEST_DIR/said"
	grep -q "$1" "$TEST_DIR/said" || { diag "$(cat "$TEST_DIR/said")" && return 1; }
}

check "while the kernel asks for none, the doctor finds an unsigned module well" doctor_says '^ok .*unsigned (not required here)'
echo 1 >$ENFORCE
is "the kernel asks for signatures from now on" "$(cat $ENFORCE)" Y
check "the doctor warns that the unsigned module that is loaded won't load again" doctor_says '^warn .*will not load again'
rmmod umacct
load umacct 2>"$TEST_DIR/err"
check "an unsigned module doesn't load" [ ! -d /sys/module/umacct ]
check "the kernel says that the key is missing" grep -qi 'key' "$TEST_DIR/err"
check "the doctor names the file that is not signed" doctor_says "^warn .*$INSTALLED/updates/umacct.ko is not signed"
check "the doctor names the command that signs the file" doctor_says "dkms install --force umacct/[0-9.]* -k $(uname -r)"
printf 'a signature~Module signature appended~\n' >>"$INSTALLED/updates/umacct.ko"
insmod "$INSTALLED/updates/umacct.ko" 2>/dev/null
check "a module signed by nobody's key doesn't load" [ ! -d /sys/module/umacct ]
check "the doctor says what enrolls the key" doctor_says '^warn .*umacct setup secure-boot'

done_testing
