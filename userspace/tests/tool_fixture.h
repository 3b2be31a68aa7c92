// SPDX-License-Identifier: GPL-2.0-or-later
/// The whole tool, run in the test's process against a fake module and a sandbox.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"
#include "tests/schema.h"
#include "tests/source.h"
#include "tool/app.h"

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
        const int code = tool::run_tool(
            static_cast<int>(words.size()), words.data(),
            {.connect = [this] { return connect(); },
             .output = {.out = out, .err = err, .width = width_, .proc = sandbox_.proc()},
             .root = sandbox_.proc().parent_path(),
             .observe_meanwhile = observe_meanwhile_});
        return {code, out.str(), err.str()};
    }

    /// Runs it and reads its JSON, which must be one line.
    nlohmann::json run_json(const std::vector<const char *> &words) {
        const Ran ran = run(words);

        EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
        nlohmann::json document = nlohmann::json::parse(ran.out);
        expect_documented(words, document);
        return document;
    }

    /// The document that the command prints: its verb's, or one of its own.
    static std::string document_of(const std::vector<const char *> &words) {
        static const std::map<std::string, std::string> own{{"config load", "restore"},
                                                            {"history --html", "report"},
                                                            {"preflight --fix", "reclaim"},
                                                            {"setup observer", "observer"},
                                                            {"show guard", "guard"}};

        if (words.size() > 1) {
            const auto found = own.find(words[0] + std::string(" ") + words[1]);

            if (found != own.end())
                return found->second;
        }
        for (const std::string_view word : words) {
            if (word == "--version")
                return "version";
            if (!word.starts_with('-'))
                return std::string(word);
        }
        return "summary";
    }

    /// How a document of the verb's differs from its schema in docs/; empty if it doesn't.
    static std::string schema_of(const std::string &verb, const nlohmann::json &document) {
        static const nlohmann::json schema = read_json(source("docs/umacct.schema.json"));

        return schema_violations(schema, verb, document);
    }

    static void expect_documented(const std::vector<const char *> &words,
                                  const nlohmann::json &document) {
        EXPECT_EQ(schema_of(document_of(words), document), "") << document;
    }

    std::unique_ptr<Transport> connect() {
        if (!loaded_)
            throw Error(unreachable_, "the umacct kernel module is not loaded", "load it");
        return fake_.connect();
    }

    Sandbox sandbox_;
    FakeModule fake_;
    bool loaded_ = true;
    Connection::Connect observe_meanwhile_ = {};
    Failure unreachable_ = Failure::missing; ///< failure of a module that isn't loaded
    int width_ = 0;                          ///< the terminal's; 0 for none
};

} // namespace umacct::test
