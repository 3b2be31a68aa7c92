// SPDX-License-Identifier: GPL-2.0-or-later
/// How everything here fails: by throwing Error. What may simply be absent (a
/// file that can't be read, an account that doesn't exist) is a std::optional.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace umacct {

/// The kinds of failure; the values are exit codes of the tool, which has more: tool/exit_code.h.
enum class Failure {
    failed = 1,
    usage = 2,      ///< wrong input
    missing = 3,    ///< the module, or the driver, is not there
    permission = 4, ///< it takes more privilege
};

/// Returns the failure for an errno: permission, or failed.
Failure failure_of(int code);

/// A failure with its remedy. what() is one line without a full stop; hint()
/// says what to do about it and may be empty.
class Error : public std::runtime_error {
public:
    Error(Failure failure, const std::string &what, std::string hint = {});

    Failure failure() const { return failure_; }

    const std::string &hint() const { return hint_; }

private:
    Failure failure_;
    std::string hint_;
};

/// The module's own refusal of a request.
class RequestError : public Error {
public:
    /// code: the positive errno. text: the extended ack's, may be empty.
    /// attribute: type of the attribute that the module points at; 0 for none.
    RequestError(int code, const std::string &text, std::uint16_t attribute);

    int code() const { return code_; }

    std::uint16_t attribute() const { return attribute_; }

private:
    int code_;
    std::uint16_t attribute_;
};

} // namespace umacct
