// SPDX-License-Identifier: GPL-2.0-or-later
/// The JSON output. Keys are the names of the netlink attributes in lower case,
/// with their unit; "no limit" and "not known" are null.
/// A key is never renamed or removed while the schema number stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "lib/machine.h"

namespace umacct {

using Json = nlohmann::ordered_json;

constexpr int json_schema = 1;

Json to_json(const Status &status);
Json to_json(const Reclaim &reclaim);
Json to_json(const Hook &hook);
Json to_json(const std::optional<Owner> &owner);
Json to_json(const Owners &owners, const Account &account);
/// Adds the figures of the kernel's memory controller for the account's cgroup.
Json to_json(const Owners &owners, const Account &account, const MemoryController &memory);
Json to_json(const Owners &owners, const Client &client);
/// Adds the process's TOTAL and swap.
Json to_json(const Owners &owners, const Client &client, const ProcessMemory &memory);
Json to_json(const Owners &owners, const Event &event);
/// The same text as those have, without a document: for lists that may be long.
void append_json(std::string &to, const Owners &owners, const Account &account,
                 const MemoryController &memory);
void append_json(std::string &to, const Owners &owners, const Client &client,
                 const ProcessMemory &memory);
/// Converts the settings that a change makes, with the keys of an account.
Json to_json(const AccountChange &change);
Json to_json(const MachineChange &change);
/// Converts the last part of a change's document.
Json to_json(const Enforcement &made);

/// The schema's number, the time and the machine's start, for a verb to add to. boot_id:
/// of that start; empty where it isn't known.
Json json_document(const std::string &boot_id);

/// The first document, then the members of the second.
Json merged(Json first, const Json &second);

/// Prints one line of ASCII.
std::string json_text(const Json &json);

} // namespace umacct
