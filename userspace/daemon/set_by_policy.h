// SPDX-License-Identifier: GPL-2.0-or-later
/// What umacctd set, as its policy said, for the next one to know: what is found in the kernel
/// tells nobody whether a rule or a person put it there. It is written down before it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lib/machine.h"
#include "lib/module/model.h"

namespace umacct {

class SetByPolicy {
public:
    using Tell = std::function<void(const std::string &line)>;

    struct Machine {
        std::optional<std::uint64_t> reserve;
        std::optional<umacct_charge_mode> charge; ///< the default

        bool operator==(const Machine &other) const = default;
    };

    struct Values {
        Machine machine;
        /// By the id of the cgroup, which none has again before the machine's next start.
        std::unordered_map<std::uint64_t, AccountChange> accounts;
    };

    /// What was written down since the machine's start; nothing where that is broken.
    SetByPolicy(const umacct::Machine &machine, Tell tell);

    const Values &values() const { return values_; }

    /// Empty where it set nothing.
    AccountChange of(std::uint64_t id) const;

    void set(std::uint64_t id, const AccountChange &change);
    void set_machine(const Machine &machine);
    void replace(Values values);

    /// The cgroup is gone.
    void forget(std::uint64_t id) { values_.accounts.erase(id); }

    /// So are all others.
    void keep(const std::unordered_set<std::uint64_t> &ids);

private:
    void add(const std::string &line);
    /// All of it anew.
    void write();

    Tell tell_;
    std::filesystem::path file_;
    std::string boot_id_;
    Values values_;
    std::size_t room_ = 0;   ///< how many lines may be appended before the file is written anew
    bool told_ = false;      ///< that it can't be written
    bool told_full_ = false; ///< that there are more accounts than it keeps
};

} // namespace umacct
