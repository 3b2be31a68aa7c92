// SPDX-License-Identifier: GPL-2.0-or-later
/// Shared code of the fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "lib/error.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace umacct::fuzz {

inline std::string text_of(const std::uint8_t *data, std::size_t size) {
    return {reinterpret_cast<const char *>(data), size};
}

inline void expect(bool condition, const char *what) {
    if (condition)
        return;
    std::cerr << "not so: " << what << '\n';
    std::abort();
}

/// Calls it; an Error is an answer, any other exception is not.
template <class Call>
void may_refuse(Call call) {
    try {
        call();
    } catch (const Error &error) {
        expect(error.what()[0] != '\0', "an error says what it is");
    }
}

} // namespace umacct::fuzz
