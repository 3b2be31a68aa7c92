// SPDX-License-Identifier: GPL-2.0-or-later
/// A shared library that is loaded when it is needed: those that it needs itself would cost
/// each start of a program more than everything else. A static umacct loads none.
#pragma once

namespace umacct {

/// Returns the library's handle, for dlsym(); null where there is none.
void *load_library(const char *name);

class Library {
    /// A function of whatever type.
    struct Symbol {
        void *address;

        template <class Function>
        operator Function *() const {
            return reinterpret_cast<Function *>(address);
        }
    };

public:
    /// without: the consequence of a missing library, for errors.
    Library(const char *name, const char *without)
        : name_(name), without_(without), handle_(load_library(name)) {}

    /// Throws Error (failed) where it, or the library, isn't there.
    Symbol find(const char *function) const;

private:
    const char *name_;
    const char *without_;
    void *handle_;
};

} // namespace umacct
