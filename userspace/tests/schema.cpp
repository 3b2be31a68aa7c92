// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/schema.h"

#include <fstream>
#include <stdexcept>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace umacct::test {

using nlohmann::json;

namespace {

/// Returns a schema with all keys of the definitions that it is made from.
json whole(json schema, const json &definitions) {
    for (json &part : schema) {
        if (part.is_structured())
            part = whole(part, definitions);
    }
    if (!schema.is_object() || !schema.contains("allOf"))
        return schema;
    for (const json &base : schema["allOf"]) {
        const std::string name = base.at("$ref");
        const json keys = whole(definitions.at(name.substr(name.rfind('/') + 1)), definitions);

        schema["properties"].update(keys["properties"]);
        for (const json &key : keys["required"])
            schema["required"].push_back(key);
    }
    schema.erase("allOf");
    return schema;
}

/// Readers have to take keys that they don't know, but what we print is written down.
json strict(json schema) {
    for (json &part : schema) {
        if (part.is_structured())
            part = strict(part);
    }
    if (schema.is_object() && schema.contains("properties") &&
        !schema.contains("additionalProperties"))
        schema["additionalProperties"] = false;
    return schema;
}

} // namespace

std::string schema_violations(const json &schema, const std::string &verb, const json &document,
                              Keys keys) {
    const std::string definition = "document_" + verb;

    if (!schema.at("definitions").contains(definition))
        throw std::runtime_error("the schema has no definition " + definition);

    const json &definitions = schema["definitions"];
    const json of_verb = {{"$ref", "#/definitions/" + definition},
                          {"definitions", keys == Keys::known
                                              ? strict(whole(definitions, definitions))
                                              : definitions}};
    valijson::Schema parsed;
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(of_verb), parsed);

    valijson::ValidationResults results;
    valijson::Validator validator;
    if (validator.validate(parsed, valijson::adapters::NlohmannJsonAdapter(document), &results))
        return "";

    std::string text;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
        for (const std::string &step : error.context)
            text += step;
        text += ": " + error.description + "\n";
    }
    return text;
}

json read_json(const std::string &file) {
    std::ifstream stream(file);

    if (!stream)
        throw std::runtime_error(file + " can't be read");
    return json::parse(stream);
}

} // namespace umacct::test
