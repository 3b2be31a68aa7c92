// SPDX-License-Identifier: GPL-2.0-or-later
/// Cuts between any two steps in which files are written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "lib/host/replace_file.h"

namespace umacct::test {

/// Does it anew for each of its steps: prepare, do it up to that step, and look. Nothing gets its
/// name before what it names is on the disk. Returns how many steps there are.
inline std::size_t cut_at_each_step(const std::function<void()> &prepare,
                                    const std::function<void()> &work,
                                    const std::function<void(std::size_t cut)> &look) {
    struct Cut {};

    for (std::size_t cut = 0;; ++cut) {
        std::set<std::string> unwritten;
        std::size_t at = 0;
        bool is_cut = false;

        prepare();
        on_file_step([&](const char *step, const std::filesystem::path &path) {
            const std::string name = step;

            if (at++ == cut)
                throw Cut();
            if (name == "write")
                unwritten.insert(path.string());
            else if (name == "sync")
                unwritten.erase(path.string());
            else
                EXPECT_TRUE(std::ranges::none_of(unwritten, [&](const std::string &each) {
                    return each.starts_with(path.string() + ".new");
                })) << path;
        });
        try {
            work();
        } catch (const Cut &) {
            is_cut = true;
        }
        on_file_step({});
        look(cut);
        if (!is_cut)
            return cut;
    }
}

} // namespace umacct::test
