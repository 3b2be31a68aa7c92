// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fake_module.h"

#include <cerrno>
#include <utility>

#include "lib/error.h"

namespace umacct::test {

namespace {

std::uint64_t bytes_of(const Limit &limit) {
    return limit.value_or(UMACCT_UNLIMITED);
}

class FakeTransport : public Transport {
public:
    explicit FakeTransport(FakeModule &module) : module_(module) {}

    Payload request(umacct_cmd command, const Payload &attributes) override {
        if (module_.fail_with)
            throw RequestError(*module_.fail_with, "", 0);
        if (command == UMACCT_CMD_STATUS_GET)
            return encode(module_.status);
        if (command == UMACCT_CMD_ACCOUNT_GET)
            return account(
                AttributeReader(attributes, UMACCT_A_ACCOUNT_MAX).u64(UMACCT_A_ACCOUNT_ID));
        if (module_.refuse_with)
            throw RequestError(*module_.refuse_with, "the fake module refuses",
                               module_.refused_attribute);
        module_.changes.push_back({command, attributes});
        return {};
    }

    Dump dump(umacct_cmd command, const Payload & /*attributes*/) override {
        Dump dump{.parts = {}, .interrupted = module_.dumps < module_.interruptions};

        ++module_.dumps;
        if (command == UMACCT_CMD_ACCOUNT_GET) {
            for (const Account &account : module_.accounts)
                dump.parts.push_back(encode(account));
        } else {
            for (const Client &client : module_.clients)
                dump.parts.push_back(encode(client));
        }
        return dump;
    }

    void subscribe() override { module_.subscribed = true; }

    Received receive(std::chrono::milliseconds /*timeout*/) override {
        module_.status.events_sent += std::exchange(module_.sent_while_watching, 0);
        if (received_ == module_.to_receive.size())
            return {.events = {}, .overrun = false, .gone = true};
        return module_.to_receive[received_++];
    }

private:
    Payload account(std::uint64_t id) {
        for (const Account &account : module_.accounts) {
            if (account.id == id)
                return encode(account);
        }
        throw RequestError(ENOENT, "no such account", UMACCT_A_ACCOUNT_ID);
    }

