// SPDX-License-Identifier: GPL-2.0-or-later
/// Destination and format of a verb's output.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "lib/json.h"
#include "lib/module/model.h"

namespace umacct::tool {

struct Output {
    std::ostream &out;
    std::ostream &err;
    bool colour = false;   ///< out is a terminal that may show colours
    bool terminal = false; ///< out is a terminal
    int width = 0;         ///< its columns; 0 for none
    bool json = false;     ///< --json
    std::filesystem::path proc = "/proc";

    /// Prints what a verb has to say as JSON, in one line.
    void document(const Json &members) const { document(out, members); }

    void document(std::ostream &to, const Json &members) const;

    /// The same with a list as the last member, which append() writes row by row.
    void list(const Json &members, const char *key, std::size_t count,
              const std::function<void(std::string &text, std::size_t row)> &append) const;

    /// Says on err what is well to know beside the result.
    void note(std::string_view text) const;

    /// Says on err what makes the figures wrong or incomplete.
    void warn_if_degraded(const Status &status) const;

    /// Throws Error when something could not be written.
    void flush() const;

private:
    Json completed(const Json &members) const;
};

} // namespace umacct::tool
