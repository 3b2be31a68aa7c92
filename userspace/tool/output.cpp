// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/output.h"

#include <fstream>
#include <string>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/module/health.h"
#include "lib/text.h"

namespace umacct::tool {

void Output::document(std::ostream &to, const Json &members) const {
    std::ifstream file(proc / "sys/kernel/random/boot_id");
    std::string boot_id;

    std::getline(file, boot_id);
    print_json(to, merged(json_document(boot_id), members));
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
        throw Error(Failure::failed, "the output could not be written");
}

} // namespace umacct::tool
