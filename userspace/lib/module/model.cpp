// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/model.h"

namespace umacct {

bool Account::configured() const {
    return soft || hard || throttle_ns != 0 || view || charge != UMACCT_CHARGE_INHERIT;
}

std::string_view name_of(umacct_driver_state state) {
    switch (state) {
    case UMACCT_DRIVER_ABSENT:
        return "absent";
    case UMACCT_DRIVER_HOOKED:
        return "hooked";
    case UMACCT_DRIVER_UNKNOWN:
        return "unknown";
    case UMACCT_DRIVER_BROKEN:
        return "broken";
    }
    return "unknown";
}

std::string_view name_of(umacct_hook_state state) {
    switch (state) {
    case UMACCT_HOOK_IDLE:
        return "idle";
    case UMACCT_HOOK_ARMED:
        return "armed";
    case UMACCT_HOOK_OFF:
        return "off";
    case UMACCT_HOOK_FAILED:
        return "failed";
    }
    return "unknown";
}

std::string_view name_of(umacct_charge_mode mode) {
    switch (mode) {
    case UMACCT_CHARGE_INHERIT:
        return "inherit";
    case UMACCT_CHARGE_OFF:
        return "off";
    case UMACCT_CHARGE_ON:
        return "on";
    }
    return "unknown";
}

std::string_view name_of(umacct_event_type type) {
    switch (type) {
    case UMACCT_EVENT_SOFT_CROSSED:
        return "soft_crossed";
    case UMACCT_EVENT_SOFT_RECOVERED:
        return "soft_recovered";
    case UMACCT_EVENT_HARD_REFUSED:
        return "hard_refused";
    case UMACCT_EVENT_RESERVE_REFUSED:
        return "reserve_refused";
    }
    return "unknown";
}

} // namespace umacct
