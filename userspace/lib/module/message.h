// SPDX-License-Identifier: GPL-2.0-or-later
/// Values as netlink attributes, and back, by the tables in fields.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/module/model.h"

namespace umacct {

/// The attributes of one message: what follows its generic netlink header.
using Payload = std::vector<std::byte>;

/// What ACCOUNT_GET and ACCOUNT_SET are asked.
struct AccountRequest {
    std::optional<std::uint64_t> id; ///< empty in a dump of all
    AccountChange change;
};

/// What CLIENT_GET is asked.
struct ClientRequest {
    std::optional<std::uint64_t> account_id; ///< empty for all
    bool exiting = false;                    ///< those alone
};

/// Of AccountRequest, ClientRequest, Status, Reclaim, Account, Enforcement, Client and Event.
/// Attributes of a newer module are passed over. Throws Error when the payload is malformed.
template <class Value>
Value decode(std::span<const std::byte> payload);

/// Of the same, and of MachineChange, which is what CONFIG_SET is asked.
template <class Value>
Payload encode(const Value &value);

} // namespace umacct
