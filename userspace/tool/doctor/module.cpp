// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace umacct::tool::doctor {

namespace fs = std::filesystem;

namespace {

void check_versions(const Status &status, Findings &found) {
    const bool same = status.module_version == UMACCT_VERSION;

    found.warn_unless(same, "module",
                      fmt::format("module {}, tool {}, netlink ABI {}{}", status.module_version,
                                  UMACCT_VERSION, UMACCT_FAMILY_VERSION,
                                  same ? "" : ": the versions differ"),
                      "build and install both from one source, then rmmod and modprobe umacct",
                      {{"abi_version", UMACCT_FAMILY_VERSION}});
}

/// The module's file for the kernel that runs; empty where there is none.
fs::path module_file(const Examined &at) {
    const fs::path folder = at.file("lib/modules") / at.release();
    std::istringstream lines(contents_of(folder / "modules.dep"));

    for (std::string line; std::getline(lines, line);) {
        const fs::path file = line.substr(0, line.find(':'));

        if (file.filename().string().starts_with("umacct.ko"))
            return folder / file;
    }
    return {};
}

void check_installed(const Examined &at, Findings &found) {
    const bool installed = !module_file(at).empty();

    found.warn_unless(installed, "installed",
                      fmt::format("umacct.ko is {}installed for kernel {}", installed ? "" : "not ",
                                  at.release()),
                      "apt install umacct-dkms, 'make install' or 'make dkms-install', else it is "
                      "gone after a boot");
}

/// The key that signs what DKMS builds, as it is enrolled; empty where there is none.
fs::path public_key(const Examined &at) {
    for (const char *file : {"var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub"}) {
        if (is_there(at.file(file)))
            return at.file(file);
    }
    return {};
}

/// Empty where that can't be seen.
std::optional<bool> is_enrolled(const Examined &at, const fs::path &key) {
    const std::string certificate = contents_of(key);

    for (const char *file :
         {"sys/firmware/efi/mok-variables/MokListRT",
          "sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"}) {
        // The certificates are in it as they are.
        if (const std::string list = contents_of(at.file(file)); !list.empty())
            return !certificate.empty() && list.find(certificate) != std::string::npos;
    }
    return std::nullopt;
}

std::string how_to_enroll(const fs::path &key) {
    return fmt::format("mokutil --import {}, then reboot, and choose 'Enroll MOK' there",
                       key.empty() ? "KEY, which mok_certificate in /etc/dkms/framework.conf names"
                                   : key.string());
}

/// What of the module's signature may keep it from being loaded.
void check_file(const Examined &at, const std::string &text, Findings &found) {
    constexpr std::string_view magic = "~Module signature appended~\n";
    const fs::path file = module_file(at);
    const fs::path key = public_key(at);
    const auto judge = [&](bool well, const std::string &what, const std::string &hint) {
        found.warn_unless(well, "signature", fmt::format("{}; {}", text, what), hint);
    };

    if (file.empty()) {
        judge(true, "there is no module yet that must be signed", "");
    } else if (file.extension() != ".ko") {
        judge(false, fmt::format("the module must be signed, and {} is compressed", file.string()),
              fmt::format("modinfo -F signer umacct says who signed it, and nothing if nobody did; "
                          "where it is signed: {}",
                          how_to_enroll(key)));
    } else if (!contents_of(file).ends_with(magic)) {
        judge(false, fmt::format("{} is not signed, and will not load", file.string()),
              fmt::format("apt install openssl; dkms install --force umacct/{} -k {}",
                          UMACCT_VERSION, at.release()));
    } else if (const auto enrolled = key.empty() ? std::nullopt : is_enrolled(at, key)) {
        judge(*enrolled,
              fmt::format("the module is signed, and {} is {}enrolled", key.string(),
                          *enrolled ? "" : "not "),
              how_to_enroll(key));
    } else {
        judge(false, "the module is signed; whether its key is enrolled can't be seen here",
              how_to_enroll(key));
    }
}

/// Secure Boot, lockdown and a kernel that was told so let only signed modules in.
void check_signature(const Examined &at, Findings &found) {
    const std::string lockdown = line_of(at.file("sys/kernel/security/lockdown"));
    const bool locked = !lockdown.empty() && lockdown.find("[none]") == std::string::npos;
    const std::string variable = contents_of(
        at.file("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"));
    // Four bytes of attributes come before the value.
    const bool secure = variable.size() > 4 && variable[4] == '\1';
    const bool enforced = line_of(at.file("sys/module/module/parameters/sig_enforce")) == "Y";
    const bool strict = secure || locked || enforced;
    const bool is_unsigned =
        line_of(at.file("sys/module/umacct/taint")).find('E') != std::string::npos;
    const std::string text = fmt::format("Secure Boot {}, lockdown {}{}", secure ? "on" : "off",
                                         lockdown.empty() ? "not in this kernel" : lockdown,
                                         enforced ? ", module.sig_enforce on" : "");

    if (strict && is_unsigned)
        found.add(Health::warn, "signature",
                  fmt::format("{}; the module is unsigned and will not load again", text),
                  "sign it with an enrolled key: with DKMS, " + how_to_enroll(public_key(at)));
    else if (strict && !at.status)
        check_file(at, text, found);
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
        found.warn_unless(
            built, "dkms",
            fmt::format("umacct is {} for kernel {}{}", built ? "built" : "not built", at.release(),
                        built || headers ? "" : ", whose headers are not installed"),
            headers
                ? "dkms autoinstall; its log is in /var/lib/dkms/umacct"
                : fmt::format("apt install linux-headers-{}; DKMS builds it then", at.release()));
}

} // namespace

void check_module(const Examined &at, Findings &found) {
    if (at.status) {
        check_versions(*at.status, found);
        found.add(at.status, "probes", "a probe on the module's own code fires", Json::object(),
                  line_of(at.file("sys/kernel/debug/kprobes/enabled")) == "0"
                      ? "kprobes are switched off: echo 1 > /sys/kernel/debug/kprobes/enabled"
                      : "");
    } else if (line_of(at.file("proc/sys/kernel/ftrace_enabled")) == "0") {
        found.add(Health::fail, "probes", "kernel.ftrace_enabled is 0: umacct does not load",
                  "sysctl kernel.ftrace_enabled=1, then modprobe umacct");
    }
    check_installed(at, found);
    check_signature(at, found);
    check_dkms(at, found);
}

} // namespace umacct::tool::doctor
