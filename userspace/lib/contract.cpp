// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/contract.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/xattr.h>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "lib/module/values.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// Nobody without CAP_SYS_ADMIN in the initial user namespace reads or writes "trusted."
constexpr const char *attribute = "trusted.umacct.contract";
constexpr const char *memory_key = "memory";

/// Both hold the lock for one request at a time.
constexpr auto patience_of_daemon = 1s;
constexpr auto patience_of_hook = 5s;
constexpr auto between_attempts = 1ms;

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);

    return error == std::errc() && end == text.data() + text.size() && !text.empty()
               ? std::optional(value)
               : std::nullopt;
}

/// Takes a word off a text of words.
std::string_view take_word(std::string_view &text) {
    const auto end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);

    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

} // namespace

std::optional<std::uint64_t> lower_limit(const std::optional<std::uint64_t> &a,
                                         const std::optional<std::uint64_t> &b) {
    if (a && b)
        return std::min(*a, *b);
    return a ? a : b;
}

std::string Contract::text() const {
    std::string words;

    for_each_setting([&](const auto &setting) {
        if (const auto &value = asked.*setting.change)
            words += fmt::format("{}={} ", setting.policy, static_cast<std::uint64_t>(*value));
    });
    if (memory_limit)
        words += fmt::format("{}={} ", memory_key, *memory_limit);
    if (!words.empty())
        words.pop_back();
    return words;
}

std::optional<Contract> Contract::of(std::string_view text) {
    Contract contract;

    while (!text.empty()) {
        const std::string_view word = take_word(text);
        const auto equals = std::min(word.find('='), word.size());
        const std::string_view key = word.substr(0, equals);
        const auto value = number_of(word.substr(std::min(equals + 1, word.size())));
        bool known = false;

        if (!value)
            return std::nullopt;
        if (key == memory_key) {
            contract.memory_limit = value;
            continue;
        }
        for_each_setting([&]<class Change, class Value, class Neutral>(
                             const Setting<Change, Value, Neutral> &setting) {
            if (key != setting.policy || *value > setting.most)
                return;
            contract.asked.*setting.change = static_cast<Neutral>(*value);
            known = true;
        });
        if (!known)
            return std::nullopt;
    }
    return contract;
}

AccountChange with_contract(const AccountChange &rule, const Contract &contract,
                            std::uint64_t most_keep) {
    const AccountChange &asked = contract.asked;
    AccountChange result = rule;

    result.hard = lower_limit(rule.hard ? rule.hard : contract.memory_limit, asked.hard);
    result.soft = lower_limit(rule.soft, asked.soft);
    if (result.soft && *result.soft != UMACCT_UNLIMITED && result.hard)
        result.soft = std::min(*result.soft, *result.hard);
    if (asked.keep) {
        const std::uint64_t keep = std::min(*asked.keep, rule.keep.value_or(most_keep));

        if (rule.keep || keep > 0)
            result.keep = keep;
    }
    if (asked.view == true)
        result.view = true;
    if (asked.charge == UMACCT_CHARGE_ON)
        result.charge = UMACCT_CHARGE_ON;
    return result;
}

Contract contract_of(const Cgroups &cgroups, std::string_view path) {
    const auto directory = cgroups.directory(path);
    // Longer than any that is written.
    std::array<char, 512> value{};
    const ssize_t size =
        directory ? getxattr(directory->c_str(), attribute, value.data(), value.size()) : -1;

    if (size < 0)
        return {};
    return Contract::of({value.data(), static_cast<std::size_t>(size)}).value_or(Contract());
}

int write_contract(const Cgroups &cgroups, std::string_view path, const Contract &contract) {
    const auto directory = cgroups.directory(path);
    const std::string text = contract.text();

    if (!directory)
        return ENOENT;
    return setxattr(directory->c_str(), attribute, text.data(), text.size(), 0) == 0 ? 0 : errno;
}

ContractLock::ContractLock(const std::filesystem::path &root, Setter who)
    : file_(open((root / contract_lock_file).c_str(),
                 O_RDWR | O_CLOEXEC | O_NOFOLLOW | (who == Setter::daemon ? O_CREAT : 0), 0600)) {
    const auto until = std::chrono::steady_clock::now() +
                       (who == Setter::daemon ? patience_of_daemon : patience_of_hook);

    while (file_.get() >= 0 && flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(between_attempts);
            continue;
        }
        // That a hook hangs is no reason to set nothing.
        if (who == Setter::daemon)
            return;
        throw Error(Failure::failed,
                    fmt::format("cannot lock /{}: another holds it", contract_lock_file),
                    "is umacctd stopped? See 'systemctl status umacctd'");
    }
}

} // namespace umacct
