// SPDX-License-Identifier: GPL-2.0-or-later
/// That the module is loaded and unloaded, as generic netlink's own controller announces it. It
/// takes no privilege to hear, and no task that isn't allowed to load modules causes any of it.
#pragma once

#include <memory>

namespace umacct {

class Announcements {
public:
    struct News {
        bool unloaded = false;
        bool loaded = false;  ///< also after unloaded: another one is there
        bool overrun = false; ///< some were lost; what is above holds nevertheless
    };

    Announcements() = default;
    Announcements(const Announcements &) = delete;
    Announcements &operator=(const Announcements &) = delete;
    Announcements(Announcements &&) = delete;
    Announcements &operator=(Announcements &&) = delete;
    virtual ~Announcements() = default;

    /// Becomes readable when there is something to take.
    virtual int fd() const = 0;

    /// What happened since the last call, or since it was made. Doesn't wait. Throws Error.
    virtual News take() = 0;
};

/// The kernel's. Throws Error: permission where a sandbox refuses netlink.
std::unique_ptr<Announcements> listen_to_controller();

} // namespace umacct
