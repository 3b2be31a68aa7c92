// SPDX-License-Identifier: GPL-2.0-or-later
/// Conditions for this machine's kernel to load a module that was built on it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace umacct::tool::secure_boot {

/// State shown by the kernel and the firmware below /sys, and by DKMS's folder of keys.
struct State {
    std::string lockdown;     ///< the kernel's word; empty if it has none
    bool secure = false;      ///< Secure Boot is on
    bool locked = false;      ///< a lockdown is in force
    bool sig_enforce = false; ///< module.sig_enforce: signed modules only
    /// The certificate of the key that signs what DKMS builds; empty where there is none.
    std::filesystem::path certificate;
    std::optional<bool> enrolled; ///< empty where that can't be seen
    bool pending = false;         ///< the firmware asks about it at the next boot

    /// The kernel loads signed modules only.
    bool strict() const { return secure || locked || sig_enforce; }

    /// "Secure Boot on, lockdown none [integrity]"
    std::string text() const;

    /// Describes how to enroll the key.
    std::string how_to_enroll() const;
};

/// root: of the machine's file system.
State read_state(const std::filesystem::path &root);

} // namespace umacct::tool::secure_boot
