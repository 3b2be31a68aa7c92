// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/headroom.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>

#include <fmt/ostream.h>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"
#include "lib/memory/preflight.h"
#include "lib/policy/policy.h"
#include "lib/policy/validate.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/exit_code.h"

namespace umacct::tool {

Headroom HeadroomChange::on(Headroom before) const {
    return {.bytes = bytes.value_or(before.bytes), .block = block.value_or(before.block)};
}

Headroom headroom_now(const Machine &machine) {
    const Policy policy = read_policy(policy_files(machine.root()));

    return {.bytes = policy.headroom ? policy.headroom->of(machine.meminfo().total()) : 0,
            .block = policy.headroom_blocks.value_or(default_block)};
}

std::uint64_t parse_headroom(const std::string &text, const Machine &machine) {
    const std::uint64_t bytes = text == "off" ? 0 : parse_machine_size(text, machine);

    if (bytes > machine.meminfo().total())
        throw Error(Failure::usage,
                    fmt::format("{} is more than the machine's memory", format_size(bytes)),
                    "a tenth of it is much already");
    return bytes;
}

std::uint64_t parse_headroom_block(const std::string &text, const Machine &machine) {
    const std::uint64_t block = parse_block(text);
    // umacctd would refuse the policy, and each later one, until it is gone.
    const std::uint64_t largest =
        MachineFacts::of(machine, machine.meminfo().total()).largest_block;

    if (largest != 0 && block > largest)
        throw Error(Failure::usage, fmt::format("{} is more than the kernel's largest block, {}",
                                                format_size(block), format_size(largest)));
    return block;
}

std::string words_of(const Headroom &headroom) {
    return headroom.bytes == 0 ? "off"
                               : fmt::format("{} in blocks of {}", format_size(headroom.bytes),
                                             format_size(headroom.block));
}

std::optional<pid_t> headroom_daemon(const Machine &machine) {
    return Instance::running(machine.root());
}

namespace {

/// Until the machine's next start: what is to stay is for /etc.
std::filesystem::path headroom_file(const Machine &machine) {
    return machine.root() / "run/umacct.toml.d/headroom.toml";
}

/// Has it read the policy again.
std::optional<pid_t> tell_daemon(const Machine &machine) {
    const std::optional<pid_t> daemon = headroom_daemon(machine);

    if (daemon && kill(*daemon, SIGHUP) != 0)
        throw Error(failure_of(errno),
                    fmt::format("cannot tell umacctd ({}): {}", *daemon,
                                std::generic_category().message(errno)),
                    "it takes root");
    return daemon;
}

} // namespace

std::optional<pid_t> set_headroom(const Machine &machine, const Headroom &headroom) {
    const std::filesystem::path file = headroom_file(machine);
    const std::string value = headroom.bytes == 0
                                  ? "headroom = \"off\"\n"
                                  : fmt::format("headroom = \"{}\"\nheadroom_blocks = \"{}\"\n",
                                                headroom.bytes, headroom.block);

    if (const int code = replace_file(
            file, "# By 'umacct headroom', until the machine's next start.\n[machine]\n" + value))
        throw Error(failure_of(code),
                    fmt::format("cannot write {}: {}", file.string(),
                                std::generic_category().message(code)),
                    "it takes root");
    return tell_daemon(machine);
}

std::optional<pid_t> unset_headroom(const Machine &machine) {
    const std::filesystem::path file = headroom_file(machine);
    std::error_code error;

    std::filesystem::remove(file, error);
    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("cannot remove {}: {}", file.string(), error.message()),
                    "it takes root");
    return tell_daemon(machine);
}

int report_no_umacctd(const Output &output) {
    fmt::print(output.err, "umacct: set, but umacctd is not running\n"
                           "hint: systemctl enable --now umacctd\n");
    return exit_not_enforced;
}

} // namespace umacct::tool
