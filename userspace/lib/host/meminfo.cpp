// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/meminfo.h"

#include <sstream>

#include "lib/error.h"

namespace umacct {

namespace {

/// The number after "avg10=" and similar keys.
template <class Number>
bool take(std::istream &file, const char *key, Number &value) {
    std::string name;

    return std::getline(file >> std::ws, name, '=') && name == key && file >> value;
}

bool take_line(std::istream &file, const char *who, Pressure::Share &share) {
    std::string word;
    double avg300 = 0;

    return file >> word && word == who && take(file, "avg10", share.avg10) &&
           take(file, "avg60", share.avg60) && take(file, "avg300", avg300) &&
           take(file, "total", share.total_us);
}

} // namespace

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

std::optional<Pressure> Pressure::read(std::istream &file) {
    Pressure pressure;

    if (!take_line(file, "some", pressure.some) || !take_line(file, "full", pressure.full))
        return std::nullopt;
    return pressure;
}

} // namespace umacct
