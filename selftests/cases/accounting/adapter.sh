#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the driver takes to start a GPU is taken by whoever opens the GPU first, and
# is the driver's own all the same: it is shown apart, and on nobody's account.
#
# The GPU is a function whose firmware never answers: the driver allocates, gives up
# and frees everything, so only the peak tells what there was in between.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it puts a GPU into the machine"
needs_accounting

window=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^rig\.window=//p')
[ -n "$window" ] || skip_all "the machine has no memory set aside for a GPU's BARs"

# The driver wants a file before it allocates; what is in it comes later.
firmware=/lib/firmware/nvidia/$(cat /sys/module/nvidia/version)
mkdir -p "$firmware"
dd if=/dev/zero of="$firmware/gsp_tu10x.bin" bs=64K count=1 2>/dev/null

# A driver in which the function that starts an adapter has another name.
unhooked_driver() {
	strings -t d "$MODULES/nvidia.ko" |
		awk '$2 ~ /^(__pfx_|__cfi_)?rm_init_adapter$/ { print $1 + length($2) - 1 }' >"$TEST_DIR/places"
	cp "$MODULES/nvidia.ko" "$TEST_DIR/nvidia.ko"
	while read -r at; do
		printf _ | dd of="$TEST_DIR/nvidia.ko" bs=1 seek="$at" conv=notrunc 2>/dev/null
	done <"$TEST_DIR/places"
	rmmod nvidia_uvm && rmmod nvidia && insmod "$TEST_DIR/nvidia.ko"
}

machine_with() { # [PARAMETER=VALUE]
	unload_driver && rmmod umacct_test_pci && load umacct_test_pci "$@" && load_driver
}

# On its way the driver (550) takes one of its spinlocks while it holds another. To lockdep they
# are one: it would say so, and look at nothing any more.
prove_locking() { # 0|1
	! is_debug_kernel || echo "$1" >/proc/sys/kernel/prove_locking
}

open_gpu() {
	prove_locking 0
	# shellcheck disable=SC2016 # expands in the inner shell
	in_cgroup leaf sh -c ': <"$0"' "$gpu" 2>/dev/null
	open_code=$?
	prove_locking 1
	return $open_code
}

check "a GPU is put in" machine_with window="$window"
# The peak is of all that umacct has seen; let it have seen nothing, not even what
# some drivers take when they find a GPU.
rmmod umacct
load umacct
gpu=$TEST_DIR/nvidia0
mknod -m 666 "$gpu" c 195 0
cgroup_leaf leaf
start_in leaf holder
ask holder alloc 1M

peak=$(status_field driver_peak)
held=$(status_field driver_usage)
before=$(unowned)
check "the GPU is opened in the cgroup, and doesn't start" fails open_gpu
diag "the driver's peak rose by $(($(status_field driver_peak) - peak))"
if [ "$(driver_major)" -lt 545 ] && [ "$(status_field driver_peak)" -eq "$peak" ]; then
	skip "the driver took memory for itself" "driver $(driver_major) gave up before it allocated"
else
	check "the driver took memory for itself" [ "$(status_field driver_peak)" -gt "$peak" ]
fi
# Its call and its file take some of the driver's heap.
within "the cgroup that opened the GPU has its own allocation and no more" "$(account leaf peak)" \
	"$(with_metadata $MIB 1 1)" $((64 * KIB))
is "starting a GPU in vain is no failure of the cgroup that opened it" "$(account leaf failures)" 0
is "the driver gave back what it took to start the GPU" "$(status_field driver_usage)" "$held"
settles "the memory of the start is free again, by MemFree" 0 $((512 * KIB + KEPT_FOR_DEBUGGING)) unowned_since "$before"
ask holder free all

tell holder exit
gone "$pid"

# Without that hook it is not known who brings a GPU up: who opens one looks like whoever
# comes by another of the driver's modules, and a limit is not to be got round by that.
check "a driver loads whose start of a GPU can't be hooked" unhooked_driver
is "a driver whose start of a GPU can't be hooked is followed" "$(status_field driver_state)" hooked
limit leaf --hard "$(with_metadata $MIB 1 1)"
held=$(status_field driver_usage)
start_in leaf holder
check "without that hook a limit binds" fails ask holder alloc 1M 2
is "without that hook the limit holds to the block" "$(system_memory leaf)" $MIB
ask holder free all
limit leaf --hard 4K
before=$(account leaf refusals)
open_gpu
if [ "$(driver_major)" -lt 545 ]; then
	skip "who opens a GPU is limited like everybody else" "driver $(driver_major) gave up before it allocated"
else
	check "who opens a GPU is limited like everybody else" [ "$(account leaf refusals)" -gt "$before" ]
fi
within "who opens a GPU without that hook gets no more than its limit" "$(account leaf peak)" \
	"$(with_metadata $MIB 1 1)" $((64 * KIB))
is "the driver gave back what it took to start the GPU without that hook" "$(status_field driver_usage)" "$held"
limit leaf --hard max
tell holder exit
gone "$pid"
rmmod nvidia && load nvidia && load nvidia-uvm
check "the GPU is taken out" machine_with

done_testing
