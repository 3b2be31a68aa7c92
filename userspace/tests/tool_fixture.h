// SPDX-License-Identifier: GPL-2.0-or-later
/// The whole tool, run in the test's process against a fake module and a sandbox.
#pragma once

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"
#include "tool/cli.h"

namespace umacct::test {

struct Ran {
    int code;
    std::string out;
    std::string err;
};

class ToolFixture : public testing::Test {
protected:
    Ran run(std::vector<const char *> words) {
        std::ostringstream out;
        std::ostringstream err;

        words.insert(words.begin(), "umacct");
        const int code = tool::run_tool(static_cast<int>(words.size()), words.data(),
                                        {.connect = [this] { return connect(); },
                                         .proc = sandbox_.proc(),
                                         .out = out,
                                         .err = err,
                                         .root = sandbox_.proc().parent_path()});
        return {code, out.str(), err.str()};
    }

    /// Runs it and reads its JSON, which must be one line.
    nlohmann::json run_json(const std::vector<const char *> &words) {
        const Ran ran = run(words);

        EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
        nlohmann::json document = nlohmann::json::parse(ran.out);
        EXPECT_EQ(document["schema"], 1);
        return document;
    }

    std::unique_ptr<Transport> connect() {
        if (!loaded_)
            throw Error(Failure::missing, "the umacct kernel module is not loaded", "load it");
        return fake_.connect();
    }

    Sandbox sandbox_;
    FakeModule fake_;
    bool loaded_ = true;
};

} // namespace umacct::test
