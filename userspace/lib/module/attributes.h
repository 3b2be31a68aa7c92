// SPDX-License-Identifier: GPL-2.0-or-later
/// Netlink attributes as bytes: written for a request, read from an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace umacct {

/// The attributes of one message: what follows its generic netlink header.
using Payload = std::vector<std::byte>;

class AttributeWriter {
public:
    void put_u32(std::uint16_t type, std::uint32_t value);
    void put_u64(std::uint16_t type, std::uint64_t value);
    void put_string(std::uint16_t type, std::string_view value);
    void put_flag(std::uint16_t type);
    void put_nest(std::uint16_t type, const Payload &attributes);

    const Payload &payload() const { return payload_; }

private:
    void put(std::uint16_t type, const void *data, std::size_t size);

    Payload payload_;
};

/// Calls visit(type, value) for each attribute in order. Throws Error when the
/// bytes are no well-formed list of attributes.
void for_each_attribute(
    std::span<const std::byte> payload,
    const std::function<void(std::uint16_t, std::span<const std::byte>)> &visit);

/// Random access to attributes 1..max; types above it are ignored, as a newer
/// module may send them. Refers to the payload and must not outlive it.
class AttributeReader {
public:
    AttributeReader(std::span<const std::byte> payload, std::uint16_t max);

    bool has(std::uint16_t type) const;
    /// The value, or 0 (empty) where the attribute is absent; throws Error when
    /// it is shorter than its type.
    std::uint32_t u32(std::uint16_t type) const;
    std::uint64_t u64(std::uint16_t type) const;
    std::string string(std::uint16_t type) const;

private:
    template <class T>
    T number(std::uint16_t type) const;

    std::vector<std::span<const std::byte>> values_;
    std::vector<bool> present_;
};

} // namespace umacct
