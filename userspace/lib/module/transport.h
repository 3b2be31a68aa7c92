// SPDX-License-Identifier: GPL-2.0-or-later
/// The way to the module: what Module needs of netlink, so that tests can stand
/// in for the kernel.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <umacct.h>

#include "lib/module/message.h"

namespace umacct {

/// Result of waiting for events, as bytes or decoded.
template <class T>
struct Received {
    std::vector<T> events;
    bool overrun = false; ///< this reader was too slow: events were dropped
    bool gone = false; ///< the module was unloaded, or loaded, and who wants more subscribes anew
    bool none = false; ///< nothing came in that time
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
    /// Takes the attributes of one of many answers.
    using Take = std::function<void(std::span<const std::byte> part)>;

    /// The same for a command that answers with many messages, one by one as they come: together
    /// they may be too much to hold. Whether something changed meanwhile: read it again.
    virtual bool dump(umacct_cmd command, const Payload &attributes, const Take &take) = 0;
    /// Joins the group that events are sent to.
    virtual void subscribe() = 0;
    /// Waits for events, no longer than timeout; negative waits for ever.
    virtual Received<Payload> receive(std::chrono::milliseconds timeout) = 0;
};

/// The real one: generic netlink through libnl. Throws Error: missing when the module isn't
/// loaded.
std::unique_ptr<Transport> connect_netlink();

} // namespace umacct
