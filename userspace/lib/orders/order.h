// SPDX-License-Identifier: GPL-2.0-or-later
/// An order: the settings that one author wants a cgroup to have. Those of a container and of a
/// person are kept with the cgroup, in an extended attribute that takes CAP_SYS_ADMIN to read and
/// to write; they end with the cgroup.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/host/file_descriptor.h"
#include "lib/module/model.h"

namespace umacct {

/// The author of the order that a value is by.
enum class Author : std::uint8_t {
    nobody, ///< none: the value is neutral
    rule,   ///< the policy
    container,
    person,
};

/// The word that JSON has for it.
std::string_view name_of(Author author);

/// A container's, or a person's.
struct Order {
    AccountChange asked;
    /// The container's own memory limit: a hard limit where no rule has one.
    std::optional<std::uint64_t> memory_limit;
    /// The times of a person's settings, in seconds since the epoch; by attribute.
    std::map<std::uint16_t, std::int64_t> times;

    bool empty() const { return asked.empty() && !memory_limit; }

    /// "hard=1073741824@1795840000 view=1"
    std::string text() const;

    /// Empty for a text that is none.
    static std::optional<Order> of(std::string_view text);

    bool operator==(const Order &other) const = default;
};

/// The policy's order for a cgroup.
struct RuleOrder {
    AccountChange asked;
    std::string rule;                ///< "rule "people", /etc/umacct.toml:12"
    std::optional<std::string> view; ///< the place in [machine], where the view is by that
    std::uint64_t most_keep = 0;     ///< the largest guarantee of a container without a rule's
};

/// The order of the policy and of persons for the machine.
struct MachineOrder {
    MachineChange asked;
    std::map<std::uint16_t, std::string> by; ///< "[machine], /etc/umacct.toml:2", by attribute
};

/// All orders for a cgroup.
struct Orders {
    RuleOrder rule;
    Order container;
    Order person;
};

/// The limit that says less, of those that say something.
std::optional<std::uint64_t> lower_limit(const std::optional<std::uint64_t> &a,
                                         const std::optional<std::uint64_t> &b);

/// The place of the orders of containers and of persons. A person's order for a cgroup that takes
/// no attribute, as that of a read-only file system, is in a file of /run.
class OrderBook {
public:
    /// root: where /run is.
    OrderBook(const Cgroups &cgroups, const std::filesystem::path &root)
        : cgroups_(cgroups), file_(root / "run/umacctd/persons") {}

    /// Empty where there is none, or the caller may not read it.
    Order container(std::string_view path) const;
    Order person(std::string_view path) const;

    /// 0, or an errno. An empty order is removed.
    int keep_container(std::string_view path, const Order &order) const;
    int keep_person(std::string_view path, const Order &order) const;

private:
    int keep_in_file(std::uint64_t id, const Order &order) const;

    const Cgroups &cgroups_;
    std::filesystem::path file_;
};

/// Keeps other programs from setting anything between reading the orders of a cgroup and setting
/// what comes of them: the last one has seen what the one before wrote.
///
/// A policy may take long to read, and is read without the lock. Instead, a setter that goes by a
/// rule reads policy_mark() before the policy, and again with the lock held: if it is the same,
/// umacctd has not kept another policy, and its look at all cgroups by that is yet to come.
class OrderLock {
public:
    enum class Setter : std::uint8_t {
        daemon, ///< goes on without the lock where another hangs
        other,
    };

    /// Throws Error for another than the daemon, if the lock stays taken for seconds.
    OrderLock(const std::filesystem::path &root, Setter who);

    /// Whether the lock is held: always, but for the daemon's where another hangs, and where /run
    /// can't be written.
    bool is_held() const { return has_lock_; }

private:
    FileDescriptor file_; ///< closing it gives the lock back
    bool has_lock_ = false;
};

/// Returns a text that is another each time that umacctd keeps another policy, or fails to. The
/// same always where the caller may not read the folder.
std::string policy_mark(const std::filesystem::path &root);

} // namespace umacct
