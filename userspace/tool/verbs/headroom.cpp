// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "lib/json.h"
#include "lib/memory/preflight.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/machine_order.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct HeadroomOptions {
    std::optional<std::string> size;
    std::optional<std::string> blocks;
};

/// Only root may know it.
std::optional<pid_t> daemon_seen(const Machine &machine, bool &known) {
    try {
        return Instance::running(machine.root());
    } catch (const Error &error) {
        if (error.failure() != Failure::permission)
            throw;
        known = false;
        return std::nullopt;
    }
}

int headroom(Session &session, const HeadroomOptions &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const Headroom before = headroom_now(machine);
    const bool unset = options.size == "default" || options.size == back_word;
    MachineWish wish;

    if (options.blocks && unset)
        throw Error(Failure::usage, "--blocks: 'default' takes the policy's blocks, too");
    if (options.blocks && !options.size)
        throw Error(Failure::usage, "--blocks: SIZE is missing",
                    "for example: umacct headroom 8G --blocks 64K");
    if (options.size && !unset)
        wish.headroom.bytes = read_argument("SIZE", *options.size, [&](const std::string &text) {
            return parse_headroom(text, machine);
        });
    if (options.blocks)
        wish.headroom.block =
            read_argument("--blocks", *options.blocks, [&](const std::string &text) {
                return parse_headroom_block(text, machine);
            });
    bool known = true;
    std::optional<pid_t> daemon;
    if (unset)
        for_each_headroom_setting(
            [&](const auto &setting) { wish.taken_back.emplace_back(setting.policy); });
    const MachineChanged changed = wish.empty() ? MachineChanged() : change_machine(session, wish);
    daemon = wish.empty() ? daemon_seen(machine, known) : changed.daemon;
    const Headroom setting = wish.empty() ? before : changed.after;
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
    if (!wish.empty() && !unset)
        note_machine(output, changed);
    if (daemon || !known || setting.bytes == 0)
        return 0;
    return report_no_umacctd(output);
}

} // namespace

Action add_headroom(CLI::App &verb) {
    auto options = std::make_shared<HeadroomOptions>();

    verb.add_option("SIZE", options->size,
                    "how much, such as 8G or 10%, off, or default, which is what the policy says; "
                    "without it, print it");
    verb.add_option("--blocks", options->blocks, "in blocks of this size; default: 2M")
        ->type_name("SIZE");
    add_examples(verb, "umacct headroom\n"
                       "umacct headroom 8G\n"
                       "umacct headroom off\n"
                       "umacct headroom default    as /etc/umacct.toml says");
    return [options](Session &session) { return headroom(session, *options); };
}

} // namespace umacct::tool
