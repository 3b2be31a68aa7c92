// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/pressure.h"

#include <istream>
#include <string>

namespace umacct {

namespace {

/// What follows "avg10=" and its like.
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

std::optional<Pressure> Pressure::read(std::istream &file) {
    Pressure pressure;

    if (!take_line(file, "some", pressure.some) || !take_line(file, "full", pressure.full))
        return std::nullopt;
    return pressure;
}

} // namespace umacct
