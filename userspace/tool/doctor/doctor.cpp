// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/color.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

enum class Health : std::uint8_t { ok, warn, fail };

std::string_view name_of(Health health) {
    static constexpr std::array<std::string_view, 3> names{"ok", "warn", "fail"};

    return names.at(static_cast<std::size_t>(health));
}

struct Check {
    Health health = Health::ok;
    std::string name;
    std::string says;
    std::string mend;             ///< empty where nothing is to be done
    Json values = Json::object(); ///< the numbers in says
};

/// First line of a file; empty where it can't be read.
std::string line_of(const fs::path &file) {
    std::ifstream text(file);
    std::string line;

    std::getline(text, line);
    return line;
}

std::string contents_of(const fs::path &file) {
    std::ifstream text(file);
    std::ostringstream all;

    if (text)
        all << text.rdbuf();
    return all.str();
}

bool has_word(const std::string &line, const std::string &word) {
    return (" " + line + " ").find(" " + word + " ") != std::string::npos;
}

/// Also false where it can't be seen.
bool is_there(const fs::path &path) {
    std::error_code ignored;

    return fs::exists(path, ignored);
}

/// One examination of this machine.
class Examination {
public:
    explicit Examination(Context &context) : context_(context) {}

    /// Every check; those that ask the module only where it is loaded.
    std::vector<Check> run() {
        check_module();
        check_installed();
        check_signature();
        check_dkms();
        check_cgroups();
        if (status_) {
            check_driver();
            check_uvm();
            check_hooks();
            check_kmem();
            check_pools();
            check_blind_spot();
            check_records();
            check_events();
        }
        check_device();
        check_runtimes();
        return checks_;
    }

    bool module_is_loaded() const { return status_.has_value(); }

private:
    void add(Health health, std::string name, const std::string &says, std::string mend = "",
             Json values = Json::object()) {
        checks_.push_back(
            {health, std::move(name), printable(says), std::move(mend), std::move(values)});
    }

    fs::path file(const char *path) const { return context_.root() / path; }

    std::string release() const { return line_of(context_.proc() / "sys/kernel/osrelease"); }

    void check_module() {
        try {
            status_ = context_.module().status();
        } catch (const Error &error) {
            if (error.failure() != Failure::missing)
                throw;
            add(Health::fail, "module", "umacct.ko is not loaded",
                "modprobe umacct; to build it: 'make install' or 'make dkms-install'");
            return;
        }

        const std::string versions =
            fmt::format("module {}, tool {}, netlink ABI {}", status_->module_version,
                        UMACCT_VERSION, UMACCT_FAMILY_VERSION);
        const bool same = status_->module_version == UMACCT_VERSION;

        add(same ? Health::ok : Health::warn, "module",
            same ? versions : versions + ": the versions differ",
            same ? "" : "build and install both from one source, then rmmod and modprobe umacct",
            {{"abi_version", UMACCT_FAMILY_VERSION}});
        if (!status_->has(UMACCT_STATUS_SELFTEST))
            add(Health::fail, "probes", "a probe on the module's own code did not fire",
                line_of(file("sys/kernel/debug/kprobes/enabled")) == "0"
                    ? "kprobes are switched off: echo 1 > /sys/kernel/debug/kprobes/enabled"
                    : "is /sys/kernel/debug/kprobes/enabled 1, and "
                      "/proc/sys/kernel/ftrace_enabled?");
        else
            add(Health::ok, "probes", "a probe on the module's own code fires");
    }

    void check_installed() {
        const std::string modules = contents_of(file("lib/modules") / release() / "modules.dep");
        const bool installed = modules.find("umacct.ko") != std::string::npos;

        add(installed ? Health::ok : Health::warn, "installed",
            fmt::format("umacct.ko is {}installed for kernel {}", installed ? "" : "not ",
                        release()),
            installed ? "" : "'make install' or 'make dkms-install', else it is gone after a boot");
    }

