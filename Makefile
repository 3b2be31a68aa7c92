# SPDX-License-Identifier: GPL-2.0-or-later
#
# The verbs. What is built how is in kmod/Kbuild (the module) and CMakeLists.txt (the
# tool).

VERSION := $(shell cat VERSION)
KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
BUILD ?= build/tool
DKMS_SOURCE := /usr/src/umacct-$(VERSION)

help:
	@echo "make module        build umacct.ko for the running kernel (or KDIR=...)"
	@echo "make tool          build the umacct command"
	@echo "make install       install both (as root; DESTDIR, PREFIX); uninstall removes them"
	@echo "make dkms-install  install the tool, and the module through DKMS"
	@echo "make deb           build Debian's packages, in build/deb"
	@echo "make static        build umacct as one static program, in build/static"
	@echo "make release       publish a tag: an apt repository, static programs, an image, checksums"
	@echo "                   and a bill of materials; KEY=, ARCHES=, OUT=, IMAGE=no"
	@echo "make setup         install, through apt, what building umacct and its packages needs;"
	@echo "                   setup-demo and setup-tests what those need, who do so by themselves"
	@echo "make demo          see it at work in a virtual machine, without a GPU"
	@echo "make test          the tests of a quarter of an hour; for some, see selftests/run --help"
	@echo "make test-all      those, and the rest of every day's"
	@echo "make test-long     those, and what takes too long for every day"
	@echo "make torture       storms: MINUTES=, SEED=, CELL="
	@echo "make test-install  install the packages in a folder and in machines, use, remove them"
	@echo "make bench         what umacct costs, counted in instructions"
	@echo "make generate      make anew what is made from docs/netlink/umacct.yaml"
	@echo "make lint          checkpatch, sparse, clang-tidy and the like"
	@echo "make clean         remove what was built (not the tests' cache)"

module:
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kmod modules

tool:
	cmake -S . -B $(BUILD) -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build $(BUILD)

install: module install-tool install-conf
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kmod INSTALL_MOD_PATH=$(DESTDIR) modules_install
	[ "$(DESTDIR)" ] || depmod -a

install-tool: tool
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

# The module's parameters, that it is loaded at boot, and the policy, of which every line is a
# comment. What was edited stays.
install-conf:
	install -D -m 644 packaging/modules-load.conf $(DESTDIR)/usr/lib/modules-load.d/umacct.conf
	[ -e $(DESTDIR)/etc/modprobe.d/umacct.conf ] || \
		install -D -m 644 packaging/modprobe.conf $(DESTDIR)/etc/modprobe.d/umacct.conf
	[ -e $(DESTDIR)/etc/umacct.toml ] || \
		install -D -m 644 packaging/umacct.toml $(DESTDIR)/etc/umacct.toml

# The module's source, as DKMS takes it, and what has it built for later kernels.
KERNEL_HOOKS = $(addprefix $(DESTDIR)/etc/kernel/,postinst.d/umacct-dkms header_postinst.d/umacct-dkms)

