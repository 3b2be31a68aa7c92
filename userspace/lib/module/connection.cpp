// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/connection.h"

#include <utility>

namespace umacct {

Connection::Connection(Connect connect) : connect_(std::move(connect)) {}

Module &Connection::module() {
    if (!module_)
        module_.emplace(connect_());
    return *module_;
}

} // namespace umacct