    /// Secure Boot and lockdown let only signed modules in.
    void check_signature() {
        const std::string lockdown = line_of(file("sys/kernel/security/lockdown"));
        const bool locked = !lockdown.empty() && lockdown.find("[none]") == std::string::npos;
        const std::string variable = contents_of(
            file("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"));
        // Four bytes of attributes come before the value.
        const bool secure = variable.size() > 4 && variable[4] == '\1';
        const bool is_unsigned =
            line_of(file("sys/module/umacct/taint")).find('E') != std::string::npos;
        const std::string says = fmt::format("Secure Boot {}, lockdown {}", secure ? "on" : "off",
                                             lockdown.empty() ? "not in this kernel" : lockdown);

        if ((secure || locked) && (is_unsigned || !status_))
            add(Health::warn, "signature",
                fmt::format("{}; the module {}", says,
                            is_unsigned ? "is unsigned and will not load again"
                                        : "must be signed to load"),
                "sign it with an enrolled key: with DKMS, mokutil --import /var/lib/dkms/mok.pub "
                "(on Ubuntu /var/lib/shim-signed/mok/MOK.der), then reboot");
        else
            add(Health::ok, "signature",
                fmt::format("{}; the module {}", says,
                            !status_      ? "need not be signed"
                            : is_unsigned ? "is unsigned, which is well here"
                                          : "is signed"));
    }

    void check_dkms() {
        const fs::path tree = file("var/lib/dkms/umacct");
        std::error_code error;
        bool known = false;
        bool built = false;

        for (fs::directory_iterator version(tree, error), end; !error && version != end;
             version.increment(error)) {
            known = true;
            built = built || is_there(version->path() / release());
        }
        if (!known)
            add(Health::ok, "dkms", "not used for umacct");
        else
            add(built ? Health::ok : Health::warn, "dkms",
                fmt::format("umacct is {} for kernel {}", built ? "built" : "not built", release()),
                built ? "" : "dkms autoinstall; its log is in /var/lib/dkms/umacct");
    }

    void check_cgroups() {
        try {
            context_.cgroups().mount();
        } catch (const Error &error) {
            add(Health::fail, "cgroups", error.what(), error.hint());
            return;
        }
        add(Health::ok, "cgroups",
            "cgroup v2 is mounted at " + context_.cgroups().mount().point.string());
        if (status_ && !status_->has(UMACCT_STATUS_CGROUP_V2))
            add(Health::warn, "cgroups",
                "there are no cgroups in the v2 hierarchy: everything is in one account",
                "boot with systemd.unified_cgroup_hierarchy=1");

        const std::string &root = context_.cgroups().mount().root;
        const auto has = context_.cgroups().read(root, "cgroup.controllers");
        const auto gives = context_.cgroups().read(root, "cgroup.subtree_control");

        if (!has || !has_word(*has, "memory"))
            add(Health::warn, "memory controller", "cgroup v2 has no memory controller",
                "without cgroup_disable=memory and cgroup v1's memory hierarchy it has; limits of "
                "umacct's own work all the same");
        else if (!gives || !has_word(*gives, "memory"))
            add(Health::warn, "memory controller", "it is not delegated to the cgroups below",
                "echo +memory > " +
                    (context_.cgroups().mount().point / "cgroup.subtree_control").string());
        else
            add(Health::ok, "memory controller", "on, and delegated");
    }

    void check_driver() {
        const std::string proc = contents_of(context_.proc() / "driver/nvidia/version");
        const char *flavour = proc.empty() ? ""
                              : proc.find("Open Kernel Module") != std::string::npos
                                  ? ", open flavour"
                                  : ", proprietary flavour";

        switch (status_->driver_state) {
        case UMACCT_DRIVER_ABSENT:
            add(Health::fail, "driver", "the NVIDIA driver is not loaded",
                "modprobe nvidia; umacct notices it by itself");
            break;
        case UMACCT_DRIVER_HOOKED:
            add(Health::ok, "driver",
                fmt::format("{}{}, accounted", status_->driver_version, flavour));
            break;
        default:
            add(Health::fail, "driver",
                fmt::format("{}{} is {}, nothing is accounted: {}", status_->driver_version,
                            flavour, umacct::name_of(status_->driver_state), status_->reason),
                "a newer umacct may know this driver; the kernel log says more");
        }
    }

