// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "lib/error.h"

namespace umacct {

#ifdef UMACCT_STATIC

void *load_library(const char *) {
    return nullptr;
}

static const char *load_error() {
    return "a static umacct loads no libraries";
}

#else

void *load_library(const char *name) {
    return dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

/// Returns the reason of the last failure to load a library, or to find a function.
static const char *load_error() {
    return dlerror();
}

#endif

Library::Symbol Library::find(const char *function) const {
    void *address = handle_ == nullptr ? nullptr : dlsym(handle_, function);

    if (address == nullptr)
        throw Error(Failure::failed, fmt::format("{}: {}", without_, load_error()),
                    fmt::format("install the library {}", name_));
    return {address};
}

} // namespace umacct
