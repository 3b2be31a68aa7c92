// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace umacct {

namespace {

bool is_permission(int code) {
    return failure_of(code) == Failure::permission;
}

std::string describe(int code, const std::string &text) {
    if (is_permission(code))
        return text.empty() ? "permission denied" : "permission denied: " + text;
    return text.empty() ? std::generic_category().message(code) : text;
}

} // namespace

Failure failure_of(int code) {
    return code == EPERM || code == EACCES ? Failure::permission : Failure::failed;
}

Error::Error(Failure failure, const std::string &what, std::string hint)
    : std::runtime_error(what), failure_(failure), hint_(std::move(hint)) {}

RequestError::RequestError(int code, const std::string &text, std::uint16_t attribute)
    : Error(failure_of(code), describe(code, text),
            is_permission(code) ? "run as root on the host (CAP_SYS_ADMIN)" : ""),
      code_(code),
      attribute_(attribute) {}

} // namespace umacct
