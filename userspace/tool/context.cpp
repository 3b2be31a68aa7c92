// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/context.h"

#include <utility>

#include <fmt/ostream.h>

#include "lib/module/health.h"

namespace umacct::tool {

Context::Context(Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      machine_(surroundings_.proc, surroundings_.root),
      connection_(surroundings_.connect) {}

std::unique_ptr<Terminal> Context::open_terminal() const {
    return surroundings_.open_terminal ? surroundings_.open_terminal() : nullptr;
}

void Context::warn_if_degraded(const Status &status) {
    for (const std::string &warning : warnings(status))
        fmt::print(err(), "warning: {}\n", warning);
}

} // namespace umacct::tool
