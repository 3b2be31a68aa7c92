// SPDX-License-Identifier: GPL-2.0-or-later
/// include/umacct.h and docs/netlink/specs/umacct.yaml say the same thing: every
/// name, its number and, of an attribute, its type.
#include <cctype>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace {

/// "UMACCT_A_STATUS_USAGE" -> "24 u64"; the type is empty for what has none.
using Abi = std::map<std::string, std::string>;

std::ifstream open_source(const std::string &path) {
    std::ifstream file(std::string(UMACCT_SOURCE_DIR) + "/" + path);

    EXPECT_TRUE(file) << path;
    return file;
}

bool is_bookkeeping(const std::string &name) {
    static const std::regex counts_them("UMACCT_(A_)?[A-Z]+_MAX");

    return name.starts_with("__") || name.ends_with("_UNSPEC") ||
           std::regex_match(name, counts_them);
}

/// Reads the enumerators: one on a line, numbered as C does.
Abi read_header() {
    static const std::regex enumerator(
        R"(^\t(\w+)(?:\s+= (\d+)( << (\d+))?)?,?\s*(?:/\* *(u32|u64|string|flag|nest)?\b.*)?$)");
    std::ifstream file = open_source("include/umacct.h");
    Abi abi;
    bool inside = false;
    unsigned next = 0;

    for (std::string line; std::getline(file, line);) {
        std::smatch match;

        if (line.starts_with("enum")) {
            inside = true;
            next = 0;
        } else if (line.starts_with("}")) {
            inside = false;
        } else if (inside && std::regex_match(line, match, enumerator)) {
            const bool is_flag = match[4].matched;

            if (match[2].matched)
                next = static_cast<unsigned>(std::stoul(match[2]));
            if (is_flag)
                next <<= std::stoul(match[4]);
            const bool has_type = match[1].str().starts_with("UMACCT_A_");
            if (!is_bookkeeping(match[1]))
                abi[match[1]] = std::to_string(next) + " " +
                                (!has_type                          ? ""
                                 : match[1].str().ends_with("_PAD") ? "pad"
                                                                    : match[5].str());
            next = next + 1;
        }
    }
    return abi;
}

std::string c_name(const std::string &prefix, const std::string &name) {
    std::string result = prefix + name;

    for (char &c : result)
        c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return result;
}

/// Reads the parts of the specification that give names and numbers. It is YAML
/// as this project writes it: one key on a line, lists in block style.
class Specification {
public:
    Abi read() {
        std::ifstream file = open_source("docs/netlink/specs/umacct.yaml");

        for (std::string line; std::getline(file, line);)
            read_line(line);
        finish();
        return abi_;
    }

private:
    void read_line(const std::string &line) {
        static const std::regex key(R"re(^( *)([a-z-]+):\s*"?([^"]*)"?$)re");
        std::smatch match;

        if (!std::regex_match(line, match, key))
            return;
        const auto indent = match[1].length();
        const std::string name = match[2];
        const std::string value = match[3];

        if (indent == 0) {
            finish();
            section_ = name;
            set_ = {};
        } else if (section_ == "operations") {
            read_operation(indent, name, value);
        } else if (section_ == "definitions" || section_ == "attribute-sets") {
            read_set(indent, name, value);
        }
    }

    void read_operation(std::ptrdiff_t indent, const std::string &name, const std::string &value) {
        if (indent == 2 && name == "name-prefix")
            set_ = {.prefix = value, .number = 1};
        else if (indent == 6 && name == "name")
            abi_[c_name(set_.prefix, value)] = std::to_string(set_.number++) + " ";
    }

    void read_set(std::ptrdiff_t indent, const std::string &name, const std::string &value) {
        if (indent == 4 && name == "name") {
            finish();
            set_ = {.prefix = "", .number = section_ == "attribute-sets" ? 1U : 0U};
        } else if (indent == 4 && name == "name-prefix") {
            set_.prefix = value;
        } else if (indent == 4 && name == "value-start") {
            set_.number = static_cast<unsigned>(std::stoul(value));
        } else if (indent == 4 && name == "type") {
            set_.flags = value == "flags";
        } else if (indent == 8 && name == "name") {
            finish();
            entry_ = c_name(set_.prefix, value);
        } else if (indent == 8 && name == "type") {
            type_ = value;
        }
    }

    /// The entry that was being read is complete.
    void finish() {
        if (!entry_.empty()) {
            abi_[entry_] =
                std::to_string(set_.flags ? 1U << set_.number : set_.number) + " " + type_;
            ++set_.number;
        }
        entry_.clear();
        type_.clear();
    }

    struct Set {
        std::string prefix;
        unsigned number = 0;
        bool flags = false;
    };

    Abi abi_;
    std::string section_;
    Set set_;
    std::string entry_;
    std::string type_;
};

TEST(Abi, TheHeaderAndTheSpecificationSayTheSame) {
    const Abi header = read_header();
    const Abi specification = Specification().read();

    EXPECT_GT(header.size(), 100U) << "the header could not be read";
    for (const auto &[name, number] : header) {
        const auto found = specification.find(name);

        if (found == specification.end())
            ADD_FAILURE() << name << " is in the header alone";
        else
            EXPECT_EQ(found->second, number) << name << ": specification, header";
    }
    for (const auto &[name, number] : specification)
        EXPECT_TRUE(header.contains(name)) << name << " is in the specification alone";
}

} // namespace
