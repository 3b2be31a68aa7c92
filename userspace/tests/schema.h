// SPDX-License-Identifier: GPL-2.0-or-later
/// The JSON Schema of what the tool prints, docs/umacct.schema.json, as a test.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace umacct::test {

/// Keys of a document that the schema lacks.
enum class Keys {
    known, ///< none: what we print is written down
    any,   ///< allowed, as for readers
};

/// Says where a document differs from its definition in a schema; empty if it doesn't.
/// verb: whose document it is; "summary" for none. Throws std::runtime_error if the
/// schema has no such definition.
std::string schema_violations(const nlohmann::json &schema, const std::string &verb,
                              const nlohmann::json &document, Keys keys = Keys::known);

/// Throws std::runtime_error if the file can't be read or is no JSON.
nlohmann::json read_json(const std::string &file);

} // namespace umacct::test
