// SPDX-License-Identifier: GPL-2.0-or-later
/// The loaded kernel module, over a Transport.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/module/model.h"
#include "lib/module/transport.h"

namespace umacct {

/// Every call may throw RequestError (the module refused) or Error.
class Module {
public:
    explicit Module(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

    Status status();
    /// Empty when the module keeps no account for that cgroup.
    std::optional<Account> account(std::uint64_t id);
    /// All accounts that the caller may see, or those of one subtree; parents before
    /// children. Where removed cgroups leave memory to others all the time, some of it may
    /// be in two of them, or in none.
    std::vector<Account> accounts(std::optional<std::uint64_t> subtree = {});
    /// The same, one by one: the paths of many thousands that tenants made may be 60 MiB together.
    /// begin: called before the first, and where all of it is read again.
    void for_each_account(const std::function<void()> &begin,
                          const std::function<void(Account account)> &take);
    std::vector<Client> clients(std::optional<std::uint64_t> subtree = {});
    std::vector<Client> exiting_clients(std::optional<std::uint64_t> subtree = {});

    Enforcement set_account(std::uint64_t id, const AccountChange &change);
    Enforcement set_machine(const MachineChange &change);
    /// 0 switches the reserve off.
    Enforcement set_reserve(std::uint64_t bytes);
    /// Sets the machine's default, on or off: it has nothing to inherit from.
    Enforcement set_charge_default(umacct_charge_mode mode);
    /// Gives back to the kernel what the driver's pools hold.
    Reclaim reclaim();

    void subscribe();
    /// Waits for events, no longer than timeout; negative waits for ever.
    Received<Event> receive(std::chrono::milliseconds timeout);

private:
    template <class Value, class Request, class Begin, class Take>
    void dump(umacct_cmd command, const Request &request, Begin begin, Take take);
    template <class Value, class Request>
    std::vector<Value> all(umacct_cmd command, const Request &request);

    std::unique_ptr<Transport> transport_;
};

/// The module, spoken to when first needed; or who answers in its place.
class Connection {
public:
    using Connect = std::function<std::unique_ptr<Transport>()>;

    /// otherwise: asked where the module isn't loaded; may be empty.
    explicit Connection(Connect connect, Connect otherwise = {})
        : connect_(std::move(connect)), otherwise_(std::move(otherwise)) {}

    /// Connects on first use. Throws Error: missing when neither answers.
    Module &module();

    /// The same for who has no use for another than the module.
    Module &loaded() { return module_ ? *module_ : module_.emplace(connect_()); }

    /// Sets the source to use if the module doesn't answer.
    void set_otherwise(Connect otherwise) { otherwise_ = std::move(otherwise); }

    /// Lets module() connect anew: what was connected to may be gone.
    void reset() { module_.reset(); }

private:
    Connect connect_;
    Connect otherwise_;
    std::optional<Module> module_;
};

} // namespace umacct
