// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/observer/maps.h"

#include <numeric>

#include <sys/syscall.h>
#include <unistd.h>

namespace umacct {

long bpf_call(bpf_cmd command, bpf_attr &attributes) {
    return syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}

int open_pinned_object(const std::string &path) {
    bpf_attr attributes{};

    attributes.pathname = reinterpret_cast<std::uintptr_t>(path.c_str());
    const auto file = static_cast<int>(bpf_call(BPF_OBJ_GET, attributes));
    if (file >= 0 || (errno != EACCES && errno != EPERM))
        return file;
    attributes.file_flags = BPF_F_RDONLY;
    return static_cast<int>(bpf_call(BPF_OBJ_GET, attributes));
}

std::uint64_t sum_of_processors(int map, std::uint32_t key) {
    // The most that Linux can be built for; the kernel fills in the possible ones.
    constexpr std::size_t most_processors = 8192;
    std::vector<std::uint64_t> values(most_processors);
    bpf_attr attributes{};

    attributes.map_fd = static_cast<std::uint32_t>(map);
    attributes.key = reinterpret_cast<std::uintptr_t>(&key);
    attributes.value = reinterpret_cast<std::uintptr_t>(values.data());
    if (bpf_call(BPF_MAP_LOOKUP_ELEM, attributes) != 0)
        return 0;
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

} // namespace umacct
