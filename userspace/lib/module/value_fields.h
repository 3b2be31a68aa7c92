// SPDX-License-Identifier: GPL-2.0-or-later
/// Made by "make generate" from docs/netlink/umacct.yaml: do not edit.
// clang-format off
#pragma once

#include "lib/module/fields.h"

namespace umacct {

void fields(auto &way, Is<Hook> auto &hook) {
    way(UMACCT_A_HOOK_NAME, "name", hook.name);
    way(UMACCT_A_HOOK_SYMBOL, "symbol", hook.symbol);
    way(UMACCT_A_HOOK_STATE, "state", hook.state);
    way(UMACCT_A_HOOK_REQUIRED, "required", hook.required);
    way.maybe(UMACCT_A_HOOK_REASON, "reason", hook.reason);
    way(UMACCT_A_HOOK_CALLS, "calls", hook.calls);
    way(UMACCT_A_HOOK_MISSED, "missed", hook.missed);
}

void fields(auto &way, Is<Status> auto &status) {
    way(UMACCT_A_STATUS_MODULE_VERSION, "module_version", status.module_version);
    way(UMACCT_A_STATUS_DRIVER_STATE, "driver_state", status.driver_state);
    way.maybe(UMACCT_A_STATUS_DRIVER_VERSION, "driver_version", status.driver_version);
    way(UMACCT_A_STATUS_UVM_STATE, "uvm_state", status.uvm_state);
    way.maybe(UMACCT_A_STATUS_REASON, "reason", status.reason);
    way(UMACCT_A_STATUS_FLAGS, status.flags);
    way("flags", Flags{status.flags});
    way(UMACCT_A_STATUS_USAGE, "usage_bytes", status.usage);
    way(UMACCT_A_STATUS_CHARGED, "charged_bytes", status.charged);
    way("uncharged_bytes", status.uncharged());
    way(UMACCT_A_STATUS_DRIVER_USAGE, "driver_usage_bytes", status.driver_usage);
    way(UMACCT_A_STATUS_DRIVER_PEAK, "driver_peak_bytes", status.driver_peak);
    way("system_bytes", status.system());
    way(UMACCT_A_STATUS_MANAGED, "managed_bytes", status.managed);
    way(UMACCT_A_STATUS_METADATA, "metadata_bytes", status.metadata);
    way(UMACCT_A_STATUS_POOLS, "pools_bytes", status.pools);
    way(UMACCT_A_STATUS_UNTRACKED, "untracked_bytes", status.untracked);
    way(UMACCT_A_STATUS_UNTRACKED_COUNT, "untracked_count", status.untracked_count);
    way(UMACCT_A_STATUS_UNATTRIBUTED_COUNT, "unattributed_count", status.unattributed_count);
    way(UMACCT_A_STATUS_STALE_COUNT, "stale_count", status.stale_count);
    way(UMACCT_A_STATUS_ACCOUNTS, "accounts", status.accounts);
    way(UMACCT_A_STATUS_CLIENTS, "clients", status.clients);
    way(UMACCT_A_STATUS_RECORDS, "records", status.records);
    way(UMACCT_A_STATUS_AVAILABLE, "available_bytes", status.available);
    way(UMACCT_A_STATUS_RESERVE, "reserve_bytes", status.reserve);
    way(UMACCT_A_STATUS_KEPT, "kept_bytes", status.kept);
    way(UMACCT_A_STATUS_RESERVE_COUNT, "reserve_count", status.reserve_count);
    way(UMACCT_A_STATUS_CHARGE_DEFAULT, "charge_default", status.charge_default);
    way.maybe(UMACCT_A_STATUS_CHARGE_REASON, "charge_reason", status.charge_reason);
    way(UMACCT_A_STATUS_EVENTS_SENT, "events_sent", status.events_sent);
    way(UMACCT_A_STATUS_EVENTS_LOST, "events_lost", status.events_lost);
    way(UMACCT_A_STATUS_HOOK, "hooks", status.hooks);
    way(UMACCT_A_STATUS_MEMORY_TOTAL, status.memory_total);
    way(UMACCT_A_STATUS_MEMORY_FREE, status.memory_free);
    way(UMACCT_A_STATUS_MEMORY_AVAILABLE, status.memory_available);
    way(UMACCT_A_STATUS_MEMORY_BUFFERS, status.memory_buffers);
    way(UMACCT_A_STATUS_MEMORY_CACHED, status.memory_cached);
    way(UMACCT_A_STATUS_MEMORY_SRECLAIMABLE, status.memory_sreclaimable);
    way(UMACCT_A_STATUS_MEMORY_KRECLAIMABLE, status.memory_kreclaimable);
    way(UMACCT_A_STATUS_SINCE, "since_ns", status.since_ns);
}

void fields(auto &way, Is<Account> auto &account) {
    way(UMACCT_A_ACCOUNT_ID, "id", account.id);
    way(UMACCT_A_ACCOUNT_PARENT_ID, "parent_id", account.parent_id);
    way(UMACCT_A_ACCOUNT_LEVEL, "level", account.level);
    way(UMACCT_A_ACCOUNT_PATH, "path", account.path);
    way.owner(account.path);
    way(UMACCT_A_ACCOUNT_USAGE, "usage_bytes", account.usage);
    way(UMACCT_A_ACCOUNT_LOCAL, "local_bytes", account.local);
    way(UMACCT_A_ACCOUNT_PEAK, "peak_bytes", account.peak);
    way(UMACCT_A_ACCOUNT_CHARGED, "charged_bytes", account.charged);
    way("uncharged_bytes", account.uncharged());
    way("system_bytes", account.system());
    way(UMACCT_A_ACCOUNT_MANAGED, "managed_bytes", account.managed);
    way(UMACCT_A_ACCOUNT_METADATA, "metadata_bytes", account.metadata);
    way(UMACCT_A_ACCOUNT_PINNED, "pinned_bytes", account.pinned);
    way(UMACCT_A_ACCOUNT_ALLOCS, "allocs", account.allocs);
    way(UMACCT_A_ACCOUNT_FREES, "frees", account.frees);
    way(UMACCT_A_ACCOUNT_FAILURES, "failures", account.failures);
    way(UMACCT_A_ACCOUNT_FAILED, "failed", account.failed);
    way(UMACCT_A_ACCOUNT_REFUSALS, "refusals", account.refusals);
    way(UMACCT_A_ACCOUNT_CLIENTS, "clients", account.clients);
    way.limit(UMACCT_A_ACCOUNT_SOFT, "soft_bytes", account.soft);
    way.limit(UMACCT_A_ACCOUNT_HARD, "hard_bytes", account.hard);
    way(UMACCT_A_ACCOUNT_KEEP, "keep_bytes", account.keep);
    way(UMACCT_A_ACCOUNT_THROTTLE, "throttle_ns", account.throttle_ns);
    way.word(UMACCT_A_ACCOUNT_VIEW, "view", account.view);
    way(UMACCT_A_ACCOUNT_CHARGE, "charge", account.charge);
    way(UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE, "charge_effective", account.charge_effective);
    way.limit(UMACCT_A_ACCOUNT_EFFECTIVE, "effective_bytes", account.effective);
    way(UMACCT_A_ACCOUNT_EFFECTIVE_ID, "effective_id", account.effective_id);
    way(UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT, "local_soft_count", account.soft_count);
    way(UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT, "local_hard_count", account.hard_count);
    way(UMACCT_A_ACCOUNT_RESERVE_COUNT, "reserve_count", account.reserve_count);
    way(UMACCT_A_ACCOUNT_THROTTLED, "throttled_ns", account.throttled_ns);
    way(UMACCT_A_ACCOUNT_MEMORY_CURRENT, account.memory_current);
    way(UMACCT_A_ACCOUNT_MEMORY_MAX, account.memory_max);
    way(UMACCT_A_ACCOUNT_ALLOC_TIME, "alloc_time_ns", account.alloc_time_ns);
    way(UMACCT_A_ACCOUNT_ALLOC_TIME_MAX, "alloc_time_max_ns", account.alloc_time_max_ns);
}

void fields(auto &way, Is<Client> auto &client) {
    way("pid", client.pid == 0 ? std::nullopt : std::optional(client.pid));
    way("start_monotonic_us", client.start_time_ns / 1000);
    way(UMACCT_A_CLIENT_PID, client.pid);
    way(UMACCT_A_CLIENT_START_TIME, client.start_time_ns);
    way(UMACCT_A_CLIENT_COMM, "comm", client.comm);
    way(UMACCT_A_CLIENT_ACCOUNT_ID, "account_id", client.account_id);
    way(UMACCT_A_CLIENT_PATH, "path", client.path);
    way.owner(client.path);
    way(UMACCT_A_CLIENT_USAGE, "usage_bytes", client.usage);
    way(UMACCT_A_CLIENT_PEAK, "peak_bytes", client.peak);
    way(UMACCT_A_CLIENT_CHARGED, "charged_bytes", client.charged);
    way("uncharged_bytes", client.uncharged());
    way("system_bytes", client.system());
    way(UMACCT_A_CLIENT_MANAGED, "managed_bytes", client.managed);
    way(UMACCT_A_CLIENT_METADATA, "metadata_bytes", client.metadata);
    way(UMACCT_A_CLIENT_PINNED, "pinned_bytes", client.pinned);
    way(UMACCT_A_CLIENT_ALLOCS, "allocs", client.allocs);
    way(UMACCT_A_CLIENT_FREES, "frees", client.frees);
    way(UMACCT_A_CLIENT_RECORDS, "records", client.records);
    way(UMACCT_A_CLIENT_EXITED, "exited", client.exited);
    way(UMACCT_A_CLIENT_EXITING, "exiting", client.exiting);
}

void fields(auto &way, Is<Event> auto &event) {
    way(UMACCT_A_EVENT_TYPE, "type", event.type);
    way(UMACCT_A_EVENT_SEQ, "seq", event.sequence);
    way.time(UMACCT_A_EVENT_TIME, event.time_ns);
    way(UMACCT_A_EVENT_ACCOUNT_ID, "account_id", event.account_id);
    way(UMACCT_A_EVENT_PATH, "path", event.path);
    way.owner(event.path);
    way(UMACCT_A_EVENT_LIMIT_ID, "limit_id", event.limit_id);
    way.maybe(UMACCT_A_EVENT_LIMIT_PATH, "limit_path", event.limit_path);
    way(UMACCT_A_EVENT_PID, "pid", event.pid);
    way(UMACCT_A_EVENT_COMM, "comm", event.comm);
    way(UMACCT_A_EVENT_SIZE, "size_bytes", event.size);
    way(UMACCT_A_EVENT_USAGE, "usage_bytes", event.usage);
    way(UMACCT_A_EVENT_LIMIT, "limit_bytes", event.limit);
    way(UMACCT_A_EVENT_COUNT, "count", event.count);
}

/// Keys of a status in JSON that are null for a reader that may not see all.
inline constexpr const char *restricted_keys[] = {
    "driver_usage_bytes",
    "driver_peak_bytes",
    "untracked_bytes",
    "untracked_count",
    "stale_count",
    "accounts",
    "clients",
    "records",
    "reserve_bytes",
    "reserve_count",
    "charge_default",
    "events_sent",
    "events_lost",
    "unattributed_count",
    "available_bytes",
    "kept_bytes",
};

void fields(auto &way, Is<Flags> auto &flags) {
    way("memcg_v2", (flags.bits & UMACCT_STATUS_MEMCG_V2) != 0);
    way("kmem", (flags.bits & UMACCT_STATUS_KMEM) != 0);
    way("native_charge", (flags.bits & UMACCT_STATUS_NATIVE_CHARGE) != 0);
    way("page_pools", (flags.bits & UMACCT_STATUS_PAGE_POOLS) != 0);
    way("charge_ready", (flags.bits & UMACCT_STATUS_CHARGE_READY) != 0);
    way("view_ready", (flags.bits & UMACCT_STATUS_VIEW_READY) != 0);
    way("cgroup_v2", (flags.bits & UMACCT_STATUS_CGROUP_V2) != 0);
    way("selftest", (flags.bits & UMACCT_STATUS_SELFTEST) != 0);
    way("unenforced", (flags.bits & UMACCT_STATUS_UNENFORCED) != 0);
    way("observer", (flags.bits & UMACCT_STATUS_OBSERVER) != 0);
}

} // namespace umacct
