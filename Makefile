# SPDX-License-Identifier: GPL-2.0-or-later
#
# The verbs. What is built how is in kmod/Kbuild (the module) and CMakeLists.txt (the
# tool).

VERSION := $(shell cat VERSION)
KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
DKMS_SOURCE := /usr/src/umacct-$(VERSION)

help:
	@echo "make module        build umacct.ko for the running kernel (or KDIR=...)"
	@echo "make tool          build the umacct command"
	@echo "make install       install both (as root); uninstall removes them"
	@echo "make dkms-install  install the tool, and the module through DKMS"
	@echo "make setup         install, through apt, what building needs"
	@echo "make demo          see it at work in a virtual machine, without a GPU"
	@echo "make test          every test; for one of them, see selftests/vm/run --help"
	@echo "make test-long     those, and what takes too long for every day"
	@echo "make torture       storms: MINUTES=, SEED=, CELL="
	@echo "make bench         what umacct costs, counted in instructions"
	@echo "make lint          checkpatch, sparse, clang-tidy and the like"
	@echo "make clean         remove what was built (not the tests' cache)"

module:
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kmod modules

tool:
	cmake -S . -B build/tool -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build build/tool

install: module install-tool
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kmod modules_install
	depmod -a

install-tool: tool
	cmake --install build/tool

uninstall:
	-rmmod umacct
	-[ ! -d $(DKMS_SOURCE) ] || dkms remove umacct/$(VERSION) --all
	rm -rf $(DKMS_SOURCE)
	find /lib/modules -name 'umacct.ko*' -delete
	depmod -a
	[ ! -e build/tool/install_manifest.txt ] || xargs rm -f <build/tool/install_manifest.txt

dkms-install: install-tool
	install -d $(DKMS_SOURCE)/kmod $(DKMS_SOURCE)/include
	cd kmod && find . -name '*.[chS]' ! -name '*.mod.c' -o -name Kbuild | \
		cpio --quiet -pdm $(DKMS_SOURCE)/kmod
	install -m 644 include/*.h $(DKMS_SOURCE)/include
	install -m 644 VERSION $(DKMS_SOURCE)
	sed 's/@VERSION@/$(VERSION)/' dkms.conf >$(DKMS_SOURCE)/dkms.conf
	# Before 3.2, DKMS says "make clean" there whether or not that is needed.
	echo 'clean:' >$(DKMS_SOURCE)/Makefile
	dkms install umacct/$(VERSION)

setup:
	selftests/setup build

setup-tests:
	selftests/setup

demo: setup-tests
	selftests/vm/demo

test: setup-tests
	selftests/all

test-long: setup-tests
	selftests/all --long

torture: setup-tests
	selftests/torture $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(CELL),--cell $(CELL))

bench: setup-tests
	selftests/vm/bench

lint: setup-tests
	selftests/lint

clean:
	rm -rf build
	-[ ! -d $(KDIR) ] || $(MAKE) -C $(KDIR) M=$(CURDIR)/kmod clean

.PHONY: help module tool install install-tool uninstall dkms-install setup setup-tests demo test test-long \
	torture bench lint clean
