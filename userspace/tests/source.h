// SPDX-License-Identifier: GPL-2.0-or-later
/// Files of this clone, for tests that compare with what is written there.
#pragma once

#include <string>

namespace umacct::test {

/// Returns the path of a file of this clone: "docs/policy.md".
std::string source(const std::string &file);

} // namespace umacct::test
