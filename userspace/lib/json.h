// SPDX-License-Identifier: GPL-2.0-or-later
/// The JSON output. Keys are the names of the netlink attributes, in lower case;
/// bytes and nanoseconds are integers; "no limit" and "not known" are null.
/// A key is never renamed or removed while the schema number stays.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lib/machine.h"

namespace umacct {

using Json = nlohmann::ordered_json;

constexpr int json_schema = 1;

Json to_json(const Status &status);
Json to_json(const Hook &hook);
Json to_json(const std::optional<Owner> &owner);
Json to_json(const Owners &owners, const Account &account);
/// With what the kernel's controller says of the account's cgroup.
Json to_json(const Owners &owners, const Account &account, const MemoryController &memory);
Json to_json(const Owners &owners, const Client &client);
Json to_json(const Owners &owners, const Event &event);
Json to_json(const Owners &owners, const std::vector<Client> &clients);

/// {"schema": 1}, for a verb to add to.
Json json_document();

/// The first document, then the members of the second.
Json merged(Json first, const Json &second);

/// One line.
void print_json(std::ostream &out, const Json &json);

} // namespace umacct
