// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/set_by_policy.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "lib/host/replace_file.h"
#include "lib/owners/state_file.h"

namespace umacct {

namespace {

/// What more there is goes without; with all of them the file is a few megabytes.
constexpr std::size_t most_accounts = 16384;
/// Lines that are superseded, beside as many as there are accounts.
constexpr std::size_t most_superseded = 256;

constexpr std::string_view of_boot = "boot ";
constexpr std::string_view of_machine = "machine ";

/// A number, or '-' for what isn't set.
template <class Value>
std::string word_of(const std::optional<Value> &value) {
    return value ? std::to_string(static_cast<std::uint64_t>(*value)) : "-";
}

/// The same, read; whether it is one.
template <class Value>
bool take(std::istream &line, std::optional<Value> &value, std::uint64_t most = UINT64_MAX) {
    std::uint64_t number = 0;
    std::string word;

    if (!(line >> word))
        return false;
    if (word == "-") {
        value.reset();
        return true;
    }
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number > most)
        return false;
    value = static_cast<Value>(number);
    return true;
}

bool at_end(std::istream &line) {
    return (line >> std::ws).eof();
}

std::string line_of(const SetByPolicy::Machine &machine) {
    return fmt::format("{}{} {}\n", of_machine, word_of(machine.reserve), word_of(machine.charge));
}

std::string line_of(std::uint64_t id, const AccountChange &change) {
    std::string line = std::to_string(id);

    for_each_setting([&](const auto &setting) { line += ' ' + word_of(change.*setting.change); });
    return line + '\n';
}

/// Whether all of them could be read.
bool take(std::istream &line, AccountChange &change) {
    bool all = true;

    for_each_setting([&](const auto &setting) {
        all = all && take(line, change.*setting.change, setting.most);
    });
    return all;
}

/// The last line about an account counts. Empty where there is one that can't be understood.
std::optional<SetByPolicy::Values> read_values(std::istream &text) {
    SetByPolicy::Values values;

    for (std::string each; std::getline(text, each);) {
        std::istringstream line(each);

        if (each.starts_with(of_machine)) {
            line.ignore(of_machine.size());
            if (!take(line, values.machine.reserve) ||
                !take(line, values.machine.charge, UMACCT_CHARGE_ON) || !at_end(line))
                return std::nullopt;
            continue;
        }

        std::optional<std::uint64_t> id;
        AccountChange change;
        if (!take(line, id) || !id || !take(line, change) || !at_end(line))
            return std::nullopt;
        values.accounts[*id] = change;
    }
    std::erase_if(values.accounts, [](const auto &each) { return each.second.empty(); });
    return values;
}

} // namespace

SetByPolicy::SetByPolicy(const umacct::Machine &machine, Tell tell)
    : tell_(std::move(tell)),
      file_(machine.root() / "run/umacctd/set"),
      boot_id_(boot_id(machine.proc())) {
    std::error_code ignored;
    std::string first;

    if (!std::filesystem::exists(file_, ignored))
        return;
    std::istringstream text(read_state_file(file_).value_or(""));
    std::getline(text, first);
    const bool has_boot = first.starts_with(of_boot);
    // Of another start's it is of other cgroups, which had the same ids.
    if (has_boot && first.substr(of_boot.size()) != boot_id_)
        return;
    auto values = has_boot ? read_values(text) : std::nullopt;
    if (values)
        values_ = std::move(*values);
    else
        tell_(fmt::format(
            "cannot read {}: it is damaged; settings of rules that no longer exist stay "
            "in force",
            file_.string()));
}

AccountChange SetByPolicy::of(std::uint64_t id) const {
    const auto found = values_.accounts.find(id);

    return found == values_.accounts.end() ? AccountChange{} : found->second;
}

void SetByPolicy::set(std::uint64_t id, const AccountChange &change) {
    if (of(id) == change)
        return;
    if (values_.accounts.size() == most_accounts && !values_.accounts.contains(id)) {
        if (!std::exchange(told_full_, true))
            tell_(fmt::format("rules have settings for more than {} cgroups; those of further "
                              "cgroups stay after their rule is removed",
                              most_accounts));
        return;
    }
    if (change.empty())
        values_.accounts.erase(id);
    else
        values_.accounts[id] = change;
    add(line_of(id, change));
}

void SetByPolicy::set_machine(const Machine &machine) {
    if (machine == values_.machine)
        return;
    values_.machine = machine;
    add(line_of(machine));
}

void SetByPolicy::replace(Values values) {
    values_ = std::move(values);
    write();
}

void SetByPolicy::keep(const std::unordered_set<std::uint64_t> &ids) {
    if (std::erase_if(values_.accounts,
                      [&](const auto &each) { return !ids.contains(each.first); }) > 0)
        write();
}

void SetByPolicy::add(const std::string &line) {
    if (room_ == 0) {
        write();
        return;
    }
    --room_;
    std::ofstream file(file_, std::ios::app);
    file << line;
    file.close();
    if (!file)
        write();
}

void SetByPolicy::write() {
    // Without it nobody knew later of which start it speaks.
    if (boot_id_.empty())
        return;

    std::string text = fmt::format("{}{}\n{}", of_boot, boot_id_, line_of(values_.machine));
    for (const auto &[id, change] : values_.accounts)
        text += line_of(id, change);
    const int code = replace_file(file_, text);
    room_ = code == 0 ? values_.accounts.size() + most_superseded : 0;
    if (!std::exchange(told_, code != 0) && code != 0)
        tell_(fmt::format("cannot write {}: {}; settings made by rules will look manual after "
                          "a restart",
                          file_.string(), std::generic_category().message(code)));
}

} // namespace umacct
