// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fake_module.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <netlink/attr.h>

#include "lib/error.h"

namespace umacct::test {

namespace {

class FakeTransport : public Transport {
public:
    explicit FakeTransport(FakeModule &module) : module_(module) {}

    Payload request(umacct_cmd command, const Payload &attributes) override {
        if (module_.fail_with)
            throw RequestError(*module_.fail_with, "", 0);
        if (command == UMACCT_CMD_STATUS_GET)
            return encode(module_.status);
        if (command == UMACCT_CMD_ACCOUNT_GET && module_.on_account)
            module_.on_account();
        if (command == UMACCT_CMD_ACCOUNT_GET)
            return account(attribute(attributes, UMACCT_A_ACCOUNT_ID).value());
        if (module_.refuse_with)
            throw RequestError(*module_.refuse_with, "the fake module refuses",
                               module_.refused_attribute);
        if (module_.refuse_in > 0 && --module_.refuse_in == 0)
            throw RequestError(EINVAL, "the fake module refuses this one", 0);
        module_.changes.push_back({command, attributes});
        if (module_.on_change)
            module_.on_change();
        return answer(command);
    }

    bool dump(umacct_cmd command, const Payload &attributes, const Take &take) override {
        const bool interrupted = module_.dumps < module_.interruptions;

        if (module_.fail_with)
            throw RequestError(*module_.fail_with, "", 0);
        if (module_.goes_after && module_.dumps >= *module_.goes_after)
            throw Error(Failure::missing, "the fake module goes");
        ++module_.dumps;
        if (command == UMACCT_CMD_ACCOUNT_GET) {
            const auto subtree = attribute(attributes, UMACCT_A_ACCOUNT_ID);

            for (const Account &account : module_.accounts) {
                if (!subtree || is_below(account.path, *subtree))
                    take(encode(account));
            }
        } else {
            const auto asked = decode<ClientRequest>(attributes);

            for (const Client &client : module_.clients) {
                if ((!asked.account_id || is_below(client.path, *asked.account_id)) &&
                    (!asked.exiting || client.exiting))
                    take(encode(client));
            }
        }
        return interrupted;
    }

    void subscribe() override { module_.subscribed = true; }

    Received<Payload> receive(std::chrono::milliseconds /*timeout*/) override {
        module_.status.events_sent += std::exchange(module_.sent_while_watching, 0);
        if (module_.while_watching)
            module_.while_watching();
        if (received_ == module_.to_receive.size())
            return {.events = {}, .overrun = false, .gone = true};
        return module_.to_receive[received_++];
    }

private:
    Payload answer(umacct_cmd command) const {
        Status status;

        if (command == UMACCT_CMD_RECLAIM)
            return encode(module_.reclaim);
        if (command == UMACCT_CMD_ACCOUNT_SET)
            return encode(module_.enforcement);
        status.driver_state = module_.enforcement.driver_state;
        status.reason = module_.enforcement.reason;
        return encode(status);
    }

    /// Computes it by the tree, which a path shows, as the module does.
    bool is_below(const std::string &path, std::uint64_t id) const {
        return std::any_of(
            module_.accounts.begin(), module_.accounts.end(), [&](const Account &top) {
                return top.id == id &&
                       (top.path == "/" || path == top.path || path.starts_with(top.path + "/"));
            });
    }

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
    status.pools = 0;
    status.records = 0;
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

std::optional<std::uint64_t> attribute(const Payload &payload, int type) {
    const nlattr *found = nla_find(reinterpret_cast<const nlattr *>(payload.data()),
                                   static_cast<int>(payload.size()), type);

    if (found == nullptr)
        return std::nullopt;
    return nla_len(found) == sizeof(std::uint64_t) ? nla_get_u64(found) : nla_get_u32(found);
}

} // namespace umacct::test
