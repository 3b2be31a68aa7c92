// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/host/program.h"
#include "tool/secure_boot/state.h"

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

/// The module's file for a kernel; empty where there is none.
fs::path module_file(const Examined &at, const std::string &release) {
    const fs::path folder = at.file("lib/modules") / release;
    std::istringstream lines(contents_of(folder / "modules.dep"));

    for (std::string line; std::getline(lines, line);) {
        const fs::path file = line.substr(0, line.find(':'));

        if (file.filename().string().starts_with("umacct.ko"))
            return folder / file;
    }
    return {};
}

/// Kernels that are later than the one that runs, and for which there is no module.
std::vector<std::string> later_without(const Examined &at) {
    const std::string running = at.release();
    std::vector<std::string> releases;
    std::error_code error;

    for (fs::directory_iterator each(at.file("lib/modules"), error), end; !error && each != end;
         each.increment(error)) {
        const std::string release = each->path().filename();

        // The remains of a kernel that was removed have no list of built-in modules.
        if (is_there(each->path() / "modules.builtin") &&
            strverscmp(release.c_str(), running.c_str()) > 0 && module_file(at, release).empty())
            releases.push_back(release);
    }
    std::ranges::sort(releases);
    return releases;
}

/// DKMS's folder of umacct, with a folder for each version.
fs::path dkms_tree(const Examined &at) {
    return at.file("var/lib/dkms/umacct");
}

bool has_headers(const Examined &at, const std::string &release) {
    return is_there(at.file("lib/modules") / release / "build/include");
}

/// How a kernel gets its module by DKMS.
std::string how_to_build(const Examined &at, const std::string &release) {
    return has_headers(at, release)
               ? fmt::format("dkms install umacct/{} -k {}; its log is in /var/lib/dkms/umacct",
                             UMACCT_VERSION, release)
               : fmt::format("apt install linux-headers-{}; DKMS builds it then", release);
}

void check_installed(const Examined &at, Findings &found) {
    const bool installed = !module_file(at, at.release()).empty();

    found.warn_unless(installed, "installed",
                      fmt::format("umacct.ko is {}installed for kernel {}", installed ? "" : "not ",
                                  at.release()),
                      is_there(dkms_tree(at))
                          ? how_to_build(at, at.release())
                          : "apt install umacct-dkms, 'make install' or 'make dkms-install', else "
                            "it is gone after a boot");
    for (const std::string &release : later_without(at))
        found.add(Health::warn, "installed",
                  fmt::format("kernel {} is installed and has no umacct: after the next boot no "
                              "limit holds",
                              release),
                  how_to_build(at, release));
}

/// Whether a module's file is signed; nothing where that can't be seen.
std::optional<bool> is_signed(const fs::path &file) {
    constexpr std::string_view magic = "~Module signature appended~\n";

    if (file.extension() == ".ko")
        return contents_of(file).ends_with(magic);
    try {
        // It is compressed, in one of the ways that kmod knows.
        return !run_program({"/sbin/modinfo", "--field", "sig_id", file.string()}, "kmod").empty();
    } catch (const Error &) {
        return std::nullopt;
    }
}

/// Checks whether the module's signature lets it be loaded.
void check_file(const Examined &at, const secure_boot::State &boot, Findings &found) {
    const fs::path file = module_file(at, at.release());
    const std::optional<bool> has_signature = file.empty() ? std::nullopt : is_signed(file);
    const std::string key = boot.certificate.string();
    const auto judge = [&](bool well, const std::string &what, const std::string &hint) {
        found.warn_unless(well, "signature", fmt::format("{}; {}", boot.text(), what), hint);
    };

    if (file.empty()) {
        judge(true, "there is no module yet that must be signed", "");
    } else if (!has_signature) {
        judge(false,
              fmt::format("the module must be signed; whether it is can't be seen in {}",
                          file.string()),
              fmt::format(
                  "modinfo -F signer umacct prints the signer, and nothing if it is unsigned; "
                  "where it is signed: {}",
                  boot.how_to_enroll()));
    } else if (!*has_signature) {
        judge(false, fmt::format("{} is not signed, and will not load", file.string()),
              fmt::format("apt install openssl; dkms install --force umacct/{} -k {}",
                          UMACCT_VERSION, at.release()));
    } else if (boot.enrolled) {
        judge(*boot.enrolled,
              fmt::format("the module is signed, and {} is {}enrolled{}", key,
                          *boot.enrolled ? "" : "not ",
                          boot.pending ? " yet: the firmware asks at the next boot" : ""),
              boot.how_to_enroll());
    } else {
        judge(false, "the module is signed; whether its key is enrolled can't be seen here",
              boot.how_to_enroll());
    }
}

/// Secure Boot, lockdown and module.sig_enforce let only signed modules in.
void check_signature(const Examined &at, Findings &found) {
    const secure_boot::State boot = secure_boot::read_state(at.machine.root());
    const bool is_unsigned =
        line_of(at.file("sys/module/umacct/taint")).find('E') != std::string::npos;
    const bool loaded = at.status && !at.status->has(UMACCT_STATUS_OBSERVER);

    if (boot.strict() && is_unsigned)
        found.add(Health::warn, "signature",
                  fmt::format("{}; the module is unsigned and will not load again", boot.text()),
                  "sign it with an enrolled key: with DKMS, " + boot.how_to_enroll());
    else if (boot.strict() && !loaded)
        check_file(at, boot, found);
    else
        found.add(Health::ok, "signature",
                  fmt::format("{}; the module {}", boot.text(),
                              !loaded       ? "need not be signed"
                              : is_unsigned ? "is unsigned (not required here)"
                                            : "is signed"));
}

void check_dkms(const Examined &at, Findings &found) {
    std::error_code error;
    bool known = false;
    bool built = false;

    for (fs::directory_iterator version(dkms_tree(at), error), end; !error && version != end;
         version.increment(error)) {
        known = true;
        built = built || is_there(version->path() / at.release());
    }
    if (!known)
        found.add(Health::ok, "dkms", "not used for umacct");
    else
        found.warn_unless(
            built, "dkms",
            fmt::format(
                "umacct is {} for kernel {}{}", built ? "built" : "not built", at.release(),
                built || has_headers(at, at.release()) ? "" : ", whose headers are not installed"),
            how_to_build(at, at.release()));
}

} // namespace

void check_module(const Examined &at, Findings &found) {
    found.group = "module";
    if (at.status && at.status->has(UMACCT_STATUS_OBSERVER)) {
        found.add(at.status, "observer", "");
    } else if (at.status) {
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
