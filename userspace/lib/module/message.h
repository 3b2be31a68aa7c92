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

/// Request of ACCOUNT_GET and ACCOUNT_SET.
struct AccountRequest {
    std::optional<std::uint64_t> id; ///< empty in a dump of all
    AccountChange change;
};

/// Request of CLIENT_GET.
struct ClientRequest {
    std::optional<std::uint64_t> account_id; ///< empty for all
    bool exiting = false;                    ///< those alone
};

/// Decodes AccountRequest, ClientRequest, Status, Reclaim, Account, Enforcement, Client or Event.
/// Ignores attributes of a newer module. Throws Error if the payload is malformed.
template <class Value>
Value decode(std::span<const std::byte> payload);

/// Encodes the same, and MachineChange, the request of CONFIG_SET.
template <class Value>
Payload encode(const Value &value);

} // namespace umacct
