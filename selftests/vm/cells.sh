# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # read by whoever sources this file
#
# The cells of the test matrix: which kernel and which driver on which machine.
# A new one is a line in the table, and a block below for a new architecture.

# The slowest comes first, so that what runs beside it ends with it.
#
# name              architecture  kernel's suite      flavour    driver's suite
cells_table='
arm64-6.12-550      arm64         bookworm-backports  arm64      trixie
amd64-6.12-550      amd64         bookworm-backports  amd64      trixie
amd64-6.1-535       amd64         bookworm            amd64      bookworm
'

# Those that are in no everyday run: "make test-long" has them. "-": no driver. Where
# kernels/FLAVOUR.config is, the kernel is built here, from Debian's source. The last column
# says which cases the cell is for, where that isn't all of them.
long_cells_table='
arm64-6.12-16k-550  arm64         bookworm-backports  arm64-16k  trixie
amd64-6.12-rt-550   amd64         bookworm-backports  rt-amd64   trixie
amd64-6.12-535      amd64         bookworm-backports  amd64      bookworm
amd64-6.12-debug    amd64         bookworm-backports  debug      trixie
amd64-6.12-kcsan    amd64         bookworm-backports  kcsan      trixie         stress/data_races
amd64-7             amd64         trixie-backports    amd64      -              hooks/stand_in
arm64-7             arm64         trixie-backports    arm64      -              hooks/stand_in
'

all_cells() {
	awk 'NF { print $1 }' <<<"$cells_table"
}

long_cells() {
	awk 'NF { print $1 }' <<<"$long_cells_table"
}

is_long_cell() {
	long_cells | grep -qxF "$cell"
}

# highest_memory MIB: what "mem=" is for a machine with so much. On amd64 that is an address,
# and above 2 GiB it goes on at 4.
highest_memory() {
	if [[ $arch == amd64 && $1 -gt 2560 ]]; then
		echo $(($1 + 2048))
	else
		echo "$1"
	fi
}

# load_cell NAME: sets what the table and the architecture say of it.
load_cell() {
	cell=$1
	read -r arch kernel_suite flavour driver_suite cell_cases < <(
		awk -v cell="$cell" '$1 == cell { print $2, $3, $4, $5, $6 ? $6 : "*" }' \
			<<<"$cells_table$long_cells_table"
	) || die "no cell '$cell'; there are: $(all_cells | xargs) $(long_cells | xargs)"
	load_machine
	kernel_parameters=()
	# It tells all that it finds, not the first alone. Looking for leaks, and at each object,
	# takes more than twice as long as all the rest: that is for who leaves these two out.
	[[ $flavour != debug ]] ||
		kernel_parameters=(kasan_multi_shot watchdog_thresh=60 kmemleak=off no_debug_objects)
	# Debian builds these kernels with gcc 12, and modules must be built likewise.
	kernel_cc=${cross}gcc-12
	build=$clone/build/$cell
}

# load_machine: sets what the architecture says of its machines.
load_machine() {
	# The kernel has 2 GiB; the RAM above them, at window, is for umacct_test_pci.
	case $arch in
	amd64)
		kernel_arch=x86
		triplet=x86_64-linux-gnu
		console=ttyS0
		window=0x80000000
		# Emulated, "rep stosb" clears a byte at a time, so the kernel is not to prefer it; and
		# page tables of five levels are walked in more steps than four.
		qemu=(qemu-system-x86_64 -machine q35)
		cpu="max,erms=off,la57=off"
		;;
	arm64)
		kernel_arch=arm64
		triplet=aarch64-linux-gnu
		console=ttyAMA0
		window=0xc0000000
		qemu=(qemu-system-aarch64 -machine "virt,gic-version=3")
		cpu=cortex-a76
		;;
	esac
	cross=$triplet-
}
