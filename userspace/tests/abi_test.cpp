// SPDX-License-Identifier: GPL-2.0-or-later
/// include/umacct.h and docs/netlink/specs/umacct.yaml say the same thing: every
/// name, its number and, of an attribute, its type.
#include <cctype>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <umacct.h>

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

YAML::Node load_specification() {
    return YAML::LoadFile(UMACCT_SOURCE_DIR "/docs/netlink/specs/umacct.yaml");
}

std::string c_name(const std::string &prefix, const std::string &name) {
    std::string result = prefix + name;

    for (char &c : result)
        c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return result;
}

std::string text(const YAML::Node &node, const char *key, const std::string &otherwise = "") {
    return node[key] ? node[key].as<std::string>() : otherwise;
}

/// The names in a list, numbered from first on unless they say otherwise.
void read_list(Abi &abi, const YAML::Node &list, const std::string &prefix, unsigned first,
               const std::function<std::string(unsigned, const YAML::Node &)> &describe) {
    for (const YAML::Node &entry : list) {
        if (entry.IsMap() && entry["value"])
            first = entry["value"].as<unsigned>();
        abi[c_name(prefix, entry.IsMap() ? text(entry, "name") : entry.as<std::string>())] =
            describe(first++, entry);
    }
}

std::string number(unsigned value, const YAML::Node & /*entry*/) {
    return std::to_string(value) + " ";
}

Abi read_specification(const YAML::Node &spec) {
    Abi abi;

    for (const YAML::Node &set : spec["definitions"]) {
        const bool flags = text(set, "type") == "flags";

        read_list(abi, set["entries"], text(set, "name-prefix"),
                  set["value-start"] ? set["value-start"].as<unsigned>() : 0U,
                  [flags](unsigned value, const YAML::Node &entry) {
                      return number(flags ? 1U << value : value, entry);
                  });
    }
    for (const YAML::Node &set : spec["attribute-sets"])
        read_list(abi, set["attributes"], text(set, "name-prefix"), 1,
                  [](unsigned value, const YAML::Node &attribute) {
                      return std::to_string(value) + " " + text(attribute, "type");
                  });
    read_list(abi, spec["operations"]["list"], text(spec["operations"], "name-prefix"), 1, number);
    return abi;
}

TEST(Abi, TheHeaderAndTheSpecificationSayTheSame) {
    const Abi header = read_header();
    const Abi specification = read_specification(load_specification());

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

/// The names in one list of each map in a list, by the map's name.
std::map<std::string, std::set<std::string>> names_in(const YAML::Node &list, const char *key) {
    std::map<std::string, std::set<std::string>> names;

    for (const YAML::Node &each : list) {
        for (const YAML::Node &entry : each[key] ? each[key] : YAML::Node())
            names[text(each, "name")].insert(entry.IsMap() ? text(entry, "name")
                                                           : entry.as<std::string>());
    }
    return names;
}

TEST(Abi, TheSpecificationIsOfThisFamily) {
    const YAML::Node spec = load_specification();

    EXPECT_EQ(text(spec, "name"), UMACCT_FAMILY_NAME);
    EXPECT_EQ(spec["version"].as<int>(), UMACCT_FAMILY_VERSION);
    EXPECT_EQ(spec["mcast-groups"]["list"][0]["name"].as<std::string>(), UMACCT_MCGRP_EVENTS);
    EXPECT_EQ(text(spec["definitions"][0], "name"), "unlimited");
    EXPECT_EQ(spec["definitions"][0]["value"].as<std::uint64_t>(), UMACCT_UNLIMITED);
}

TEST(Abi, SyzkallerIsToldOfEveryRequest) {
    static const std::regex name("UMACCT_(CMD|A)_\\w+");
    const YAML::Node spec = load_specification();
    std::ifstream file = open_source("selftests/syzkaller/umacct.txt");
    std::map<std::string, std::string> prefixes;
    std::set<std::string> specified;
    std::set<std::string> told;

    for (const YAML::Node &set : spec["attribute-sets"])
        prefixes[text(set, "name")] = text(set, "name-prefix");
    for (const YAML::Node &operation : spec["operations"]["list"]) {
        specified.insert(c_name(text(spec["operations"], "name-prefix"), text(operation, "name")));
        for (const char *way : {"do", "dump"}) {
            const YAML::Node request = operation[way] && operation[way]["request"]
                                           ? operation[way]["request"]
                                           : YAML::Node();

            for (const YAML::Node &attribute : request ? request["attributes"] : YAML::Node())
                specified.insert(c_name(prefixes.at(text(operation, "attribute-set")),
                                        attribute.as<std::string>()));
        }
    }
    for (std::string line; std::getline(file, line);) {
        for (std::sregex_iterator each(line.begin(), line.end(), name), end;
             !line.starts_with('#') && each != end; ++each)
            told.insert(each->str());
    }
    EXPECT_EQ(told, specified);
}

TEST(Abi, WhatAttributesReferToIsThere) {
    const YAML::Node spec = load_specification();
    const auto enums = names_in(spec["definitions"], "entries");
    const auto sets = names_in(spec["attribute-sets"], "attributes");

    for (const YAML::Node &set : spec["attribute-sets"]) {
        for (const YAML::Node &attribute : set["attributes"]) {
            EXPECT_TRUE(!attribute["enum"] || enums.contains(text(attribute, "enum"))) << attribute;
            EXPECT_TRUE(text(attribute, "type") != "nest" ||
                        sets.contains(text(attribute, "nested-attributes")))
                << attribute;
        }
    }
}

TEST(Abi, WhatOperationsReferToIsThere) {
    const YAML::Node spec = load_specification();
    const auto sets = names_in(spec["attribute-sets"], "attributes");

    for (const YAML::Node &operation : spec["operations"]["list"]) {
        const auto &known = sets.at(text(operation, "attribute-set"));
        YAML::Node parts;

        for (const char *way : {"do", "dump", "event"}) {
            const YAML::Node of_way = operation[way] ? operation[way] : YAML::Node();

            for (const char *part : {"request", "reply"})
                parts.push_back(of_way[part] ? of_way[part] : of_way);
        }
        for (const auto &[way, names] : names_in(parts, "attributes")) {
            for (const std::string &name : names)
                EXPECT_TRUE(known.contains(name)) << name << " in " << text(operation, "name");
        }
    }
}

} // namespace
