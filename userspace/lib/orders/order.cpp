// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/orders/order.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"
#include "lib/module/values.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// Reading and writing "trusted." takes CAP_SYS_ADMIN in the initial user namespace.
constexpr const char *container_attribute = "trusted.umacct.contract";
constexpr const char *person_attribute = "trusted.umacct.person";
constexpr const char *memory_key = "memory";

/// The lock is held for one request at a time.
constexpr auto patience_of_daemon = 1s;
constexpr auto patience_of_others = 5s;
constexpr auto between_attempts = 1ms;

template <class Value>
std::optional<Value> number_of(std::string_view text) {
    Value value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);

    return error == std::errc() && end == text.data() + text.size() && !text.empty()
               ? std::optional(value)
               : std::nullopt;
}

/// Takes what is before a character off a text.
std::string_view take_until(std::string_view &text, char end_mark) {
    const auto end = std::min(text.find(end_mark), text.size());
    const std::string_view word = text.substr(0, end);

    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

Order read_attribute(const Cgroups &cgroups, std::string_view path, const char *name) {
    const auto directory = cgroups.directory(path);
    // Longer than any that is written.
    std::array<char, 512> value{};
    const ssize_t size =
        directory ? getxattr(directory->c_str(), name, value.data(), value.size()) : -1;

    if (size < 0)
        return {};
    return Order::of({value.data(), static_cast<std::size_t>(size)}).value_or(Order());
}

int write_attribute(const Cgroups &cgroups, std::string_view path, const char *name,
                    const Order &order) {
    const auto directory = cgroups.directory(path);
    const std::string text = order.text();

    if (!directory)
        return ENOENT;
    if (!text.empty())
        return setxattr(directory->c_str(), name, text.data(), text.size(), 0) == 0 ? 0 : errno;
    return removexattr(directory->c_str(), name) == 0 || errno == ENODATA ? 0 : errno;
}

/// Lines by the cgroup's id, which no other cgroup has before the machine's next start.
std::map<std::uint64_t, std::string> read_lines(const std::filesystem::path &file) {
    std::map<std::uint64_t, std::string> lines;
    std::ifstream in(file);
    std::uint64_t id = 0;

    for (std::string text; in >> id && std::getline(in >> std::ws, text);)
        lines[id] = text;
    return lines;
}

} // namespace

std::string_view name_of(Author author) {
    static constexpr std::array<std::string_view, 4> words{"nobody", "rule", "container", "person"};

    return words.at(static_cast<std::size_t>(author));
}

std::optional<std::uint64_t> lower_limit(const std::optional<std::uint64_t> &a,
                                         const std::optional<std::uint64_t> &b) {
    if (a && b)
        return std::min(*a, *b);
    return a ? a : b;
}

std::string Order::text() const {
    std::string words;

    for_each_setting([&](const auto &setting) {
        const auto &value = asked.*setting.change;
        const auto time = times.find(setting.attribute);

        if (!value)
            return;
        words += fmt::format("{}={}", setting.policy, static_cast<std::uint64_t>(*value));
        words += time == times.end() ? " " : fmt::format("@{} ", time->second);
    });
    if (memory_limit)
        words += fmt::format("{}={} ", memory_key, *memory_limit);
    if (!words.empty())
        words.pop_back();
    return words;
}

std::optional<Order> Order::of(std::string_view text) {
    Order order;

    while (!text.empty()) {
        std::string_view rest = take_until(text, ' ');
        const std::string_view key = take_until(rest, '=');
        const auto value = number_of<std::uint64_t>(take_until(rest, '@'));
        const auto time = number_of<std::int64_t>(rest);
        bool known = false;

        if (!value || (!rest.empty() && !time))
            return std::nullopt;
        if (key == memory_key) {
            order.memory_limit = value;
            continue;
        }
        for_each_setting([&]<class Change, class Value, class Neutral>(
                             const Setting<Change, Value, Neutral> &setting) {
            if (key != setting.policy || *value > setting.most)
                return;
            order.asked.*setting.change = static_cast<Neutral>(*value);
            if (time)
                order.times[setting.attribute] = *time;
            known = true;
        });
        if (!known)
            return std::nullopt;
    }
    return order;
}

Order OrderBook::container(std::string_view path) const {
    return read_attribute(cgroups_, path, container_attribute);
}

Order OrderBook::person(std::string_view path) const {
    // umacctd's right to read it is a capability, which access() leaves out.
    if (faccessat(AT_FDCWD, file_.c_str(), R_OK, AT_EACCESS) == 0 && cgroups_.exists(path)) {
        const auto lines = read_lines(file_);

        if (const auto found = lines.find(cgroups_.id(path)); found != lines.end())
            return Order::of(found->second).value_or(Order());
    }
    return read_attribute(cgroups_, path, person_attribute);
}

int OrderBook::keep_container(std::string_view path, const Order &order) const {
    return write_attribute(cgroups_, path, container_attribute, order);
}

int OrderBook::keep_person(std::string_view path, const Order &order) const {
    const int code = write_attribute(cgroups_, path, person_attribute, order);

    if (code == ENOENT || !cgroups_.exists(path))
        return ENOENT;
    // One that is in the file would come to light again.
    return keep_in_file(cgroups_.id(path), code == 0 ? Order() : order);
}

int OrderBook::keep_in_file(std::uint64_t id, const Order &order) const {
    auto lines = read_lines(file_);
    std::string text;

    if (order.empty() && lines.erase(id) == 0)
        return 0;
    if (!order.empty())
        lines[id] = order.text();
    for (const auto &[each, line] : lines)
        text += fmt::format("{} {}\n", each, line);
    return replace_private_file(file_, text);
}

OrderLock::OrderLock(const std::filesystem::path &root, Setter who)
    : file_([&] {
          std::error_code ignored;
          const std::filesystem::path file = root / order_lock_file;

          std::filesystem::create_directories(file.parent_path(), ignored);
          return open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT, 0600);
      }()) {
    const auto until = std::chrono::steady_clock::now() +
                       (who == Setter::daemon ? patience_of_daemon : patience_of_others);

    if (file_.get() < 0)
        return;
    while (!(has_lock_ = flock(file_.get(), LOCK_EX | LOCK_NB) == 0)) {
        if (std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(between_attempts);
            continue;
        }
        // Another program that hangs is no reason to set nothing.
        if (who == Setter::daemon)
            return;
        throw Error(Failure::failed,
                    fmt::format("cannot lock /{}: another holds it", order_lock_file),
                    "is umacctd stopped? See 'systemctl status umacctd'");
    }
}

std::string policy_mark(const std::filesystem::path &root) {
    std::string text;

    // Both are made anew, and a number that is used again has another time.
    for (const char *each : {kept_policy, policy_not_kept}) {
        struct stat status {};

        text += stat((root / each).c_str(), &status) == 0
                    ? fmt::format("{} {}.{:09};", status.st_ino, status.st_ctim.tv_sec,
                                  status.st_ctim.tv_nsec)
                    : ";";
    }
    return text;
}

} // namespace umacct
