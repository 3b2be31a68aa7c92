// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <array>

#include <fmt/format.h>

namespace umacct::tool::doctor {

namespace fs = std::filesystem;

namespace {

void check_versions(const Examined &at, Findings &found) {
    if (!at.status)
        return;

    const std::string versions =
        fmt::format("module {}, tool {}, netlink ABI {}", at.status->module_version, UMACCT_VERSION,
                    UMACCT_FAMILY_VERSION);
    const bool same = at.status->module_version == UMACCT_VERSION;

    found.add(same ? Health::ok : Health::warn, "module",
              same ? versions : versions + ": the versions differ",
              same ? "" : "build and install both from one source, then rmmod and modprobe umacct",
              {{"abi_version", UMACCT_FAMILY_VERSION}});
}

void check_probes(const Examined &at, Findings &found) {
    if (!at.status)
        return;
    found.add(*at.status, "probes", "a probe on the module's own code fires", {},
              line_of(at.file("sys/kernel/debug/kprobes/enabled")) == "0"
                  ? "kprobes are switched off: echo 1 > /sys/kernel/debug/kprobes/enabled"
                  : "");
}

void check_installed(const Examined &at, Findings &found) {
    const std::string modules = contents_of(at.file("lib/modules") / at.release() / "modules.dep");
    const bool installed = modules.find("umacct.ko") != std::string::npos;

    found.add(installed ? Health::ok : Health::warn, "installed",
              fmt::format("umacct.ko is {}installed for kernel {}", installed ? "" : "not ",
                          at.release()),
              installed ? ""
                        : "apt install umacct-dkms, 'make install' or 'make dkms-install', else "
                          "it is gone after a boot");
}

/// Secure Boot and lockdown let only signed modules in.
void check_signature(const Examined &at, Findings &found) {
    const std::string lockdown = line_of(at.file("sys/kernel/security/lockdown"));
    const bool locked = !lockdown.empty() && lockdown.find("[none]") == std::string::npos;
    const std::string variable = contents_of(
        at.file("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"));
    // Four bytes of attributes come before the value.
    const bool secure = variable.size() > 4 && variable[4] == '\1';
    const bool is_unsigned =
        line_of(at.file("sys/module/umacct/taint")).find('E') != std::string::npos;
    const std::string text = fmt::format("Secure Boot {}, lockdown {}", secure ? "on" : "off",
                                         lockdown.empty() ? "not in this kernel" : lockdown);

    if ((secure || locked) && (is_unsigned || !at.status))
        found.add(Health::warn, "signature",
                  fmt::format("{}; the module {}", text,
                              is_unsigned ? "is unsigned and will not load again"
                                          : "must be signed to load"),
                  "sign it with an enrolled key: with DKMS, mokutil --import /var/lib/dkms/mok.pub "
                  "(on Ubuntu /var/lib/shim-signed/mok/MOK.der), then reboot");
    else
        found.add(Health::ok, "signature",
                  fmt::format("{}; the module {}", text,
                              !at.status    ? "need not be signed"
                              : is_unsigned ? "is unsigned, which is well here"
                                            : "is signed"));
}

void check_dkms(const Examined &at, Findings &found) {
    const fs::path tree = at.file("var/lib/dkms/umacct");
    std::error_code error;
    const bool headers = is_there(at.file("lib/modules") / at.release() / "build/include");
    bool known = false;
    bool built = false;

    for (fs::directory_iterator version(tree, error), end; !error && version != end;
         version.increment(error)) {
        known = true;
        built = built || is_there(version->path() / at.release());
    }
    if (!known)
        found.add(Health::ok, "dkms", "not used for umacct");
    else
        found.add(
            built ? Health::ok : Health::warn, "dkms",
            fmt::format("umacct is {} for kernel {}{}", built ? "built" : "not built", at.release(),
                        built || headers ? "" : ", whose headers are not installed"),
            built ? ""
            : headers
                ? "dkms autoinstall; its log is in /var/lib/dkms/umacct"
                : fmt::format("apt install linux-headers-{}; DKMS builds it then", at.release()));
}

} // namespace

std::span<const Check> module_checks() {
    static constexpr std::array<Check, 5> table{check_versions, check_probes, check_installed,
                                                check_signature, check_dkms};

    return table;
}

} // namespace umacct::tool::doctor
