// SPDX-License-Identifier: GPL-2.0-or-later
/// check_json SCHEMA VERB: are the lines of stdin documents that VERB may print?
#include <iostream>
#include <span>
#include <string>

#include "tests/schema.h"

namespace {

int check(const std::string &schema_file, const std::string &verb) {
    const nlohmann::json schema = umacct::test::read_json(schema_file);
    int documents = 0;
    int wrong = 0;

    for (std::string line; std::getline(std::cin, line); ++documents) {
        const std::string violations =
            umacct::test::schema_violations(schema, verb, nlohmann::json::parse(line));

        std::cerr << violations;
        wrong += violations.empty() ? 0 : 1;
    }
    return documents > 0 && wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    const std::span words(argv, static_cast<std::size_t>(argc));

    if (words.size() != 3) {
        std::cerr << "usage: check_json SCHEMA VERB <DOCUMENTS\n";
        return 2;
    }
    try {
        return check(words[1], words[2]);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
