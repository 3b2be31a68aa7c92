// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/model.h"

namespace umacct {

namespace {

Limit limit(const AttributeReader &reader, std::uint16_t type) {
    if (!reader.has(type) || reader.u64(type) == UMACCT_UNLIMITED)
        return std::nullopt;
    return reader.u64(type);
}

std::optional<std::uint64_t> optional_u64(const AttributeReader &reader, std::uint16_t type) {
    if (!reader.has(type))
        return std::nullopt;
    return reader.u64(type);
}

template <class E>
E enumerator(const AttributeReader &reader, std::uint16_t type) {
    return static_cast<E>(reader.u32(type));
}

Hook decode_hook(std::span<const std::byte> payload) {
    const AttributeReader a(payload, UMACCT_A_HOOK_MAX);

    return {
        .name = a.string(UMACCT_A_HOOK_NAME),
        .symbol = a.string(UMACCT_A_HOOK_SYMBOL),
        .state = enumerator<umacct_hook_state>(a, UMACCT_A_HOOK_STATE),
        .required = a.has(UMACCT_A_HOOK_REQUIRED),
        .reason = a.string(UMACCT_A_HOOK_REASON),
        .calls = a.u64(UMACCT_A_HOOK_CALLS),
        .missed = a.u64(UMACCT_A_HOOK_MISSED),
    };
}

} // namespace

bool Account::configured() const {
    return soft || hard || throttle_ns != 0 || view || charge != UMACCT_CHARGE_INHERIT;
}

Status decode_status(std::span<const std::byte> payload) {
    const AttributeReader a(payload, UMACCT_A_STATUS_MAX);
    Status status{
        .module_version = a.string(UMACCT_A_STATUS_MODULE_VERSION),
        .driver_state = enumerator<umacct_driver_state>(a, UMACCT_A_STATUS_DRIVER_STATE),
        .driver_version = a.string(UMACCT_A_STATUS_DRIVER_VERSION),
        .uvm_state = enumerator<umacct_driver_state>(a, UMACCT_A_STATUS_UVM_STATE),
        .reason = a.string(UMACCT_A_STATUS_REASON),
        .flags = a.u32(UMACCT_A_STATUS_FLAGS),
        .usage = a.u64(UMACCT_A_STATUS_USAGE),
        .charged = a.u64(UMACCT_A_STATUS_CHARGED),
        .driver_usage = a.u64(UMACCT_A_STATUS_DRIVER_USAGE),
        .driver_peak = a.u64(UMACCT_A_STATUS_DRIVER_PEAK),
        .managed = a.u64(UMACCT_A_STATUS_MANAGED),
        .untracked = a.u64(UMACCT_A_STATUS_UNTRACKED),
        .untracked_count = a.u64(UMACCT_A_STATUS_UNTRACKED_COUNT),
        .stale_count = a.u64(UMACCT_A_STATUS_STALE_COUNT),
        .accounts = a.u32(UMACCT_A_STATUS_ACCOUNTS),
        .clients = a.u32(UMACCT_A_STATUS_CLIENTS),
        .records = a.u32(UMACCT_A_STATUS_RECORDS),
        .reserve = a.u64(UMACCT_A_STATUS_RESERVE),
        .reserve_count = a.u64(UMACCT_A_STATUS_RESERVE_COUNT),
        .charge_default = enumerator<umacct_charge_mode>(a, UMACCT_A_STATUS_CHARGE_DEFAULT),
        .events_sent = a.u64(UMACCT_A_STATUS_EVENTS_SENT),
        .events_lost = a.u64(UMACCT_A_STATUS_EVENTS_LOST),
        .hooks = {},
    };

    for_each_attribute(payload, [&](std::uint16_t type, std::span<const std::byte> value) {
        if (type == UMACCT_A_STATUS_HOOK)
            status.hooks.push_back(decode_hook(value));
    });
    return status;
}

Account decode_account(std::span<const std::byte> payload) {
    const AttributeReader a(payload, UMACCT_A_ACCOUNT_MAX);

    return {
        .id = a.u64(UMACCT_A_ACCOUNT_ID),
        .parent_id = optional_u64(a, UMACCT_A_ACCOUNT_PARENT_ID),
        .level = a.u32(UMACCT_A_ACCOUNT_LEVEL),
        .path = a.string(UMACCT_A_ACCOUNT_PATH),
        .usage = a.u64(UMACCT_A_ACCOUNT_USAGE),
        .own = a.u64(UMACCT_A_ACCOUNT_LOCAL),
        .peak = a.u64(UMACCT_A_ACCOUNT_PEAK),
        .charged = a.u64(UMACCT_A_ACCOUNT_CHARGED),
        .managed = a.u64(UMACCT_A_ACCOUNT_MANAGED),
        .allocs = a.u64(UMACCT_A_ACCOUNT_ALLOCS),
        .frees = a.u64(UMACCT_A_ACCOUNT_FREES),
        .failures = a.u64(UMACCT_A_ACCOUNT_FAILURES),
        .refusals = a.u64(UMACCT_A_ACCOUNT_REFUSALS),
        .clients = a.u32(UMACCT_A_ACCOUNT_CLIENTS),
        .soft = limit(a, UMACCT_A_ACCOUNT_SOFT),
        .hard = limit(a, UMACCT_A_ACCOUNT_HARD),
        .throttle_ns = a.u64(UMACCT_A_ACCOUNT_THROTTLE),
        .view = a.u32(UMACCT_A_ACCOUNT_VIEW) != 0,
        .charge = enumerator<umacct_charge_mode>(a, UMACCT_A_ACCOUNT_CHARGE),
        .charge_effective = enumerator<umacct_charge_mode>(a, UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE),
        .effective = limit(a, UMACCT_A_ACCOUNT_EFFECTIVE),
        .effective_id = optional_u64(a, UMACCT_A_ACCOUNT_EFFECTIVE_ID),
        .soft_count = a.u64(UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT),
        .hard_count = a.u64(UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT),
        .reserve_count = a.u64(UMACCT_A_ACCOUNT_RESERVE_COUNT),
        .throttled_ns = a.u64(UMACCT_A_ACCOUNT_THROTTLED),
        .memory_current = optional_u64(a, UMACCT_A_ACCOUNT_MEMORY_CURRENT),
        .memory_max = optional_u64(a, UMACCT_A_ACCOUNT_MEMORY_MAX),
    };
}

Client decode_client(std::span<const std::byte> payload) {
    const AttributeReader a(payload, UMACCT_A_CLIENT_MAX);

    return {
        .pid = a.u32(UMACCT_A_CLIENT_PID),
        .start_time_ns = a.u64(UMACCT_A_CLIENT_START_TIME),
        .comm = a.string(UMACCT_A_CLIENT_COMM),
        .account_id = a.u64(UMACCT_A_CLIENT_ACCOUNT_ID),
        .path = a.string(UMACCT_A_CLIENT_PATH),
        .usage = a.u64(UMACCT_A_CLIENT_USAGE),
        .peak = a.u64(UMACCT_A_CLIENT_PEAK),
        .charged = a.u64(UMACCT_A_CLIENT_CHARGED),
        .managed = a.u64(UMACCT_A_CLIENT_MANAGED),
        .allocs = a.u64(UMACCT_A_CLIENT_ALLOCS),
        .frees = a.u64(UMACCT_A_CLIENT_FREES),
        .exited = a.has(UMACCT_A_CLIENT_EXITED),
    };
}

Event decode_event(std::span<const std::byte> payload) {
    const AttributeReader a(payload, UMACCT_A_EVENT_MAX);

    return {
        .type = enumerator<umacct_event_type>(a, UMACCT_A_EVENT_TYPE),
        .sequence = a.u64(UMACCT_A_EVENT_SEQ),
        .time_ns = a.u64(UMACCT_A_EVENT_TIME),
        .account_id = a.u64(UMACCT_A_EVENT_ACCOUNT_ID),
        .path = a.string(UMACCT_A_EVENT_PATH),
        .limit_id = optional_u64(a, UMACCT_A_EVENT_LIMIT_ID),
        .limit_path = a.string(UMACCT_A_EVENT_LIMIT_PATH),
        .pid = a.u32(UMACCT_A_EVENT_PID),
        .comm = a.string(UMACCT_A_EVENT_COMM),
        .size = a.u64(UMACCT_A_EVENT_SIZE),
        .usage = a.u64(UMACCT_A_EVENT_USAGE),
        .limit = a.u64(UMACCT_A_EVENT_LIMIT),
    };
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