install-source: install-conf
	for hook in $(KERNEL_HOOKS); do install -D packaging/kernel-hook $$hook || exit; done
	install -d $(DESTDIR)$(DKMS_SOURCE)/kmod $(DESTDIR)$(DKMS_SOURCE)/include
	cd kmod && find . -name '*.[chS]' ! -name '*.mod.c' -o -name Kbuild | \
		cpio --quiet -pdm $(abspath $(DESTDIR)$(DKMS_SOURCE)/kmod)
	install -m 644 include/*.h $(DESTDIR)$(DKMS_SOURCE)/include
	install -m 644 VERSION $(DESTDIR)$(DKMS_SOURCE)
	sed 's/#MODULE_VERSION#/$(VERSION)/' dkms.conf >$(DESTDIR)$(DKMS_SOURCE)/dkms.conf
	# DKMS before 3.2 says "make clean" there whether or not that is needed.
	echo 'clean:' >$(DESTDIR)$(DKMS_SOURCE)/Makefile

dkms-install: install-tool install-source
	dkms install umacct/$(VERSION)

# Versions of the module's source that "make dkms-install" put there, this one's and older ones;
# what is a package's is left to it.
INSTALLED_SOURCES = $(foreach source,$(wildcard $(DESTDIR)/usr/src/umacct-*),\
	$(if $(shell dpkg-query -S $(source)/dkms.conf 2>/dev/null),,$(source)))

# Services are stopped first; below DESTDIR there are none. A module that DKMS built goes with its
# source; "make install" puts the other into updates/ (before Linux 6.3, extra/).
uninstall:
	[ "$(DESTDIR)" ] || ! [ -d /run/systemd/system ] || for service in umacctd umacct-exporter umacct-device-plugin; do \
		! systemctl cat $$service.service >/dev/null 2>&1 || \
			systemctl disable --now $$service.service || exit; done
	[ "$(DESTDIR)" ] || ! command -v umacct >/dev/null || \
		for part in nvml podman crio docker containerd k3s rke2 cdi; do umacct setup $$part --undo || exit; done
	[ "$(DESTDIR)" ] || ! [ -e /sys/module/umacct ] || rmmod umacct
	[ "$(DESTDIR)" ] || ! [ -e $(PREFIX)/bin/umacct ] || $(PREFIX)/bin/umacct setup observer off || :
	[ "$(DESTDIR)" ] || for source in $(notdir $(INSTALLED_SOURCES)); do \
		! [ -d /var/lib/dkms/umacct/$${source#umacct-} ] || \
			dkms remove umacct/$${source#umacct-} --all || exit; done
	[ -z "$(INSTALLED_SOURCES)" ] || rm -f $(KERNEL_HOOKS)
	rm -rf $(INSTALLED_SOURCES) $(DESTDIR)/usr/lib/modules-load.d/umacct.conf
	! cmp -s packaging/modprobe.conf $(DESTDIR)/etc/modprobe.d/umacct.conf || \
		rm $(DESTDIR)/etc/modprobe.d/umacct.conf
	! cmp -s packaging/umacct.toml $(DESTDIR)/etc/umacct.toml || rm $(DESTDIR)/etc/umacct.toml
	rm -f $(DESTDIR)/lib/modules/*/updates/umacct.ko* $(DESTDIR)/lib/modules/*/extra/umacct.ko*
	[ "$(DESTDIR)" ] || depmod -a
	! [ -e $(BUILD)/install_manifest.txt ] || \
		sed 's|^|$(DESTDIR)|' $(BUILD)/install_manifest.txt | xargs rm -f
	rm -rf $(DESTDIR)$(PREFIX)/share/umacct $(DESTDIR)/run/umacctd \
		$(DESTDIR)/run/private/umacctd $(DESTDIR)/run/umacct.toml.d \
		$(DESTDIR)/var/lib/umacctd $(DESTDIR)/var/lib/private/umacctd
	[ "$(DESTDIR)" ] || ! [ -d /run/systemd/system ] || systemctl daemon-reload

# Built in a copy, so that nothing of it lies here; what did not change is not built again.
deb:
	mkdir -p build/deb/source
	rm -f build/deb/*.*
	find build/deb/source -mindepth 1 -maxdepth 1 ! -name 'obj-*' -exec rm -rf {} +
	find . -path ./build -prune -o -path ./.git -prune -o -type f ! -name '*.o' ! -name '*.ko' \
		! -name '*.mod' ! -name '*.mod.c' ! -name '*.cmd' -print | \
		cpio --quiet -pdm build/deb/source
	cd build/deb/source && DEB_BUILD_OPTIONS="noautodbgsym $$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -b -us -uc -nc $(if $(DEB_ARCH),-a$(DEB_ARCH))
	@ls build/deb/*.deb

static:
	cmake -S . -B build/static -DUMACCT_STATIC=ON -DUMACCT_OBSERVER=ON -DUMACCT_EXPORTER=OFF \
		-DUMACCT_KUBERNETES=OFF -DBUILD_TESTING=OFF -DCMAKE_BUILD_TYPE=Release
	cmake --build build/static --target umacct
	@ls -l build/static/userspace/umacct

# Run again with the same OUT for another suite, on a builder of it.
OUT ?= build/release/out
release:
	packaging/release $(if $(filter no,$(IMAGE)),--no-image) $(if $(KEY),--key $(KEY)) $(foreach arch,$(ARCHES),--arch $(arch)) $(OUT)

setup:
	selftests/run setup build

setup-demo:
	selftests/run setup demo

setup-tests:
	selftests/run setup

demo: setup-demo
	selftests/run demo

test: setup-tests
	selftests/run

test-all: setup-tests
	selftests/run --all $(if $(WITHIN),--within $(WITHIN))

test-long: setup-tests
	selftests/run setup browser
	selftests/run --long

torture: setup-tests
	selftests/run torture $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(CELL),--cell $(CELL))

test-install: setup-tests
	selftests/run install headers install-vm

bench: setup-tests
	selftests/run bench

lint: setup-tests
	selftests/run lint

generate:
	docs/netlink/generate

clean:
	rm -rf build
	-[ ! -d $(KDIR) ] || $(MAKE) -C $(KDIR) M=$(CURDIR)/kmod clean

.PHONY: help module tool install install-tool install-conf install-source dkms-install uninstall \
	deb static release setup setup-demo setup-tests demo test test-all test-long test-install torture bench generate lint clean
