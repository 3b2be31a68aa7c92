// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json.h"

#include <algorithm>
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

} // namespace
} // namespace umacct
