// SPDX-License-Identifier: GPL-2.0-or-later
/// A person's order for the machine, until its next start: a file of policy in /run, which goes
/// before those in /etc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/host/file_descriptor.h"
#include "lib/machine.h"
#include "lib/memory/preflight.h"
#include "lib/module/values.h"
#include "lib/orders/carry_out.h"
#include "tool/output.h"

namespace umacct::tool {

struct Session;

/// The machine's name in errors.
constexpr const char *machine_itself = "the machine";

/// The memory that umacctd keeps free.
struct Headroom {
    std::uint64_t bytes = 0; ///< 0: off
    std::uint64_t block = 0;
};

/// A command's change of headroom; members that are empty stay.
struct HeadroomChange {
    std::optional<std::uint64_t> bytes; ///< 0: off
    std::optional<std::uint64_t> block;

    bool empty() const { return !bytes && !block; }
};

struct MachineWish {
    MachineChange module;
    HeadroomChange headroom;
    std::vector<std::string> taken_back; ///< keys, which are to be as without a person's order

    bool empty() const { return module.empty() && headroom.empty() && taken_back.empty(); }

    /// Whether it is about what umacctd keeps free.
    bool has_headroom() const;
};

/// A person's orders, as they are written; by their keys.
using MachineValues = std::map<std::string, std::string, std::less<>>;

/// Keeps other commands from changing files of the policy until it is closed: each has read what
/// the one before wrote.
using PolicyLock = std::unique_ptr<FileDescriptor>;
PolicyLock lock_policy(const Machine &machine);

struct MachineChanged {
    PolicyLock lock; ///< nothing has changed meanwhile where it is undone
    MachineValues values_before;
    MachineCarried of_module;
    Headroom before;
    Headroom after;
    std::optional<pid_t> daemon; ///< umacctd's pid, if it runs
};

/// All or nothing. Throws Error.
MachineChanged change_machine(Session &session, const MachineWish &wish);

/// All is as before it. Throws Error.
void undo(Session &session, const MachineChanged &changed);

/// Reads it from the policy. Throws Error where that can't be read.
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
    std::uint64_t neutral; ///< value without a setting
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

/// Has umacctd read the policy again; its process, or nothing where it doesn't run. Throws Error.
std::optional<pid_t> reload_daemon(const Machine &machine);

/// Says that nothing keeps what was set; the exit code.
int report_no_umacctd(const Output &output);

} // namespace umacct::tool
