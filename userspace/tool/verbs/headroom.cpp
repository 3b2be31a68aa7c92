// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"
#include "lib/json.h"
#include "lib/memory/preflight.h"
#include "lib/policy/policy.h"
#include "lib/policy/validate.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

struct Options {
    std::optional<std::string> size;
    std::optional<std::string> blocks;
};

/// As umacctd has it.
struct Setting {
    std::uint64_t bytes = 0; ///< 0: off
    std::uint64_t block = 0;
};

Setting setting_of(const Machine &machine, const Policy &policy) {
    return {.bytes = policy.headroom ? policy.headroom->of(machine.meminfo().total()) : 0,
            .block = policy.headroom_blocks.value_or(default_block)};
}

std::string words_of(const Setting &setting) {
    return setting.bytes == 0 ? "off"
                              : fmt::format("{} in blocks of {}", format_size(setting.bytes),
                                            format_size(setting.block));
}

/// Until the machine's next start: what is to stay is for /etc.
void write_setting(const fs::path &root, const Setting &setting) {
    const fs::path file = root / "run/umacct.toml.d/headroom.toml";
    const std::string value = setting.bytes == 0
                                  ? "headroom = \"off\"\n"
                                  : fmt::format("headroom = \"{}\"\nheadroom_blocks = \"{}\"\n",
                                                setting.bytes, setting.block);

    if (const int code = replace_file(
            file, "# By 'umacct headroom', until the machine's next start.\n[machine]\n" + value))
        throw Error(failure_of(code),
                    fmt::format("cannot write {}: {}", file.string(),
                                std::generic_category().message(code)),
                    "it takes root");
}

/// What the command line asks for, of what was set before.
Setting asked_for(const Machine &machine, const Options &options, Setting setting) {
    const std::uint64_t total = machine.meminfo().total();

    setting.bytes = read_argument("SIZE", *options.size, [&](const std::string &text) {
        return text == "off" ? 0 : parse_machine_size(text, machine);
    });
    if (options.blocks)
        setting.block = read_argument("--blocks", *options.blocks, parse_block);
    if (setting.bytes > total)
        throw Error(
            Failure::usage,
            fmt::format("SIZE: {} is more than the machine's memory", format_size(setting.bytes)),
            "a tenth of it is much already");
    // umacctd would refuse the policy, and each later one, until it is gone.
    const std::uint64_t largest = MachineFacts::of(machine, total).largest_block;
    if (largest != 0 && setting.block > largest)
        throw Error(Failure::usage,
                    fmt::format("--blocks: {} is more than the kernel's largest block, {}",
                                format_size(setting.block), format_size(largest)));
    return setting;
}

int headroom(const Machine &machine, Output &output, const Options &options) {
    const Setting before = setting_of(machine, read_policy(policy_files(machine.root())));
    Setting setting = before;

    if (options.blocks && !options.size)
        throw Error(Failure::usage, "--blocks: SIZE is missing",
                    "for example: umacct headroom 8G --blocks 64K");
    if (options.size) {
        setting = asked_for(machine, options, before);
        write_setting(machine.root(), setting);
    }
    std::optional<pid_t> daemon;
    bool known = true;
    try {
        daemon = Instance::running(machine.root());
    } catch (const Error &error) {
        if (options.size || error.failure() != Failure::permission)
            throw;
        known = false;
    }
    if (options.size && daemon && kill(*daemon, SIGHUP) != 0)
        throw Error(failure_of(errno),
                    fmt::format("cannot tell umacctd ({}): {}", *daemon,
                                std::generic_category().message(errno)),
                    "it takes root");

    const Need need = need_of(setting.bytes, setting.block);
    const std::uint64_t free =
        (Zones::read(machine.proc()).usable_blocks(need.order) << need.order) * page_size();
    if (output.json)
        output.document({{"headroom_bytes", setting.bytes},
                         {"before_bytes", before.bytes},
                         {"block_bytes", setting.block},
                         {"free_bytes", free},
                         {"daemon_pid", daemon ? Json(*daemon) : Json()}});
    else if (options.size)
        print_change(output, "headroom", words_of(before), words_of(setting));
    else
        fmt::print(output.out, "headroom {}; {} are free in blocks of {}\n", words_of(setting),
                   format_size(free), format_size(setting.block));
    if (daemon || !known || setting.bytes == 0)
        return 0;
    fmt::print(output.err, "umacct: set, but umacctd is not running\n"
                           "hint: systemctl enable --now umacctd\n");
    return exit_not_enforced;
}

} // namespace

Action add_headroom(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    verb.add_option("SIZE", options->size,
                    "how much, such as 8G or 10%, or off; nothing to print it");
    verb.add_option("--blocks", options->blocks, "in blocks of this size; default: 2M")
        ->type_name("SIZE");
    add_examples(verb, "umacct headroom\n"
                       "umacct headroom 8G\n"
                       "umacct headroom off");
    return
        [options](Session &session) { return headroom(session.machine, session.output, *options); };
}

} // namespace umacct::tool
