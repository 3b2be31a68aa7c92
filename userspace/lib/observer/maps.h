// SPDX-License-Identifier: GPL-2.0-or-later
/// BPF maps and programs, by the system call alone: reading them takes no libbpf.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <linux/bpf.h>

namespace umacct {

/// Its result, or -1 with errno.
long bpf_call(bpf_cmd command, bpf_attr &attributes);

/// A map or a program that is pinned at a path, as a file descriptor, by which a map can be changed
/// where the caller may do that; -1 with errno.
int open_pinned_object(const std::string &path);

/// Adds up a number that each processor has one of.
std::uint64_t sum_of_processors(int map, std::uint32_t key);

template <class Key, class Value>
std::optional<Value> map_value(int map, const Key &key) {
    Value value{};
    bpf_attr attributes{};

    attributes.map_fd = static_cast<std::uint32_t>(map);
    attributes.key = reinterpret_cast<std::uintptr_t>(&key);
    attributes.value = reinterpret_cast<std::uintptr_t>(&value);
    if (bpf_call(BPF_MAP_LOOKUP_ELEM, attributes) != 0)
        return std::nullopt;
    return value;
}

template <class Key>
void map_erase(int map, const Key &key) {
    bpf_attr attributes{};

    attributes.map_fd = static_cast<std::uint32_t>(map);
    attributes.key = reinterpret_cast<std::uintptr_t>(&key);
    bpf_call(BPF_MAP_DELETE_ELEM, attributes);
}

/// Reads the rows of a hash: each that stays there meanwhile, once. Empty, with errno, on failure.
template <class Key, class Value>
std::optional<std::vector<std::pair<Key, Value>>> map_rows(int map) {
    std::vector<std::pair<Key, Value>> rows;
    std::uint32_t batch = 0;
    std::size_t room = 512; // the kernel wants room for the fullest bucket

    for (bool first = true;;) {
        std::vector<Key> keys(room);
        std::vector<Value> values(room);
        std::uint32_t next = 0;
        bpf_attr attributes{};

        attributes.batch.in_batch = first ? 0 : reinterpret_cast<std::uintptr_t>(&batch);
        attributes.batch.out_batch = reinterpret_cast<std::uintptr_t>(&next);
        attributes.batch.keys = reinterpret_cast<std::uintptr_t>(keys.data());
        attributes.batch.values = reinterpret_cast<std::uintptr_t>(values.data());
        attributes.batch.count = static_cast<std::uint32_t>(room);
        attributes.batch.map_fd = static_cast<std::uint32_t>(map);

        const bool more = bpf_call(BPF_MAP_LOOKUP_BATCH, attributes) == 0;
        if (!more && errno == ENOSPC) {
            room *= 2;
            continue;
        }
        if (!more && errno != ENOENT)
            return std::nullopt;
        for (std::uint32_t i = 0; i < attributes.batch.count; ++i)
            rows.emplace_back(keys[i], values[i]);
        if (!more)
            return rows;
        batch = next;
        first = false;
    }
}

} // namespace umacct