    void check_uvm() {
        const bool unknown = status_->uvm_state == UMACCT_DRIVER_UNKNOWN ||
                             status_->uvm_state == UMACCT_DRIVER_BROKEN;

        add(unknown ? Health::warn : Health::ok, "nvidia-uvm",
            fmt::format("{}{}", umacct::name_of(status_->uvm_state),
                        unknown ? ": managed memory is not shown" : ""),
            unknown ? "a newer umacct may know it; all other memory is accounted" : "");
    }

    void check_hooks() {
        for (const Hook &hook : status_->hooks) {
            const bool failed = hook.state == UMACCT_HOOK_FAILED;
            const bool missed = hook.missed > 0;
            std::string says = fmt::format("{}: {}", hook.symbol, umacct::name_of(hook.state));
            std::string mend;

            if (hook.state == UMACCT_HOOK_ARMED)
                says += fmt::format(", {} calls, {} missed", hook.calls, hook.missed);
            if (failed) {
                says += ": " + hook.reason;
                mend = hook.required ? "without it nothing is accounted; a newer umacct may help"
                                     : "the feature that it serves is off, the rest works";
            } else if (missed) {
                mend = "the figures are off by what was missed: is another tool tracing this "
                       "function? Reload umacct when the driver is idle";
            }
            add((failed && hook.required) || missed ? Health::fail
                : failed                            ? Health::warn
                                                    : Health::ok,
                "hook " + hook.name, says, mend, {{"calls", hook.calls}, {"missed", hook.missed}});
        }
    }

    void check_kmem() {
        const bool off = has_word(line_of(context_.proc() / "cmdline"), "cgroup.memory=nokmem");

        if (status_->has(UMACCT_STATUS_KMEM))
            add(Health::ok, "kernel memory", "the kernel accounts its memory by cgroup");
        else
            add(Health::warn, "kernel memory",
                "the kernel does not account its memory by cgroup: charging can't work",
                off ? "boot without cgroup.memory=nokmem"
                    : "it begins when the first cgroup has a memory controller");
    }

    void check_pools() {
        const bool pools = status_->has(UMACCT_STATUS_PAGE_POOLS);

        add(pools ? Health::warn : Health::ok, "driver pools",
            pools ? "this driver keeps freed pages in pools that belong to nobody"
                  : "this driver gives freed pages back",
            pools ? "load nvidia with NVreg_EnableSystemMemoryPools=0; drop_caches empties them "
                    "until then"
                  : "");
    }

    void check_blind_spot() {
        const Json values = {{"usage", status_->usage},
                             {"charged", status_->charged},
                             {"uncharged", status_->uncharged()}};
        const std::string held =
            fmt::format("{} charged, {} uncharged", format_size(status_->charged),
                        format_size(status_->uncharged()));

        if (status_->has(UMACCT_STATUS_NATIVE_CHARGE))
            add(Health::ok, "blind spot", "none: this driver charges its pages itself; " + held, "",
                values);
        else if (status_->charge_default == UMACCT_CHARGE_ON)
            add(Health::ok, "blind spot", "none: charging is the default; " + held, "", values);
        else
            add(Health::warn, "blind spot",
                "memory.max and memory.current don't see this driver's memory unless charging is "
                "on; " +
                    held,
                status_->has(UMACCT_STATUS_CHARGE_READY)
                    ? "'umacct charge on TARGET' or 'umacct limit TARGET --hard SIZE'"
                    : "'umacct limit TARGET --hard SIZE'; 'umacct charge' says why charging can't",
                values);
    }

    void check_records() {
        add(status_->untracked_count > 0 ? Health::fail : Health::ok, "untracked",
            fmt::format("{} of {} could not be recorded",
                        counted(status_->untracked_count, "allocation", "allocations"),
                        format_size(status_->untracked)),
            status_->untracked_count > 0
                ? "the kernel had no memory for their records; they are in no account until freed"
                : "",
            {{"untracked_count", status_->untracked_count}, {"untracked", status_->untracked}});
        add(status_->stale_count > 0 ? Health::warn : Health::ok, "stale",
            fmt::format("{} dropped because their free was never seen",
                        counted(status_->stale_count, "record", "records")),
            status_->stale_count > 0 ? "frees were missed: see the hooks" : "",
            {{"stale_count", status_->stale_count}});
    }

