// SPDX-License-Identifier: GPL-2.0-or-later
/// Sizes, limits and times as people write them.
#include "lib/units.h"

#include "tests/fuzz/fuzz.h"

using namespace umacct;

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const std::string text = fuzz::text_of(data, size);

    fuzz::may_refuse([&] {
        const std::uint64_t bytes = parse_size(text);

        fuzz::expect(bytes != UMACCT_UNLIMITED, "a size is no lack of a limit");
        fuzz::expect(parse_limit(text) == bytes, "a limit is read as a size is");
        fuzz::expect(parse_size(std::to_string(bytes)) == bytes, "bytes are read as written");
        fuzz::expect(!format_size(bytes).empty() && format_short(bytes).size() <= 16,
                     "sizes are short");
        format_rate(static_cast<std::int64_t>(bytes));
    });
    fuzz::may_refuse([&] { fuzz::expect(!format_time(parse_time(text)).empty(), "a time"); });
    return 0;
}
