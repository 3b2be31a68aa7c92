// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json.h"

#include <ctime>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

namespace umacct {

namespace {

template <class T>
Json nullable(const std::optional<T> &value) {
    return value ? Json(*value) : Json(nullptr);
}

/// Empty text means that there is none.
Json nullable_text(const std::string &text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

std::uint64_t now_ns(clockid_t clock) {
    timespec now{};

    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

/// From nanoseconds since 1970.
std::string rfc3339(std::uint64_t ns) {
    return fmt::format("{:%FT%T}.{:09}Z", fmt::gmtime(static_cast<time_t>(ns / 1'000'000'000)),
                       ns % 1'000'000'000);
}

/// The same moment, counted from the machine's start.
std::uint64_t monotonic_us(std::uint64_t ns) {
    const std::uint64_t ago = now_ns(CLOCK_REALTIME) - ns; // may wrap, and wraps back

    return (now_ns(CLOCK_BOOTTIME) - ago) / 1000;
}

Json flag_names(const Status &status) {
    return {{"memcg_v2", status.has(UMACCT_STATUS_MEMCG_V2)},
            {"kmem", status.has(UMACCT_STATUS_KMEM)},
            {"native_charge", status.has(UMACCT_STATUS_NATIVE_CHARGE)},
            {"page_pools", status.has(UMACCT_STATUS_PAGE_POOLS)},
            {"charge_ready", status.has(UMACCT_STATUS_CHARGE_READY)},
            {"view_ready", status.has(UMACCT_STATUS_VIEW_READY)},
            {"cgroup_v2", status.has(UMACCT_STATUS_CGROUP_V2)},
            {"selftest", status.has(UMACCT_STATUS_SELFTEST)},
            {"unenforced", status.has(UMACCT_STATUS_UNENFORCED)}};
}

} // namespace

Json to_json(const std::optional<Owner> &owner) {
    static constexpr const char *kinds[] = {"container", "pod", "unit"};

    if (!owner)
        return nullptr;
    return {{"kind", kinds[static_cast<int>(owner->kind)]},
            {"runtime", owner->runtime},
            {"id", owner->id},
            {"name", nullable_text(owner->full_name())},
            {"container_id", owner->kind == OwnerKind::container ? Json(owner->id) : Json(nullptr)},
            {"namespace", nullable_text(owner->kube_namespace)},
            {"pod", nullable_text(owner->pod)},
            {"container", nullable_text(owner->container)}};
}

Json to_json(const Hook &hook) {
    return {{"name", hook.name},
            {"symbol", hook.symbol},
            {"state", name_of(hook.state)},
            {"required", hook.required},
            {"reason", nullable_text(hook.reason)},
            {"calls", hook.calls},
            {"missed", hook.missed}};
}

Json to_json(const Status &status) {
    Json hooks = Json::array();

    for (const Hook &hook : status.hooks)
        hooks.push_back(to_json(hook));
    return {{"module_version", status.module_version},
            {"driver_state", name_of(status.driver_state)},
            {"driver_version", nullable_text(status.driver_version)},
            {"uvm_state", name_of(status.uvm_state)},
            {"reason", nullable_text(status.reason)},
            {"flags", flag_names(status)},
            {"usage_bytes", status.usage},
            {"charged_bytes", status.charged},
            {"uncharged_bytes", status.uncharged()},
            {"driver_usage_bytes", status.driver_usage},
            {"driver_peak_bytes", status.driver_peak},
            {"managed_bytes", status.managed},
            {"untracked_bytes", status.untracked},
            {"untracked_count", status.untracked_count},
            {"unattributed_count", status.unattributed_count},
            {"stale_count", status.stale_count},
            {"accounts", status.accounts},
            {"clients", status.clients},
            {"records", status.records},
            {"reserve_bytes", status.reserve},
            {"reserve_count", status.reserve_count},
            {"charge_default", name_of(status.charge_default)},
            {"charge_reason", nullable_text(status.charge_reason)},
            {"events_sent", status.events_sent},
            {"events_lost", status.events_lost},
            {"hooks", hooks}};
}

Json to_json(const Owners &owners, const Account &account) {
    return {{"id", account.id},
            {"parent_id", nullable(account.parent_id)},
            {"level", account.level},
            {"path", account.path},
            {"owner", to_json(owners.nearest(account.path))},
            {"usage_bytes", account.usage},
            {"local_bytes", account.local},
            {"peak_bytes", account.peak},
            {"charged_bytes", account.charged},
            {"uncharged_bytes", account.uncharged()},
            {"managed_bytes", account.managed},
            {"allocs", account.allocs},
            {"frees", account.frees},
            {"failures", account.failures},
            {"refusals", account.refusals},
            {"clients", account.clients},
            {"soft_bytes", nullable(account.soft)},
            {"hard_bytes", nullable(account.hard)},
            {"throttle_ns", account.throttle_ns},
            {"view", account.view},
            {"charge", name_of(account.charge)},
            {"charge_effective", name_of(account.charge_effective)},
            {"effective_bytes", nullable(account.effective)},
            {"effective_id", nullable(account.effective_id)},
            {"local_soft_count", account.soft_count},
            {"local_hard_count", account.hard_count},
            {"reserve_count", account.reserve_count},
            {"throttled_ns", account.throttled_ns}};
}

Json to_json(const Owners &owners, const Account &account, const MemoryController &memory) {
    Json json = to_json(owners, account);

    json["memory_current_bytes"] = nullable(memory.current);
    // null is "no limit" here as everywhere: memory_current tells it from "not known".
    json["memory_max_bytes"] = memory.max == std::optional<std::uint64_t>(UMACCT_UNLIMITED)
                                   ? Json(nullptr)
                                   : nullable(memory.max);
    return json;
}

Json to_json(const Owners &owners, const Client &client) {
    return {{"pid", client.pid == 0 ? Json(nullptr) : Json(client.pid)},
            {"start_monotonic_us", client.start_time_ns / 1000},
            {"comm", client.comm},
            {"account_id", client.account_id},
            {"path", client.path},
            {"owner", to_json(owners.nearest(client.path))},
            {"usage_bytes", client.usage},
            {"peak_bytes", client.peak},
            {"charged_bytes", client.charged},
            {"uncharged_bytes", client.uncharged()},
            {"managed_bytes", client.managed},
            {"allocs", client.allocs},
            {"frees", client.frees},
            {"exited", client.exited}};
}

Json to_json(const Owners &owners, const std::vector<Client> &clients) {
    Json json = Json::array();

    for (const Client &client : clients)
        json.push_back(to_json(owners, client));
    return json;
}

Json to_json(const Owners &owners, const Event &event) {
    return {{"type", name_of(event.type)},
            {"seq", event.sequence},
            {"time", rfc3339(event.time_ns)},
            {"monotonic_us", monotonic_us(event.time_ns)},
            {"account_id", event.account_id},
            {"path", event.path},
            {"owner", to_json(owners.nearest(event.path))},
            {"limit_id", nullable(event.limit_id)},
            {"limit_path", nullable_text(event.limit_path)},
            {"pid", event.pid},
            {"comm", event.comm},
            {"size_bytes", event.size},
            {"usage_bytes", event.usage},
            {"limit_bytes", event.limit},
            {"count", event.count}};
}

Json to_json(const Enforcement &made) {
    return {{"driver_state", name_of(made.driver_state)}, {"not_enforced", made.reason}};
}

Json json_document(const std::string &boot_id) {
    const std::uint64_t now = now_ns(CLOCK_REALTIME);

    return {{"schema", json_schema},
            {"time", rfc3339(now)},
            {"monotonic_us", monotonic_us(now)},
            {"boot_id", nullable_text(boot_id)}};
}

Json merged(Json first, const Json &second) {
    first.update(second);
    return first;
}

void print_json(std::ostream &out, const Json &json) {
    // Names of processes and cgroups may hold any bytes: in ASCII none moves a terminal.
    out << json.dump(-1, ' ', true, Json::error_handler_t::replace) << '\n';
}

} // namespace umacct
