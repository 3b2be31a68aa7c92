# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # load_machine sets what is not set here
#
# What all virtual machines share.

# A kernel that says one of these is not well, whatever else was found.
trouble='WARNING:|BUG:|Oops|Kernel panic|Call Trace:|soft lockup|blocked for more than|detected stalls|UBSAN:|unreferenced object'

end_of_console() { # FILE
	{ grep -nE -B 2 -A 25 "$trouble" "$1" || tail -n 40 "$1"; } | sed -n 1,80p | tr -d '\r'
}

# Until 8.1 QEMU could keep code that it translated while another processor was patching
# it. A breakpoint that is long gone is then met once more, and the kernel panics. With
# its processors on one thread it can't.
runs_in_parallel() {
	local version
	version=$("${qemu[0]}" --version | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
	printf '%s\n' 8.1 "$version" | sort -CV
}

# prepare_qemu: sets qemu_tree, where a QEMU is whose processors run at once; empty where
# the machine's own does, and where the cell can do without. A kernel with PREEMPT_RT, or
# one that looks at every access to memory, can't; storms of hours are not to
# (UMACCT_PARALLEL). Debian 12's own kernel doesn't boot on QEMU 10's -cpu max.
prepare_qemu() {
	local name
	local -a packages=()
	# shellcheck disable=SC2034 # used by build
	qemu_tree=
	if runs_in_parallel; then
		return
	fi
	is_long_cell || [[ ${UMACCT_PARALLEL-} && $kernel_suite != bookworm ]] || return 0
	for name in qemu-system-{x86,arm,common,data:all} seabios:all; do
		[[ $name == *:* ]] || name+=:$host_arch
		packages+=("$(newest "$name" bookworm-backports)")
	done
	# shellcheck disable=SC2034
	qemu_tree=$(unpacked "${packages[@]}")
}

# use_qemu TREE: from now on that of prepare_qemu.
use_qemu() {
	[[ $1 ]] || return 0
	qemu=("$1/usr/bin/${qemu[0]}" -L "$1/usr/share/qemu" -L "$1/usr/share/seabios"
		-L /usr/lib/ipxe/qemu "${qemu[@]:1}")
}

# accelerate [KERNEL INITRD]: adds to qemu what the machine's code runs on. Where KERNEL comes
# up and goes down on the host's own processors, it is these (KVM), as a DGX Spark and most
# machines have it; else, and where none is named, they are emulated. UMACCT_KVM=no does
# without.
accelerate() {
	if [[ $# -gt 0 ]] && has_kvm && kvm_boots "$@"; then
		on_kvm
	elif runs_in_parallel; then
		qemu+=(-cpu "$cpu" -accel tcg)
	else
		qemu+=(-cpu "$cpu" -accel "tcg,thread=single")
	fi
}

has_kvm() {
	[[ $arch == "$host_arch" && -w /dev/kvm && ${UMACCT_KVM-} != no ]]
}

on_kvm() {
	qemu=(taskset -c "$(alike_processors)" "${qemu[@]}" -cpu "${cpu/#cortex-a76/max}" -accel kvm)
}

# kvm_boots KERNEL INITRD: there are hosts that have a KVM which can't run a kernel. It has to
# come up with both processors and to power off, in twenty seconds. The answer is kept until
# the host boots again.
kvm_boots() {
	local answer boot_id
	answer=$cache/kvm/$(sha256sum <<<"$*" | cut -c 1-12)
	boot_id=$(</proc/sys/kernel/random/boot_id)
	with_lock kvm ask_kvm "$@"
	grep -qxF "$boot_id boots" "$answer"
}

ask_kvm() { # KERNEL INITRD
	grep -qs "^$boot_id " "$answer" && return
	mkdir -p "$cache/kvm"
	forget_old "$cache/kvm" '*' 8
	echo "$boot_id $(try_kvm "$@")" >"$answer"
	note "KVM $(cut -d ' ' -f 2- "$answer")"
}

try_kvm() { # KERNEL INITRD
	local log
	log=$(
		on_kvm
		timeout 20 "${qemu[@]}" -smp 2 -m 2560 -nodefaults -no-user-config -display none \
			-no-reboot -kernel "$1" -initrd "$2" -serial stdio 2>&1 </dev/null \
			-append "console=$console panic=-1 rdinit=/bin/busybox -- poweroff -f" |
			tr -d '\0'
	) || true
	if grep -q 'Brought up .* 2 CPUs' <<<"$log" && grep -q 'reboot: Power down' <<<"$log"; then
		echo boots
	else
		echo "doesn't boot a kernel on this machine, so processors are emulated"
	fi
}

# alike_processors: for taskset, those that are like the fastest. The processors of a Spark
# are of two kinds, and a machine that begins on one can't go on on the other.
alike_processors() {
	local processor
	for processor in /sys/devices/system/cpu/cpu[0-9]*; do
		echo "$({ cat "$processor/cpu_capacity" || echo -; } 2>/dev/null)" \
			"$({ cat "$processor/regs/identification/midr_el1" || echo -; } 2>/dev/null)" \
			"${processor##*/cpu}"
	done | sort -k 1,1nr | awk 'NR == 1 { kind = $2 } $2 == kind { print $3 }' | paste -sd ,
}
