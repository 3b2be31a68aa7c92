#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# image: containers
# cell: amd64-6.12-*,arm64-6.12-16k-*
# boot:
#
# Containers have their names, and the programs in them what they hold, without the module too.

. "$(dirname "$0")/../../lib/helpers.sh"
. "$(dirname "$0")/../../lib/containers.sh"
. "$(dirname "$0")/../../lib/observer.sh"
needs_vm "it runs containers"
needs_accounting
needs_containers
needs_observer

without_module
check "the observer begins" umacct setup observer on
again containers/names
is "nothing that containers allocated is untracked" "$(status_field untracked_count)" 0
is "nothing that containers freed was missed" "$(status_field stale_count)" 0
umacct setup observer off >/dev/null

done_testing
