#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Work for the machine is the driver's own, whichever task does it: starting a GPU, stopping it,
# suspend, resume and power. No limit of that task's cgroup refuses it, and neither does the reserve.
#
# NVIDIA's driver takes nothing for its suspend where there is no GPU: a module of the tests takes
# something in its place. The other functions need a GPU; a stand-in for the driver has them.

. "$(dirname "$0")/../../lib/helpers.sh"
needs_vm "it takes another module for the driver"
needs_accounting
needs_kernel_alloc

# Nobody in the cgroup gets a page, for two reasons.
cgroup_leaf leaf
refuse_all() {
	limit leaf --hard 0 && umacct reserve "$(available)"
}

set_power() { # suspend|resume
	# shellcheck disable=SC2016 # the inner shell expands it
	in_cgroup leaf sh -c 'echo "$0" >/proc/driver/nvidia/suspend' "$1"
}

suspend_allocates() {
	ask guard kernel inside nvidia:nv_uvm_suspend 16 "$PAGE" 0 && set_power suspend &&
		ask guard kernel outside
}

resume_allocates() {
	ask guard kernel inside nvidia:nv_uvm_resume 16 "$PAGE" 0 && set_power resume &&
		ask guard kernel outside
}

start guard rmtool
ask guard open
refuse_all
peak=$(status_field driver_peak)
check "the machine's suspend takes memory in a task that gets none" suspend_allocates
is "what suspend takes is the driver's own" "$(status_field driver_peak)" $((peak + 16 * PAGE))
check "the machine's resume takes memory in a task that gets none" resume_allocates
is "nothing of suspend and resume was refused" "$(account leaf refusals)" 0
check "what the same task asks for otherwise is refused" fails in_cgroup leaf \
	sh -c ': </dev/nvidiactl' 2>/dev/null
umacct reserve off
limit leaf --hard max
tell guard exit
gone "$pid"

unload_driver
stand_in_without nothing
check "the stand-in loads" insmod "$TEST_DIR/nvidia.ko"
refuse_all >/dev/null 2>&1
refused=$(account leaf refusals)

work() { # FUNCTION
	# shellcheck disable=SC2016 # the inner shell expands it
	in_cgroup leaf sh -c 'echo "$0" 16 >/sys/module/nvidia/parameters/work' "$1" 2>/dev/null
}

for function in rm_init_adapter nv_shutdown_adapter nv_set_system_power_state \
	rm_power_management rm_transition_dynamic_power nvidia_modeset_suspend \
	nvidia_modeset_resume; do
	check "what $function takes is not refused" work $function
done
is "nothing of the machine's work counts as refused" "$(account leaf refusals)" "$refused"
# shellcheck disable=SC2016 # the inner shell expands it
check "what the stand-in takes otherwise is refused" fails in_cgroup leaf \
	sh -c 'echo 16 >/sys/module/nvidia/parameters/take' 2>/dev/null
umacct reserve off
limit leaf --hard max >/dev/null 2>&1
rmmod nvidia
check "the driver loads after the stand-in" load_driver

done_testing
