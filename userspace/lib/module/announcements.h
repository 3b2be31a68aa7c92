// SPDX-License-Identifier: GPL-2.0-or-later
/// Loading and unloading of the module, as generic netlink's own controller announces them.
/// Listening needs no privilege, and only a task that may load modules can cause an announcement.
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

    /// Returns the announcements since the last call, or since construction. Does not wait. Throws
    /// Error.
    virtual News take() = 0;
};

/// The kernel's. Throws Error: permission where a sandbox refuses netlink.
std::unique_ptr<Announcements> listen_to_controller();

} // namespace umacct
