// SPDX-License-Identifier: GPL-2.0-or-later
/// An unprivileged process that takes memory through the driver, as told.
#pragma once

#include <cstdint>

#include "lib/host/process.h"
#include "tool/verify/proof.h"

namespace umacct::tool {

class DriverClient {
public:
    /// Starts it; it gives its privileges up before it opens the driver. chunk:
    /// bytes of one allocation.
    explicit DriverClient(std::uint64_t chunk);

    pid_t pid() const { return process_.pid(); }

    /// Throws Error when the driver can't be spoken to, or when we were told to end.
    Allocation allocate(std::uint64_t bytes);
    void free_all();

private:
    void serve();
    int ask(int count);

    std::uint64_t chunk_;
    Pipe questions_;
    Pipe answers_;
    Process process_;
};

} // namespace umacct::tool
