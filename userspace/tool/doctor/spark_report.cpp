// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/text.h"
#include "lib/units.h"
#include "tool/print/text.h"
#include "tool/secure_boot/state.h"

namespace umacct::tool::doctor {

std::string spark_facts(const Machine &machine, const Diagnosis &made) {
    const Examined at{.machine = machine, .status = made.status};
    std::string text;
    const auto line = [&text](const char *key, const std::string &value) {
        text += fmt::format("{:<16}{}\n", key, value.empty() ? "-" : printable(value));
    };
    std::size_t armed = 0;
    std::string others;

    for (const Hook &hook : made.status ? made.status->hooks : std::vector<Hook>()) {
        if (hook.state == UMACCT_HOOK_ARMED)
            armed++;
        else
            others += fmt::format("{}{} ({}): {}", others.empty() ? "" : ", ", hook.name,
                                  hook.symbol, umacct::name_of(hook.state));
    }
    utsname kernel{};
    uname(&kernel);
    line("product", line_of(at.file("sys/class/dmi/id/sys_vendor")) + " " +
                        line_of(at.file("sys/class/dmi/id/product_name")));
    line("kernel", fmt::format("{} {}", at.release(), static_cast<const char *>(kernel.machine)));
    line("pages", format_size(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))));
    line("memory", format_size(machine.meminfo().total()));
    line("driver", line_of(machine.proc() / "driver/nvidia/version"));
    line("secure boot", secure_boot::read_state(machine.root()).text());
    line("tool", UMACCT_VERSION);
    line("counts", !made.status ? "nothing"
                   : made.status->has(UMACCT_STATUS_OBSERVER)
                       ? "the observer"
                       : "module " + made.status->module_version);
    if (made.status) {
        line("accounted", std::string(umacct::name_of(made.status->driver_state)) +
                              ", nvidia-uvm " +
                              std::string(umacct::name_of(made.status->uvm_state)));
        line("hooks armed", fmt::format("{} of {}", armed, made.status->hooks.size()));
        line("others", others);
    }
    for (const Found &each : made.found.all) {
        if (each.health != Health::ok && each.names.empty())
            line(std::string(word_of(each.health)).c_str(), each.check + ": " + each.text);
    }
    return text;
}

} // namespace umacct::tool::doctor
