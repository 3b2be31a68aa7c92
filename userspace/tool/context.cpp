// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/context.h"

#include <fstream>
#include <utility>

#include <fmt/ostream.h>

#include "tool/print/text.h"

namespace umacct::tool {

Context::Context(Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      cgroups_(surroundings_.proc),
      owners_(surroundings_.root) {}

Module &Context::module() {
    if (!module_)
        module_.emplace(surroundings_.connect());
    return *module_;
}

Meminfo Context::meminfo() const {
    std::ifstream file(surroundings_.proc / "meminfo");

    return Meminfo(file);
}

std::unique_ptr<Terminal> Context::open_terminal() const {
    return surroundings_.open_terminal ? surroundings_.open_terminal() : nullptr;
}

void Context::warn_if_degraded(const Status &status) {
    for (const std::string &warning : warnings(status))
        fmt::print(err(), "warning: {}\n", warning);
}

} // namespace umacct::tool
