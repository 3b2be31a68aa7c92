// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/machine_order.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <type_traits>

#include <fcntl.h>
#include <fmt/ostream.h>
#include <sys/file.h>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"
#include "lib/memory/preflight.h"
#include "lib/policy/last_good.h"
#include "lib/policy/policy.h"
#include "lib/policy/validate.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/exit_code.h"
#include "tool/session.h"
#include "tool/settings.h"

namespace umacct::tool {

Headroom headroom_now(const Machine &machine) {
    const Policy policy = read_policy(policy_files(machine.root()));

    return {.bytes = policy.headroom ? policy.headroom->of(machine.meminfo().total()) : 0,
            .block = policy.headroom_blocks.value_or(default_block)};
}

std::uint64_t parse_headroom(const std::string &text, const Machine &machine) {
    const std::uint64_t bytes =
        text == "off" || text == none_word ? 0 : parse_machine_size(text, machine);

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

namespace {

std::filesystem::path person_file(const Machine &machine) {
    return machine.root() / "run/umacct.toml.d/machine.toml";
}

/// Reads what write_values() wrote, by key.
MachineValues read_values(const Machine &machine) {
    std::ifstream file(person_file(machine));
    MachineValues values;

    for (std::string line; std::getline(file, line);) {
        const auto middle = line.find(" = \"");

        if (middle != std::string::npos && line.ends_with('"'))
            values[line.substr(0, middle)] = line.substr(middle + 4, line.size() - middle - 5);
    }
    return values;
}

void write_values(const Machine &machine, const MachineValues &values) {
    const std::filesystem::path file = person_file(machine);
    std::string text = "# By 'umacct set machine', until the machine's next start.\n[machine]\n";
    std::error_code error;

    for (const auto &[key, value] : values)
        text += fmt::format("{} = \"{}\"\n", key, value);
    if (values.empty())
        std::filesystem::remove(file, error);
    const int code = values.empty() ? error.value() : replace_file(file, text);
    if (code != 0)
        throw Error(failure_of(code),
                    fmt::format("cannot write {}: {}", file.string(),
                                std::generic_category().message(code)),
                    run_as_root);
}

/// Reads the policy without persons' orders; nothing if it is wrong, and never was right.
Policy policy_of_etc(const Machine &machine) {
    const std::filesystem::path persons = person_file(machine);

    try {
        return policy_in_force(machine.root(), persons).policy;
    } catch (const PolicyError &) {
        return LastGood(machine.root()).policy(persons).value_or(Policy());
    }
}

template <class Value>
std::string value_text(const Value &value) {
    if constexpr (std::is_same_v<Value, umacct_charge_mode>)
        return std::string(name_of(value));
    else
        return value == 0 ? "off" : fmt::format("{}B", value);
}

} // namespace

std::optional<pid_t> reload_daemon(const Machine &machine) {
    const std::optional<pid_t> daemon = Instance::running(machine.root());

    if (daemon && kill(*daemon, SIGHUP) != 0)
        throw Error(failure_of(errno),
                    fmt::format("cannot signal umacctd ({}): {}", *daemon,
                                std::generic_category().message(errno)),
                    run_as_root);
    return daemon;
}

PolicyLock lock_policy(const Machine &machine) {
    const std::filesystem::path file = machine.root() / policy_lock_file;
    std::error_code ignored;

    std::filesystem::create_directories(file.parent_path(), ignored);
    auto lock = std::make_unique<FileDescriptor>(
        open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT, 0600));
    // A lock that can't be opened is none: neither can be opened what is to be written.
    while (flock(lock->get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    return lock;
}

bool MachineWish::has_headroom() const {
    bool has = !headroom.empty();

    for_each_headroom_setting([&](const auto &setting) {
        has = has || std::ranges::count(taken_back, setting.policy) > 0;
    });
    return has;
}

MachineChanged change_machine(Session &session, const MachineWish &wish) {
    const Machine &machine = session.machine;
    MachineChanged changed;

    changed.lock = lock_policy(machine);
    const Policy etc = policy_of_etc(machine);
    const MachineOrder of_etc = etc.machine_order(machine.meminfo().total());
    const MachineValues before = read_values(machine);
    MachineValues next = before;
    MachineOrder order;

    changed.values_before = before;
    const auto ask = [&](const auto &setting, const auto &value, bool others) {
        // A neutral value where no other order asks for anything is no order.
        if (value == setting.neutral && !others)
            next.erase(setting.policy);
        else
            next[setting.policy] = value_text(value);
    };

    for_each_machine_setting([&](const auto &setting) {
        const auto &others = of_etc.asked.*setting.change;

        if (const auto &asked = wish.module.*setting.change) {
            ask(setting, *asked, others.has_value());
            order.asked.*setting.change = asked;
        } else if (std::ranges::count(wish.taken_back, setting.policy) > 0) {
            order.asked.*setting.change = others.value_or(setting.neutral);
        }
    });
    for_each_headroom_setting([&](const auto &setting) {
        if (const auto &asked = wish.headroom.*setting.change)
            ask(setting, *asked, etc.headroom || etc.headroom_blocks);
    });
    for (const std::string &key : wish.taken_back)
        next.erase(key);
    if (wish.has_headroom())
        changed.before = headroom_now(machine);
    if (!order.asked.empty())
        session.module(); // whether it is there comes first
    if (next != before)
        write_values(machine, next);
    try {
        SettingNames names;

        for_each_machine_setting([&](const auto &setting) {
            if (order.asked.*setting.change)
                names.emplace_back(setting.attribute, setting.policy);
        });
        request_change(machine_itself, names, [&] {
            if (!order.asked.empty())
                changed.of_module = carry_out(machine, session.module(), order, true);
        });
    } catch (const Error &) {
        if (next != before)
            write_values(machine, before);
        throw;
    }
    if (wish.has_headroom())
        changed.after = headroom_now(machine);
    if (next != before || wish.has_headroom())
        changed.daemon = reload_daemon(machine);
    return changed;
}

void undo(Session &session, const MachineChanged &changed) {
    MachineOrder order;

    order.asked = changed.of_module.before;
    write_values(session.machine, changed.values_before);
    carry_out(session.machine, session.module(), order, true);
    reload_daemon(session.machine);
}

int report_no_umacctd(const Output &output) {
    fmt::print(output.err, "umacct: set, but umacctd is not running\n"
                           "hint: systemctl enable --now umacctd\n");
    return exit_not_enforced;
}

} // namespace umacct::tool
