// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/attributes.h"

#include <algorithm>
#include <cstring>

#include <linux/netlink.h>

#include "lib/error.h"

namespace umacct {

namespace {

[[noreturn]] void throw_malformed() {
    throw Error(Failure::failed, "the module sent an answer that can't be read",
                "the tool and the module may not fit together: compare 'umacct --version'");
}

std::size_t aligned(std::size_t size) {
    return (size + NLA_ALIGNTO - 1) & ~static_cast<std::size_t>(NLA_ALIGNTO - 1);
}

} // namespace

void AttributeWriter::put(std::uint16_t type, const void *data, std::size_t size) {
    const nlattr header{static_cast<std::uint16_t>(NLA_HDRLEN + size), type};
    const std::size_t start = payload_.size();

    payload_.resize(start + aligned(NLA_HDRLEN + size));
    std::memcpy(&payload_[start], &header, sizeof(header));
    if (size > 0)
        std::memcpy(&payload_[start + NLA_HDRLEN], data, size);
}

void AttributeWriter::put_u32(std::uint16_t type, std::uint32_t value) {
    put(type, &value, sizeof(value));
}

void AttributeWriter::put_u64(std::uint16_t type, std::uint64_t value) {
    put(type, &value, sizeof(value));
}

void AttributeWriter::put_string(std::uint16_t type, std::string_view value) {
    const std::string terminated(value);

    put(type, terminated.c_str(), terminated.size() + 1);
}

void AttributeWriter::put_flag(std::uint16_t type) {
    put(type, nullptr, 0);
}

void AttributeWriter::put_nest(std::uint16_t type, const Payload &attributes) {
    put(type | NLA_F_NESTED, attributes.data(), attributes.size());
}

void for_each_attribute(
    std::span<const std::byte> payload,
    const std::function<void(std::uint16_t, std::span<const std::byte>)> &visit) {
    while (payload.size() >= NLA_HDRLEN) {
        nlattr header{};

        std::memcpy(&header, payload.data(), sizeof(header));
        if (header.nla_len < NLA_HDRLEN || header.nla_len > payload.size())
            throw_malformed();
        visit(header.nla_type & NLA_TYPE_MASK,
              payload.subspan(NLA_HDRLEN, header.nla_len - NLA_HDRLEN));
        payload = payload.subspan(std::min(payload.size(), aligned(header.nla_len)));
    }
    if (!payload.empty())
        throw_malformed();
}

AttributeReader::AttributeReader(std::span<const std::byte> payload, std::uint16_t max)
    : values_(max + 1U), present_(max + 1U) {
    for_each_attribute(payload, [this](std::uint16_t type, std::span<const std::byte> value) {
        if (type < values_.size()) {
            values_[type] = value;
            present_[type] = true;
        }
    });
}

bool AttributeReader::has(std::uint16_t type) const {
    return present_.at(type);
}

template <class T>
T AttributeReader::number(std::uint16_t type) const {
    T value = 0;

    if (!has(type))
        return value;
    if (values_[type].size() < sizeof(value))
        throw_malformed();
    std::memcpy(&value, values_[type].data(), sizeof(value));
    return value;
}

std::uint32_t AttributeReader::u32(std::uint16_t type) const {
    return number<std::uint32_t>(type);
}

std::uint64_t AttributeReader::u64(std::uint16_t type) const {
    return number<std::uint64_t>(type);
}

std::string AttributeReader::string(std::uint16_t type) const {
    if (!has(type))
        return {};

    const auto value = values_[type];
    const std::string_view text(reinterpret_cast<const char *>(value.data()), value.size());
    return std::string(text.substr(0, text.find('\0')));
}

} // namespace umacct
