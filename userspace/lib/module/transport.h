// SPDX-License-Identifier: GPL-2.0-or-later
/// The way to the module: what Module needs of netlink, so that tests can stand
/// in for the kernel.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <umacct.h>

#include "lib/module/message.h"

namespace umacct {

struct Dump {
    std::vector<Payload> parts;
    bool interrupted = false; ///< something changed meanwhile: read it again
};

/// What came of waiting for events, as they are sent or decoded.
template <class T>
struct Received {
    std::vector<T> events;
    bool overrun = false; ///< this reader was too slow: events were dropped
    bool gone = false;    ///< the module was unloaded
    bool none = false;    ///< nothing came in that time
};

class Transport {
public:
    Transport() = default;
    Transport(const Transport &) = delete;
    Transport &operator=(const Transport &) = delete;
    Transport(Transport &&) = delete;
    Transport &operator=(Transport &&) = delete;
    virtual ~Transport() = default;

    /// Sends one command; the answer's attributes, empty where the module only
    /// acknowledges. Throws RequestError when the module refuses.
    virtual Payload request(umacct_cmd command, const Payload &attributes) = 0;
    /// The same for a command that answers with many messages.
    virtual Dump dump(umacct_cmd command, const Payload &attributes) = 0;
    /// Joins the group that events are sent to.
    virtual void subscribe() = 0;
    /// Waits for events, no longer than timeout; negative waits for ever.
    virtual Received<Payload> receive(std::chrono::milliseconds timeout) = 0;
};

/// The real one: generic netlink through libnl. Throws Error: missing when the module isn't
/// loaded.
std::unique_ptr<Transport> connect_netlink();

} // namespace umacct
