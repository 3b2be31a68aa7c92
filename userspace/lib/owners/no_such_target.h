// SPDX-License-Identifier: GPL-2.0-or-later
/// What resolve_target() throws where nothing is called so: it may be yet.
#pragma once

#include "lib/error.h"

namespace umacct {

class NoSuchTarget : public Error {
public:
    using Error::Error;
};

} // namespace umacct
