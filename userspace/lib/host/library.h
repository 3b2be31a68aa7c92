// SPDX-License-Identifier: GPL-2.0-or-later
/// A shared library that is loaded when it is needed: those that it needs itself would cost
/// each start of a program more than everything else.
#pragma once

#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

#include "lib/error.h"

namespace umacct {

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
    /// without: what is so without it, for errors.
    Library(const char *name, const char *without)
        : name_(name), without_(without), handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}

    /// Throws Error (failed) where it, or the library, isn't there.
    Symbol find(const char *function) const {
        void *address = handle_ == nullptr ? nullptr : dlsym(handle_, function);

        if (address == nullptr)
            throw Error(Failure::failed, fmt::format("{}: {}", without_, dlerror()),
                        fmt::format("it takes the library {}", name_));
        return {address};
    }

private:
    const char *name_;
    const char *without_;
    void *handle_;
};

} // namespace umacct
