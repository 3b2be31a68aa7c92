// SPDX-License-Identifier: GPL-2.0-or-later
/// Hints that many errors share.
#pragma once

namespace umacct {

inline constexpr const char *run_as_root = "run as root";

} // namespace umacct
