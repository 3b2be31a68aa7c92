// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/meminfo.h"

#include <sstream>

#include "lib/error.h"

namespace umacct {

Meminfo::Meminfo(std::istream &text) {
    for (std::string line; std::getline(text, line);) {
        std::istringstream words(line);
        std::string name;
        std::uint64_t value = 0;
        std::string unit;

        // The HugePages lines count pages and have no unit.
        if (words >> name >> value >> unit && unit == "kB" && name.back() == ':')
            bytes_[name.substr(0, name.size() - 1)] = value * 1024;
    }
    if (!bytes_.contains("MemTotal"))
        throw Error(Failure::failed, "/proc/meminfo has no MemTotal",
                    "umacct reads the machine's memory from procfs: is /proc mounted?");
}

std::uint64_t Meminfo::bytes(const std::string &name) const {
    const auto found = bytes_.find(name);

    return found == bytes_.end() ? 0 : found->second;
}

} // namespace umacct
