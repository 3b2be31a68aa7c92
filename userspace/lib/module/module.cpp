// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/module.h"

#include <cerrno>
#include <utility>

#include "lib/error.h"

namespace umacct {

namespace {

constexpr int dump_attempts = 16;

Payload subtree_filter(std::uint16_t type, std::optional<std::uint64_t> subtree) {
    AttributeWriter writer;

    if (subtree)
        writer.put_u64(type, *subtree);
    return writer.payload();
}

} // namespace

Module::Module(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

Status Module::status() {
    return decode_status(transport_->request(UMACCT_CMD_STATUS_GET, {}));
}

std::optional<Account> Module::account(std::uint64_t id) {
    AttributeWriter writer;

    writer.put_u64(UMACCT_A_ACCOUNT_ID, id);
    try {
        return decode_account(transport_->request(UMACCT_CMD_ACCOUNT_GET, writer.payload()));
    } catch (const RequestError &error) {
        if (error.code() == ENOENT)
            return std::nullopt;
        throw;
    }
}

std::vector<Account> Module::accounts(std::optional<std::uint64_t> subtree) {
    std::vector<Account> accounts;

    for (const Payload &part :
         dump(UMACCT_CMD_ACCOUNT_GET, subtree_filter(UMACCT_A_ACCOUNT_ID, subtree)))
        accounts.push_back(decode_account(part));
    return accounts;
}

std::vector<Client> Module::clients(std::optional<std::uint64_t> subtree) {
    std::vector<Client> clients;

    for (const Payload &part :
         dump(UMACCT_CMD_CLIENT_GET, subtree_filter(UMACCT_A_CLIENT_ACCOUNT_ID, subtree)))
        clients.push_back(decode_client(part));
    return clients;
}

void Module::set_account(std::uint64_t id, const AccountChange &change) {
    AttributeWriter writer;

    writer.put_u64(UMACCT_A_ACCOUNT_ID, id);
    if (change.soft)
        writer.put_u64(UMACCT_A_ACCOUNT_SOFT, *change.soft);
    if (change.hard)
        writer.put_u64(UMACCT_A_ACCOUNT_HARD, *change.hard);
    if (change.throttle_ns)
        writer.put_u64(UMACCT_A_ACCOUNT_THROTTLE, *change.throttle_ns);
    if (change.view)
        writer.put_u32(UMACCT_A_ACCOUNT_VIEW, *change.view ? 1 : 0);
    if (change.charge)
        writer.put_u32(UMACCT_A_ACCOUNT_CHARGE, *change.charge);
    transport_->request(UMACCT_CMD_ACCOUNT_SET, writer.payload());
}

void Module::set_reserve(std::uint64_t bytes) {
    AttributeWriter writer;

    writer.put_u64(UMACCT_A_STATUS_RESERVE, bytes);
    transport_->request(UMACCT_CMD_CONFIG_SET, writer.payload());
}

void Module::set_charge_default(umacct_charge_mode mode) {
    AttributeWriter writer;

    writer.put_u32(UMACCT_A_STATUS_CHARGE_DEFAULT, mode);
    transport_->request(UMACCT_CMD_CONFIG_SET, writer.payload());
}

void Module::subscribe() {
    transport_->subscribe();
}

EventBatch Module::receive(std::chrono::milliseconds timeout) {
    const Received received = transport_->receive(timeout);
    EventBatch batch{.events = {}, .overrun = received.overrun, .gone = received.gone};

    for (const Payload &event : received.events)
        batch.events.push_back(decode_event(event));
    return batch;
}

std::vector<Payload> Module::dump(umacct_cmd command, const Payload &attributes) {
    for (int attempt = 0; attempt < dump_attempts; ++attempt) {
        Dump answer = transport_->dump(command, attributes);

        if (!answer.interrupted)
            return std::move(answer.parts);
    }
    throw Error(Failure::failed, "the accounts changed during every attempt to read them",
                "try again");
}

} // namespace umacct