    FakeModule &module_;
    std::size_t received_ = 0;
};

} // namespace

FakeModule::FakeModule() {
    status.module_version = "0.1.0";
    status.driver_state = UMACCT_DRIVER_HOOKED;
    status.driver_version = "550.163.01";
    status.uvm_state = UMACCT_DRIVER_HOOKED;
    status.flags = UMACCT_STATUS_MEMCG_V2 | UMACCT_STATUS_KMEM | UMACCT_STATUS_CHARGE_READY |
                   UMACCT_STATUS_VIEW_READY | UMACCT_STATUS_CGROUP_V2 | UMACCT_STATUS_SELFTEST;
    status.hooks.push_back({.name = "allocate",
                            .symbol = "nvidia:nv_alloc_pages",
                            .state = UMACCT_HOOK_ARMED,
                            .required = true,
                            .reason = "",
                            .calls = 12,
                            .missed = 0});
}

std::unique_ptr<Transport> FakeModule::connect() {
    return std::make_unique<FakeTransport>(*this);
}

Payload encode(const Status &status) {
    AttributeWriter w;

    w.put_string(UMACCT_A_STATUS_MODULE_VERSION, status.module_version);
    w.put_u32(UMACCT_A_STATUS_DRIVER_STATE, status.driver_state);
    if (!status.driver_version.empty())
        w.put_string(UMACCT_A_STATUS_DRIVER_VERSION, status.driver_version);
    w.put_u32(UMACCT_A_STATUS_UVM_STATE, status.uvm_state);
    if (!status.reason.empty())
        w.put_string(UMACCT_A_STATUS_REASON, status.reason);
    w.put_u32(UMACCT_A_STATUS_FLAGS, status.flags);
    w.put_u64(UMACCT_A_STATUS_USAGE, status.usage);
    w.put_u64(UMACCT_A_STATUS_CHARGED, status.charged);
    w.put_u64(UMACCT_A_STATUS_DRIVER_USAGE, status.driver_usage);
    w.put_u64(UMACCT_A_STATUS_DRIVER_PEAK, status.driver_peak);
    w.put_u64(UMACCT_A_STATUS_MANAGED, status.managed);
    w.put_u64(UMACCT_A_STATUS_UNTRACKED, status.untracked);
    w.put_u64(UMACCT_A_STATUS_UNTRACKED_COUNT, status.untracked_count);
    w.put_u64(UMACCT_A_STATUS_STALE_COUNT, status.stale_count);
    w.put_u32(UMACCT_A_STATUS_ACCOUNTS, status.accounts);
    w.put_u32(UMACCT_A_STATUS_CLIENTS, status.clients);
    w.put_u32(UMACCT_A_STATUS_RECORDS, status.records);
    w.put_u64(UMACCT_A_STATUS_RESERVE, status.reserve);
    w.put_u64(UMACCT_A_STATUS_RESERVE_COUNT, status.reserve_count);
    w.put_u32(UMACCT_A_STATUS_CHARGE_DEFAULT, status.charge_default);
    w.put_u64(UMACCT_A_STATUS_EVENTS_SENT, status.events_sent);
    w.put_u64(UMACCT_A_STATUS_EVENTS_LOST, status.events_lost);
    for (const Hook &hook : status.hooks) {
        AttributeWriter nest;

        nest.put_string(UMACCT_A_HOOK_NAME, hook.name);
        nest.put_string(UMACCT_A_HOOK_SYMBOL, hook.symbol);
        nest.put_u32(UMACCT_A_HOOK_STATE, hook.state);
        if (hook.required)
            nest.put_flag(UMACCT_A_HOOK_REQUIRED);
        if (!hook.reason.empty())
            nest.put_string(UMACCT_A_HOOK_REASON, hook.reason);
        nest.put_u64(UMACCT_A_HOOK_CALLS, hook.calls);
        nest.put_u64(UMACCT_A_HOOK_MISSED, hook.missed);
        w.put_nest(UMACCT_A_STATUS_HOOK, nest.payload());
    }
    return w.payload();
}

Payload encode(const Account &account) {
    AttributeWriter w;

    w.put_u64(UMACCT_A_ACCOUNT_ID, account.id);
    if (account.parent_id)
        w.put_u64(UMACCT_A_ACCOUNT_PARENT_ID, *account.parent_id);
    w.put_u32(UMACCT_A_ACCOUNT_LEVEL, account.level);
    w.put_string(UMACCT_A_ACCOUNT_PATH, account.path);
    w.put_u64(UMACCT_A_ACCOUNT_USAGE, account.usage);
    w.put_u64(UMACCT_A_ACCOUNT_LOCAL, account.own);
    w.put_u64(UMACCT_A_ACCOUNT_PEAK, account.peak);
    w.put_u64(UMACCT_A_ACCOUNT_CHARGED, account.charged);
    w.put_u64(UMACCT_A_ACCOUNT_MANAGED, account.managed);
    w.put_u64(UMACCT_A_ACCOUNT_ALLOCS, account.allocs);
    w.put_u64(UMACCT_A_ACCOUNT_FREES, account.frees);
    w.put_u64(UMACCT_A_ACCOUNT_FAILURES, account.failures);
    w.put_u64(UMACCT_A_ACCOUNT_REFUSALS, account.refusals);
    w.put_u32(UMACCT_A_ACCOUNT_CLIENTS, account.clients);
    w.put_u64(UMACCT_A_ACCOUNT_SOFT, bytes_of(account.soft));
    w.put_u64(UMACCT_A_ACCOUNT_HARD, bytes_of(account.hard));
    w.put_u64(UMACCT_A_ACCOUNT_THROTTLE, account.throttle_ns);
    w.put_u32(UMACCT_A_ACCOUNT_VIEW, account.view ? 1 : 0);
    w.put_u32(UMACCT_A_ACCOUNT_CHARGE, account.charge);
    w.put_u32(UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE, account.charge_effective);
    w.put_u64(UMACCT_A_ACCOUNT_EFFECTIVE, bytes_of(account.effective));
    if (account.effective_id)
        w.put_u64(UMACCT_A_ACCOUNT_EFFECTIVE_ID, *account.effective_id);
    w.put_u64(UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT, account.soft_count);
    w.put_u64(UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT, account.hard_count);
    w.put_u64(UMACCT_A_ACCOUNT_RESERVE_COUNT, account.reserve_count);
    if (account.memory_current)
        w.put_u64(UMACCT_A_ACCOUNT_MEMORY_CURRENT, *account.memory_current);
    if (account.memory_max)
        w.put_u64(UMACCT_A_ACCOUNT_MEMORY_MAX, *account.memory_max);
    w.put_u64(UMACCT_A_ACCOUNT_THROTTLED, account.throttled_ns);
    return w.payload();
}

Payload encode(const Client &client) {
    AttributeWriter w;

    w.put_u32(UMACCT_A_CLIENT_PID, client.pid);
    w.put_u64(UMACCT_A_CLIENT_START_TIME, client.start_time_ns);
    w.put_string(UMACCT_A_CLIENT_COMM, client.comm);
    w.put_u64(UMACCT_A_CLIENT_ACCOUNT_ID, client.account_id);
    w.put_string(UMACCT_A_CLIENT_PATH, client.path);
    w.put_u64(UMACCT_A_CLIENT_USAGE, client.usage);
    w.put_u64(UMACCT_A_CLIENT_PEAK, client.peak);
    w.put_u64(UMACCT_A_CLIENT_CHARGED, client.charged);
    w.put_u64(UMACCT_A_CLIENT_MANAGED, client.managed);
    w.put_u64(UMACCT_A_CLIENT_ALLOCS, client.allocs);
    w.put_u64(UMACCT_A_CLIENT_FREES, client.frees);
    if (client.exited)
        w.put_flag(UMACCT_A_CLIENT_EXITED);
    return w.payload();
}

Payload encode(const Event &event) {
    AttributeWriter w;

    w.put_u32(UMACCT_A_EVENT_TYPE, event.type);
    w.put_u64(UMACCT_A_EVENT_SEQ, event.sequence);
    w.put_u64(UMACCT_A_EVENT_TIME, event.time_ns);
    w.put_u64(UMACCT_A_EVENT_ACCOUNT_ID, event.account_id);
    w.put_string(UMACCT_A_EVENT_PATH, event.path);
    if (event.limit_id) {
        w.put_u64(UMACCT_A_EVENT_LIMIT_ID, *event.limit_id);
        w.put_string(UMACCT_A_EVENT_LIMIT_PATH, event.limit_path);
    }
    w.put_u32(UMACCT_A_EVENT_PID, event.pid);
    w.put_string(UMACCT_A_EVENT_COMM, event.comm);
    w.put_u64(UMACCT_A_EVENT_SIZE, event.size);
    w.put_u64(UMACCT_A_EVENT_USAGE, event.usage);
    w.put_u64(UMACCT_A_EVENT_LIMIT, event.limit);
    return w.payload();
}

} // namespace umacct::test
