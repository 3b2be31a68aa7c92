// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/model.h"

#include <cstddef>
#include <initializer_list>
#include <iterator>

namespace umacct {

namespace {

std::string_view word(std::initializer_list<std::string_view> words, std::size_t value) {
    return value < words.size() ? std::data(words)[value] : "unknown";
}

} // namespace

bool Account::configured() const {
    return soft || hard || throttle_ns != 0 || view || charge != UMACCT_CHARGE_INHERIT;
}

std::string_view name_of(umacct_driver_state state) {
    return word({"absent", "hooked", "unknown", "broken"}, state);
}

std::string_view name_of(umacct_hook_state state) {
    return word({"idle", "armed", "off", "failed"}, state);
}

std::string_view name_of(umacct_charge_mode mode) {
    return word({"inherit", "off", "on"}, mode);
}

std::string_view name_of(umacct_event_type type) {
    return word({"unknown", "soft_crossed", "soft_recovered", "hard_refused", "reserve_refused"},
                type);
}

} // namespace umacct
