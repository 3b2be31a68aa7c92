# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # image sets and uses these
#
# The kernel's own tests of cgroups, in /cgroup-tests: those that memory has to do with.

image_packages=()

prepare_linux_source

fill_image() { # ROOT
	local test source=$linux_source/tools/testing/selftests/cgroup
	mkdir "$1/cgroup-tests"
	for test in test_core test_freezer test_kill test_kmem test_memcontrol; do
		"${cross}gcc-12" -w -static -pthread -D_GNU_SOURCE \
			-o "$1/cgroup-tests/$test" "$source/$test.c" "$source/cgroup_util.c" \
			2>"$1/log" || die "$test doesn't build: $(cat "$1/log")"
	done
	rm "$1/log"
}
