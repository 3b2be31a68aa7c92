// SPDX-License-Identifier: GPL-2.0-or-later
/// The module, spoken to when first needed.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lib/module/module.h"

namespace umacct {

class Connection {
public:
    using Connect = std::function<std::unique_ptr<Transport>()>;

    explicit Connection(Connect connect);

    /// Connects on first use. Throws Error: missing when the module isn't loaded.
    Module &module();

    /// Lets module() connect anew: what was connected to may be gone.
    void reset() { module_.reset(); }

private:
    Connect connect_;
    std::optional<Module> module_;
};

} // namespace umacct
