// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/module.h"

#include <cerrno>
#include <cstddef>
#include <span>

#include "lib/error.h"

namespace umacct {

namespace {

/// A tenant can interrupt dumps by changing its cgroups: the last one is used as it is.
constexpr int dump_attempts = 16;

} // namespace

Status Module::status() {
    return decode<Status>(transport_->request(UMACCT_CMD_STATUS_GET, {}));
}

std::optional<Account> Module::account(std::uint64_t id) {
    try {
        return decode<Account>(transport_->request(UMACCT_CMD_ACCOUNT_GET,
                                                   encode(AccountRequest{.id = id, .change = {}})));
    } catch (const RequestError &error) {
        if (error.code() == ENOENT)
            return std::nullopt;
        throw;
    }
}

std::vector<Account> Module::accounts(std::optional<std::uint64_t> subtree) {
    return all<Account>(UMACCT_CMD_ACCOUNT_GET, AccountRequest{.id = subtree, .change = {}});
}

std::vector<Client> Module::clients(std::optional<std::uint64_t> subtree) {
    return all<Client>(UMACCT_CMD_CLIENT_GET, ClientRequest{.account_id = subtree});
}

std::vector<Client> Module::exiting_clients(std::optional<std::uint64_t> subtree) {
    return all<Client>(UMACCT_CMD_CLIENT_GET,
                       ClientRequest{.account_id = subtree, .exiting = true});
}

Enforcement Module::set_account(std::uint64_t id, const AccountChange &change) {
    return decode<Enforcement>(transport_->request(
        UMACCT_CMD_ACCOUNT_SET, encode(AccountRequest{.id = id, .change = change})));
}

Enforcement Module::set_machine(const MachineChange &change) {
    const Payload answer = transport_->request(UMACCT_CMD_CONFIG_SET, encode(change));
    const auto status = decode<Status>(answer);

    return {.driver_state = answer.empty() ? UMACCT_DRIVER_HOOKED : status.driver_state,
            .reason = status.reason};
}

Enforcement Module::set_reserve(std::uint64_t bytes) {
    return set_machine({.reserve = bytes, .charge_default = {}});
}

Enforcement Module::set_charge_default(umacct_charge_mode mode) {
    return set_machine({.reserve = {}, .charge_default = mode});
}

Reclaim Module::reclaim() {
    return decode<Reclaim>(transport_->request(UMACCT_CMD_RECLAIM, {}));
}

void Module::subscribe() {
    transport_->subscribe();
}

Received<Event> Module::receive(std::chrono::milliseconds timeout) {
    const Received<Payload> received = transport_->receive(timeout);
    Received<Event> decoded{
        .events = {}, .overrun = received.overrun, .gone = received.gone, .none = received.none};

    for (const Payload &event : received.events)
        decoded.events.push_back(decode<Event>(event));
    return decoded;
}

template <class Value, class Request, class Begin, class Take>
void Module::dump(umacct_cmd command, const Request &request, Begin begin, Take take) {
    const Payload attributes = encode(request);
    bool interrupted = true;

    for (int attempt = 0; interrupted && attempt < dump_attempts; ++attempt) {
        begin();
        interrupted =
            transport_->dump(command, attributes, [&take](std::span<const std::byte> part) {
                take(decode<Value>(part));
            });
    }
}

template <class Value, class Request>
std::vector<Value> Module::all(umacct_cmd command, const Request &request) {
    std::vector<Value> values;

    dump<Value>(
        command, request, [&values] { values.clear(); },
        [&values](Value value) { values.push_back(std::move(value)); });
    return values;
}

void Module::for_each_account(const std::function<void()> &begin,
                              const std::function<void(Account account)> &take) {
    dump<Account>(UMACCT_CMD_ACCOUNT_GET, AccountRequest{.id = {}, .change = {}}, begin, take);
}

Module &Connection::module() {
    try {
        return loaded();
    } catch (const Error &error) {
        if (error.failure() != Failure::missing || !otherwise_)
            throw;
        auto transport = otherwise_();
        if (!transport)
            throw Error(Failure::missing, error.what(),
                        error.hint() + "; until then 'umacct setup observer on' counts");
        return module_.emplace(std::move(transport));
    }
}

} // namespace umacct
