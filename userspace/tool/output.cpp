// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/output.h"

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/module/health.h"
#include "lib/text.h"

namespace umacct::tool {

Json Output::completed(const Json &members) const {
    return merged(json_document(boot_id(proc)), members);
}

void Output::document(std::ostream &to, const Json &members) const {
    to << json_text(completed(members)) << '\n';
}

void Output::list(const Json &members, const char *key, std::size_t count,
                  const std::function<void(std::string &text, std::size_t row)> &append) const {
    static constexpr std::size_t enough = 64U << 10;
    std::string text = json_text(completed(members));

    text.back() = ',';
    text += fmt::format("\"{}\":[", key);
    for (std::size_t row = 0; row < count; ++row) {
        if (row > 0)
            text += ',';
        append(text, row);
        if (text.size() > enough) {
            out << text;
            text.clear();
        }
    }
    out << text << "]}\n";
}

void Output::note(std::string_view text) const {
    fmt::print(err, "note: {}\n", printable(text));
}

void Output::warn_if_degraded(const Status &status) const {
    for (const std::string &warning : warnings(status))
        fmt::print(err, "warning: {}\n", warning);
}

void Output::flush() const {
    if (!out.flush())
        throw Error(Failure::failed, "cannot write the output");
}

} // namespace umacct::tool
