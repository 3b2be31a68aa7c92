// SPDX-License-Identifier: GPL-2.0-or-later
/// Words as exec() and its like take them.
#pragma once

#include <string>
#include <vector>

namespace umacct {

/// Points into words, which must outlive it.
inline std::vector<char *> argv_of(const std::vector<std::string> &words) {
    std::vector<char *> argv;

    argv.reserve(words.size() + 1);
    for (const std::string &word : words)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    return argv;
}

} // namespace umacct
