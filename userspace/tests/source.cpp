// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/source.h"

namespace umacct::test {

std::string source(const std::string &file) {
    return UMACCT_SOURCE_DIR "/" + file;
}

} // namespace umacct::test
