// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json.h"

#include <algorithm>

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
    const ProcessMemory memory{.total = 5, .swap = {}};
    append_json(text, owners, client, memory);
    EXPECT_EQ(text, json_text(to_json(owners, client, memory)));
    EXPECT_TRUE(text.ends_with("\"total_bytes\":5,\"swap_bytes\":null}")) << text;
    EXPECT_NE(text.find(R"("kind":"container")"), std::string::npos);
}

} // namespace
} // namespace umacct
