// SPDX-License-Identifier: GPL-2.0-or-later
/// The real Transport: generic netlink through libnl.
#pragma once

#include <memory>

#include "lib/module/transport.h"

namespace umacct {

/// Connects to the module. Throws Error: missing when the module isn't loaded.
std::unique_ptr<Transport> connect_netlink();

} // namespace umacct
