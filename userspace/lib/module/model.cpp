// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/model.h"

#include <cstddef>
#include <span>

namespace umacct {

namespace {

std::string_view word(std::span<const std::string_view> words, std::size_t value) {
    return value < words.size() ? words[value] : "unknown";
}

} // namespace

std::string_view name_of(umacct_driver_state state) {
    return word(driver_state_words, state);
}

std::string_view name_of(umacct_hook_state state) {
    return word(hook_state_words, state);
}

std::string_view name_of(umacct_charge_mode mode) {
    return word(charge_mode_words, mode);
}

std::string_view name_of(umacct_event_type type) {
    return word(event_type_words, type);
}

} // namespace umacct
