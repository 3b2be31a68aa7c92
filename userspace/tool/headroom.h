// SPDX-License-Identifier: GPL-2.0-or-later
/// What umacctd keeps free, as commands set it until the machine's next start.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/machine.h"
#include "lib/memory/preflight.h"
#include "lib/module/values.h"
#include "tool/output.h"

namespace umacct::tool {

struct Headroom {
    std::uint64_t bytes = 0; ///< 0: off
    std::uint64_t block = 0;
};

/// What a command asks for; what it doesn't name stays.
struct HeadroomChange {
    std::optional<std::uint64_t> bytes; ///< 0: off
    std::optional<std::uint64_t> block;

    bool empty() const { return !bytes && !block; }

    Headroom on(Headroom before) const;
};

/// By the policy. Throws Error where that can't be read.
Headroom headroom_now(const Machine &machine);

/// "8G", "10%" or "off", in bytes. Throws Error (usage) for more than the machine has.
std::uint64_t parse_headroom(const std::string &text, const Machine &machine);

/// A size of blocks that the kernel has. Throws Error (usage).
std::uint64_t parse_headroom_block(const std::string &text, const Machine &machine);

/// One of its settings, which umacctd keeps in place of the module.
struct HeadroomSetting {
    const char *policy; ///< its key of the machine
    const char *help;
    SettingKind kind;
    std::optional<std::uint64_t> HeadroomChange::*change;
    std::uint64_t neutral; ///< where nobody asks for anything
    std::uint64_t (*parse)(const std::string &text, const Machine &machine);
};

/// Calls use() with each, as for_each_machine_setting() does.
void for_each_headroom_setting(auto &&use) {
    use(HeadroomSetting{"headroom", "keep this free, by umacctd: a size, such as 8G or 10%, or off",
                        SettingKind::size, &HeadroomChange::bytes, 0, parse_headroom});
    use(HeadroomSetting{"headroom_blocks", "keep it free in blocks of this size, such as 2M or 64K",
                        SettingKind::size, &HeadroomChange::block, default_block,
                        parse_headroom_block});
}

/// "8.00 GiB in blocks of 2.00 MiB" or "off"
std::string words_of(const Headroom &headroom);

/// umacctd's pid, if it runs. Throws Error where that can't be known.
std::optional<pid_t> headroom_daemon(const Machine &machine);

/// Writes it to /run/umacct.toml.d and has umacctd read it, of which it returns the pid if it
/// runs. Throws Error.
std::optional<pid_t> set_headroom(const Machine &machine, const Headroom &headroom);

/// Has the policy in /etc hold again: removes what set_headroom() wrote, and does the rest as it
/// does. Throws Error.
std::optional<pid_t> unset_headroom(const Machine &machine);

/// Says that nothing keeps what was set; the exit code.
int report_no_umacctd(const Output &output);

} // namespace umacct::tool
