// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sandbox.h"

namespace umacct {
namespace {

TEST(JsonOutput, IsExactAndMovesNoCursor) {
    const test::Sandbox sandbox;
    const Owners owners(sandbox.proc().parent_path());
    Client client;

    client.path = "/a\xe2\x80\xae\xe2\x80\xac\xc2\x9b[2J\x1b[H\x7f/größe";
    client.comm = "cut \xe2\x82";

    const std::string line = json_text(to_json(owners, client));
    EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c < '\x7f'; })) << line;
    EXPECT_EQ(Json::parse(line)["path"], client.path);
    EXPECT_EQ(Json::parse(line)["comm"], "cut \ufffd");
}

/// Lists are written without a document, and say the same.
TEST(JsonOutput, IsTheSameWithoutADocument) {
    test::Sandbox sandbox;
    const Owners owners(sandbox.proc().parent_path());
    Account account;
    Client client;
    std::string text;

    account.path = "/system.slice/a \"b\"\\.service/\x1b\xff";
    account.parent_id = 7;
    account.hard = 1ULL << 40;
    account.view = true;
    for (const std::optional<std::uint64_t> max :
         {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(UMACCT_UNLIMITED),
          std::optional<std::uint64_t>(5)}) {
        const MemoryController memory{.current = 4096, .max = max};

        text.clear();
        append_json(text, owners, account, memory);
        EXPECT_EQ(text, json_text(to_json(owners, account, memory)));
    }
    for (const double percent : {0.0, 0.01, 7.5, 12.34, 99.0, 100.0}) {
        const MemoryController memory{
            .pressure = Pressure{.some = {.avg10 = percent, .total_us = 1ULL << 40}, .full = {}}};

        text.clear();
        append_json(text, owners, account, memory);
        EXPECT_EQ(text, json_text(to_json(owners, account, memory)));
        EXPECT_NE(text.find("\"some_total_us\":1099511627776"), std::string::npos);
    }
    client.comm = "größe";
    client.path = "/docker/" + std::string(64, 'a');
    text.clear();
    append_json(text, owners, client);
    EXPECT_EQ(text, json_text(to_json(owners, client)));
    EXPECT_NE(text.find(R"("kind":"container")"), std::string::npos);
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
    collect_keys(to_json(Reclaim()), keys["STATUS"]);
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

        const auto other = names.find(fmt::format("{}_{}", what, name));
        const std::string key = other != names.end() ? other->second : lower(name);
        EXPECT_TRUE(keys[what].contains(key) || keys[what].contains(key + "_bytes") ||
                    keys[what].contains(key + "_ns"))
            << what << ' ' << name;
    }
    EXPECT_GT(seen, 80);
}

} // namespace
} // namespace umacct
