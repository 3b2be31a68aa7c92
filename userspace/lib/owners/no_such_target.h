// SPDX-License-Identifier: GPL-2.0-or-later
/// Error of resolve_target(): nothing has that name yet.
#pragma once

#include "lib/error.h"

namespace umacct {

class NoSuchTarget : public Error {
public:
    using Error::Error;
};

} // namespace umacct
