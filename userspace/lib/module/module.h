// SPDX-License-Identifier: GPL-2.0-or-later
/// The loaded kernel module, asked and told over a Transport.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/module/model.h"
#include "lib/module/transport.h"

namespace umacct {

struct EventBatch {
    std::vector<Event> events;
    bool overrun = false; ///< this reader was too slow: events were dropped
    bool gone = false;    ///< the module was unloaded
    bool none = false;    ///< nothing came in that time
};

/// Every call may throw RequestError (the module refused) or Error.
class Module {
public:
    explicit Module(std::unique_ptr<Transport> transport);

    Status status();
    /// Empty when the module keeps no account for that cgroup.
    std::optional<Account> account(std::uint64_t id);
    /// All accounts that the caller may see, or those of one subtree; parents before
    /// children. Where removed cgroups leave memory to others all the time, some of it may
    /// be in two of them, or in none.
    std::vector<Account> accounts(std::optional<std::uint64_t> subtree = {});
    std::vector<Client> clients(std::optional<std::uint64_t> subtree = {});

    Enforcement set_account(std::uint64_t id, const AccountChange &change);
    /// 0 switches the reserve off.
    Enforcement set_reserve(std::uint64_t bytes);
    /// On or off; the default has nothing to inherit.
    Enforcement set_charge_default(umacct_charge_mode mode);
    /// Gives back to the kernel what the driver's pools hold.
    Reclaim reclaim();

    void subscribe();
    /// Waits for events, no longer than timeout; negative waits for ever.
    EventBatch receive(std::chrono::milliseconds timeout);

private:
    Enforcement configure(const ConfigRequest &request);
    template <class Value, class Request>
    std::vector<Value> dump(umacct_cmd command, const Request &request);

    std::unique_ptr<Transport> transport_;
};

} // namespace umacct
