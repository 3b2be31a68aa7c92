// SPDX-License-Identifier: GPL-2.0-or-later
/// Answers of the module, and of a netlink that isn't it.
#include "lib/module/message.h"

#include "tests/fuzz/fuzz.h"

using namespace umacct;

namespace {

template <class Value>
void try_message(const Payload &payload) {
    fuzz::may_refuse([&] {
        const Payload encoded = encode(decode<Value>(payload));

        fuzz::expect(encode(decode<Value>(encoded)) == encoded, "it comes back as it went");
    });
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const auto *bytes = reinterpret_cast<const std::byte *>(data);
    const Payload payload(bytes, bytes + size);

    try_message<Status>(payload);
    try_message<Account>(payload);
    try_message<Client>(payload);
    try_message<Event>(payload);
    try_message<AccountRequest>(payload);
    return 0;
}
