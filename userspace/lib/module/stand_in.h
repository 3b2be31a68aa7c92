// SPDX-License-Identifier: GPL-2.0-or-later
/// One that answers in the module's place until the module is loaded.
#pragma once

#include <functional>
#include <memory>

#include "lib/module/transport.h"

namespace umacct {

/// stand_in answers until connect() finds the module, which is asked for every second, where
/// something is asked at all; from then on that does.
std::unique_ptr<Transport> until_loaded(std::unique_ptr<Transport> stand_in,
                                        std::function<std::unique_ptr<Transport>()> connect);

} // namespace umacct