    void check_events() {
        add(status_->events_lost > 0 ? Health::warn : Health::ok, "events",
            fmt::format("{} sent, {} lost", status_->events_sent, status_->events_lost),
            status_->events_lost > 0 ? "too many came at once; the counters are right all the same"
                                     : "",
            {{"events_sent", status_->events_sent}, {"events_lost", status_->events_lost}});
    }

    void check_device() {
        const bool there = is_there(file("dev/nvidiactl"));

        add(there ? Health::ok : Health::warn, "device",
            there ? "/dev/nvidiactl is there" : "there is no /dev/nvidiactl",
            there ? "" : "nvidia-modprobe, or nvidia-smi as root, makes it");
    }

    void check_runtimes() {
        struct Runtime {
            const char *name;
            const char *trace;
        };

        static constexpr std::array runtimes{
            Runtime{"systemd", "run/systemd/system"}, Runtime{"docker", "run/docker.sock"},
            Runtime{"podman", "run/podman"},
            Runtime{"containerd", "run/containerd/containerd.sock"},
            Runtime{"cri-o", "run/crio/crio.sock"}};
        std::string found;

        for (const Runtime &runtime : runtimes) {
            if (is_there(file(runtime.trace)))
                found += fmt::format("{}{}", found.empty() ? "" : ", ", runtime.name);
        }
        add(Health::ok, "runtimes", found.empty() ? "none found" : found);
    }

    Context &context_;
    std::optional<Status> status_;
    std::vector<Check> checks_;
};

std::string health_cell(const Context &context, Health health) {
    static constexpr std::array colours{fmt::terminal_color::green, fmt::terminal_color::yellow,
                                        fmt::terminal_color::red};
    // Padded by hand: a table would count the colours' own letters.
    const std::string word = fmt::format("{:<4}", name_of(health));

    return context.colour()
               ? fmt::format(fmt::fg(colours.at(static_cast<std::size_t>(health))), "{}", word)
               : word;
}

void doctor(Context &context) {
    Examination examination(context);
    const std::vector<Check> checks = examination.run();
    const auto count = [&](Health health) {
        return std::count_if(checks.begin(), checks.end(),
                             [&](const Check &check) { return check.health == health; });
    };
    const auto failed = count(Health::fail);
    const auto warned = count(Health::warn);

    if (!examination.module_is_loaded())
        context.exit_code = static_cast<int>(Failure::missing);
    else if (failed > 0)
        context.exit_code = static_cast<int>(Failure::failed);
    if (context.json) {
        Json rows = Json::array();

        for (const Check &check : checks)
            rows.push_back({{"check", check.name},
                            {"state", name_of(check.health)},
                            {"says", check.says},
                            {"mend", check.mend.empty() ? Json(nullptr) : Json(check.mend)},
                            {"values", check.values}});
        print_json(context.out(), merged(json_document(), {{"healthy", failed == 0},
                                                           {"failed", failed},
                                                           {"warned", warned},
                                                           {"checks", rows}}));
        return;
    }
    for (const Check &check : checks) {
        fmt::print(context.out(), "{}  {}: {}\n", health_cell(context, check.health), check.name,
                   check.says);
        if (!check.mend.empty())
            fmt::print(context.out(), "      mend: {}\n", check.mend);
    }
    fmt::print(context.out(), "\n{}: {} failed, {}\n", failed == 0 ? "healthy" : "not healthy",
               failed, counted(static_cast<std::uint64_t>(warned), "warning", "warnings"));
}

} // namespace

void add_doctor(CLI::App &app, Context &context) {
    CLI::App *verb = app.add_subcommand("doctor", "what is wrong here, and how to mend it");

    verb->footer(
        "One line for each check: ok, warn (it works, but look at it) or fail, with what mends "
        "it.\n"
        "Checked are the module and its signature, the driver and every hook, kprobes, cgroup v2\n"
        "and its memory controller, the driver's pools, the blind spot, and what was missed.\n"
        "The exit code is 0 without failures, 1 with them, 3 if the module is not loaded.\n"
        "\n"
        "Examples:\n"
        "  umacct doctor\n"
        "  umacct doctor --json");
    verb->callback([&context] { doctor(context); });
}

} // namespace umacct::tool
