// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sandbox.h"

namespace umacct {
namespace {

TEST(JsonOutput, IsExactAndMovesNoCursor) {
    const test::Sandbox sandbox;
    std::ostringstream out;
    Client client;

    client.path = "/a\xe2\x80\xae\xe2\x80\xac\xc2\x9b[2J\x1b[H\x7f/größe";
    client.comm = "cut \xe2\x82";
    print_json(out, to_json(Owners(sandbox.proc().parent_path()), client));

    const std::string line = out.str();
    EXPECT_TRUE(std::all_of(line.begin(), line.end() - 1, [](char c) {
        return c >= ' ' && c < '\x7f';
    })) << line;
    EXPECT_EQ(Json::parse(line)["path"], client.path);
    EXPECT_EQ(Json::parse(line)["comm"], "cut \ufffd");
}

/// The keys of a value, and of what is in it.
void collect_keys(const Json &json, std::set<std::string> &keys) {
    if (!json.is_structured())
        return;
    for (const auto &[key, value] : json.items()) {
        if (json.is_object())
            keys.insert(key);
        collect_keys(value, keys);
    }
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

/// Every attribute and status flag of the ABI is a key, with or without a unit.
TEST(JsonOutput, HasAllThatTheModuleSays) {
    static const std::regex attribute(
        R"(^\tUMACCT_(A_)?(STATUS|HOOK|ACCOUNT|CLIENT|EVENT)_(\w+)(?:\s*=[^,]*)?,.*)");
    // Those that are called otherwise.
    const std::map<std::string, std::string> names{{"STATUS_FLAGS", "flags"},
                                                   {"STATUS_HOOK", "hooks"},
                                                   {"CLIENT_START_TIME", "start_monotonic_us"},
                                                   {"ACCOUNT_REASON", "not_enforced"}};
    const test::Sandbox sandbox;
    const Owners owners(sandbox.proc().parent_path());
    std::map<std::string, std::set<std::string>> keys;
    std::ifstream header(UMACCT_SOURCE_DIR "/include/umacct.h");
    int seen = 0;

    collect_keys(to_json(Status()), keys["STATUS"]);
    collect_keys(to_json(Hook()), keys["HOOK"]);
    collect_keys(to_json(owners, Account(), MemoryController()), keys["ACCOUNT"]);
    collect_keys(to_json(Enforcement()), keys["ACCOUNT"]);
    collect_keys(to_json(owners, Client()), keys["CLIENT"]);
    collect_keys(to_json(owners, Event()), keys["EVENT"]);
    for (std::string line; std::getline(header, line);) {
        std::smatch match;

        if (!std::regex_match(line, match, attribute))
            continue;

        const std::string what = match[2];
        const std::string name = match[3];
        // Of what is no attribute, status flags alone are keys.
        if (name == "UNSPEC" || name == "PAD" || (!match[1].matched && what != "STATUS"))
            continue;
        ++seen;

        const auto other = names.find(what + "_" + name);
        const std::string key = other != names.end() ? other->second : lower(name);
        EXPECT_TRUE(keys[what].contains(key) || keys[what].contains(key + "_bytes") ||
                    keys[what].contains(key + "_ns"))
            << what << ' ' << name;
    }
    EXPECT_GT(seen, 80);
}

} // namespace
} // namespace umacct
