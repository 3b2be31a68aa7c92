// SPDX-License-Identifier: GPL-2.0-or-later
/// The checksum of a record of the history: a CRC-32C of its values, in their order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace umacct::history {

class Seal {
public:
    /// before: the seal of the record that this one continues; 0 if it is the first.
    explicit Seal(std::int64_t before = 0) { add(before); }

    void add_nothing() { add_byte(0); }

    void add(std::int64_t number) {
        add_byte(1);
        add_bytes(number);
    }

    void add(std::string_view bytes) {
        add_byte(2);
        add_bytes(static_cast<std::int64_t>(bytes.size()));
        for (const char each : bytes)
            add_byte(static_cast<unsigned char>(each));
    }

    /// Returns the seal as the database stores it: 32 bits, signed, so that it needs four bytes.
    std::int64_t value() const { return static_cast<std::int32_t>(~state_); }

private:
    static constexpr std::array<std::uint32_t, 256> table = [] {
        constexpr std::uint32_t polynomial = 0x82f6'3b78; // Castagnoli's, reversed
        std::array<std::uint32_t, 256> table{};

        for (std::uint32_t i = 0; i < table.size(); ++i) {
            table[i] = i;
            for (int bit = 0; bit < 8; ++bit)
                table[i] = (table[i] >> 1U) ^ ((table[i] & 1U) * polynomial);
        }
        return table;
    }();

    void add_byte(unsigned char byte) { state_ = (state_ >> 8U) ^ table[(state_ ^ byte) & 0xffU]; }

    void add_bytes(std::int64_t number) {
        for (unsigned int shift = 0; shift < 64; shift += 8)
            add_byte(static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> shift));
    }

    std::uint32_t state_ = UINT32_MAX;
};

} // namespace umacct::history
