// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/message.h"

#include <array>
#include <memory>
#include <new>
#include <type_traits>

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "lib/error.h"

namespace umacct {

namespace {

/// More than any value has: a status with a nest for each hook is the largest.
constexpr std::size_t largest_message = 64U << 10;
constexpr std::uint16_t most_attributes = 64;

static_assert(UMACCT_A_STATUS_MAX <= most_attributes && UMACCT_A_ACCOUNT_MAX <= most_attributes &&
              UMACCT_A_CLIENT_MAX <= most_attributes && UMACCT_A_EVENT_MAX <= most_attributes &&
              UMACCT_A_HOOK_MAX <= most_attributes);

[[noreturn]] void throw_malformed() {
    throw Error(Failure::failed, "the module sent an answer that can't be read",
                "the tool and the module may not fit together: compare 'umacct --version'");
}

// --- the tables: each type of attribute with the member that it is ---------------

template <class Way>
void visit(Way &way, Hook &hook) {
    way(UMACCT_A_HOOK_NAME, hook.name);
    way(UMACCT_A_HOOK_SYMBOL, hook.symbol);
    way(UMACCT_A_HOOK_STATE, hook.state);
    way(UMACCT_A_HOOK_REQUIRED, hook.required);
    way(UMACCT_A_HOOK_REASON, hook.reason);
    way(UMACCT_A_HOOK_CALLS, hook.calls);
    way(UMACCT_A_HOOK_MISSED, hook.missed);
}

template <class Way>
void visit(Way &way, Status &status) {
    way(UMACCT_A_STATUS_MODULE_VERSION, status.module_version);
    way(UMACCT_A_STATUS_DRIVER_STATE, status.driver_state);
    way(UMACCT_A_STATUS_DRIVER_VERSION, status.driver_version);
    way(UMACCT_A_STATUS_UVM_STATE, status.uvm_state);
    way(UMACCT_A_STATUS_REASON, status.reason);
    way(UMACCT_A_STATUS_FLAGS, status.flags);
    way(UMACCT_A_STATUS_USAGE, status.usage);
    way(UMACCT_A_STATUS_CHARGED, status.charged);
    way(UMACCT_A_STATUS_DRIVER_USAGE, status.driver_usage);
    way(UMACCT_A_STATUS_DRIVER_PEAK, status.driver_peak);
    way(UMACCT_A_STATUS_MANAGED, status.managed);
    way(UMACCT_A_STATUS_UNTRACKED, status.untracked);
    way(UMACCT_A_STATUS_UNTRACKED_COUNT, status.untracked_count);
    way(UMACCT_A_STATUS_STALE_COUNT, status.stale_count);
    way(UMACCT_A_STATUS_ACCOUNTS, status.accounts);
    way(UMACCT_A_STATUS_CLIENTS, status.clients);
    way(UMACCT_A_STATUS_RECORDS, status.records);
    way(UMACCT_A_STATUS_RESERVE, status.reserve);
    way(UMACCT_A_STATUS_RESERVE_COUNT, status.reserve_count);
    way(UMACCT_A_STATUS_CHARGE_DEFAULT, status.charge_default);
    way(UMACCT_A_STATUS_EVENTS_SENT, status.events_sent);
    way(UMACCT_A_STATUS_EVENTS_LOST, status.events_lost);
    way(UMACCT_A_STATUS_CHARGE_REASON, status.charge_reason);
    way(UMACCT_A_STATUS_UNATTRIBUTED_COUNT, status.unattributed_count);
    way(UMACCT_A_STATUS_AVAILABLE, status.available);
    way(UMACCT_A_STATUS_POOLS, status.pools);
    way(UMACCT_A_STATUS_HOOK, status.hooks);
}

template <class Way>
void visit(Way &way, Reclaim &reclaim) {
    way(UMACCT_A_STATUS_RECLAIMED, reclaim.reclaimed);
    way(UMACCT_A_STATUS_POOLS, reclaim.pools);
}

template <class Way>
void visit(Way &way, Account &account) {
    way(UMACCT_A_ACCOUNT_ID, account.id);
    way(UMACCT_A_ACCOUNT_PARENT_ID, account.parent_id);
    way(UMACCT_A_ACCOUNT_LEVEL, account.level);
    way(UMACCT_A_ACCOUNT_PATH, account.path);
    way(UMACCT_A_ACCOUNT_USAGE, account.usage);
    way(UMACCT_A_ACCOUNT_LOCAL, account.local);
    way(UMACCT_A_ACCOUNT_PEAK, account.peak);
    way(UMACCT_A_ACCOUNT_CHARGED, account.charged);
    way(UMACCT_A_ACCOUNT_MANAGED, account.managed);
    way(UMACCT_A_ACCOUNT_ALLOCS, account.allocs);
    way(UMACCT_A_ACCOUNT_FREES, account.frees);
    way(UMACCT_A_ACCOUNT_FAILURES, account.failures);
    way(UMACCT_A_ACCOUNT_REFUSALS, account.refusals);
    way(UMACCT_A_ACCOUNT_CLIENTS, account.clients);
    way.limit(UMACCT_A_ACCOUNT_SOFT, account.soft);
    way.limit(UMACCT_A_ACCOUNT_HARD, account.hard);
    way(UMACCT_A_ACCOUNT_THROTTLE, account.throttle_ns);
    way.word(UMACCT_A_ACCOUNT_VIEW, account.view);
    way(UMACCT_A_ACCOUNT_CHARGE, account.charge);
    way(UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE, account.charge_effective);
    way.limit(UMACCT_A_ACCOUNT_EFFECTIVE, account.effective);
    way(UMACCT_A_ACCOUNT_EFFECTIVE_ID, account.effective_id);
    way(UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT, account.soft_count);
    way(UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT, account.hard_count);
    way(UMACCT_A_ACCOUNT_RESERVE_COUNT, account.reserve_count);
    way(UMACCT_A_ACCOUNT_THROTTLED, account.throttled_ns);
    way(UMACCT_A_ACCOUNT_MEMORY_CURRENT, account.memory_current);
    way(UMACCT_A_ACCOUNT_MEMORY_MAX, account.memory_max);
    way(UMACCT_A_ACCOUNT_ALLOC_TIME, account.alloc_time_ns);
    way(UMACCT_A_ACCOUNT_ALLOC_TIME_MAX, account.alloc_time_max_ns);
    way(UMACCT_A_ACCOUNT_BOOKKEEPING, account.bookkeeping);
}

template <class Way>
void visit(Way &way, Client &client) {
    way(UMACCT_A_CLIENT_PID, client.pid);
    way(UMACCT_A_CLIENT_START_TIME, client.start_time_ns);
    way(UMACCT_A_CLIENT_COMM, client.comm);
    way(UMACCT_A_CLIENT_ACCOUNT_ID, client.account_id);
    way(UMACCT_A_CLIENT_PATH, client.path);
    way(UMACCT_A_CLIENT_USAGE, client.usage);
    way(UMACCT_A_CLIENT_PEAK, client.peak);
    way(UMACCT_A_CLIENT_CHARGED, client.charged);
    way(UMACCT_A_CLIENT_MANAGED, client.managed);
    way(UMACCT_A_CLIENT_ALLOCS, client.allocs);
    way(UMACCT_A_CLIENT_FREES, client.frees);
    way(UMACCT_A_CLIENT_EXITED, client.exited);
}

template <class Way>
void visit(Way &way, Event &event) {
    way(UMACCT_A_EVENT_TYPE, event.type);
    way(UMACCT_A_EVENT_SEQ, event.sequence);
    way(UMACCT_A_EVENT_TIME, event.time_ns);
    way(UMACCT_A_EVENT_ACCOUNT_ID, event.account_id);
    way(UMACCT_A_EVENT_PATH, event.path);
    way(UMACCT_A_EVENT_LIMIT_ID, event.limit_id);
    way(UMACCT_A_EVENT_LIMIT_PATH, event.limit_path);
    way(UMACCT_A_EVENT_PID, event.pid);
    way(UMACCT_A_EVENT_COMM, event.comm);
    way(UMACCT_A_EVENT_SIZE, event.size);
    way(UMACCT_A_EVENT_USAGE, event.usage);
    way(UMACCT_A_EVENT_LIMIT, event.limit);
    way(UMACCT_A_EVENT_COUNT, event.count);
}

template <class Way>
void visit(Way &way, AccountRequest &request) {
    way(UMACCT_A_ACCOUNT_ID, request.id);
    way(UMACCT_A_ACCOUNT_SOFT, request.change.soft);
    way(UMACCT_A_ACCOUNT_HARD, request.change.hard);
    way(UMACCT_A_ACCOUNT_THROTTLE, request.change.throttle_ns);
    way.word(UMACCT_A_ACCOUNT_VIEW, request.change.view);
    way(UMACCT_A_ACCOUNT_CHARGE, request.change.charge);
}

template <class Way>
void visit(Way &way, AccountReply &reply) {
    way(UMACCT_A_ACCOUNT_DRIVER_STATE, reply.enforcement.driver_state);
    way(UMACCT_A_ACCOUNT_REASON, reply.enforcement.reason);
}

template <class Way>
void visit(Way &way, ClientRequest &request) {
    way(UMACCT_A_CLIENT_ACCOUNT_ID, request.account_id);
}

template <class Way>
void visit(Way &way, ConfigRequest &request) {
    way(UMACCT_A_STATUS_RESERVE, request.reserve);
    way(UMACCT_A_STATUS_CHARGE_DEFAULT, request.charge_default);
}

// --- the ways ------------------------------------------------------------------

template <class T>
using Inner = std::remove_reference_t<decltype(std::declval<T &>().value())>;

/// Makes the policy that the attributes of a value have to keep to.
class Policy {
public:
    template <class T>
    void operator()(std::uint16_t type, T & /*member*/) {
        if constexpr (requires(T optional) { optional.has_value(); })
            set<Inner<T>>(type);
        else
            set<T>(type);
    }

    void limit(std::uint16_t type, Limit & /*member*/) { set<std::uint64_t>(type); }

    template <class T>
    void word(std::uint16_t type, T & /*member*/) {
        set<std::uint32_t>(type);
    }

    const nla_policy *get() const { return policy_.data(); }

private:
    template <class T>
    void set(std::uint16_t type) {
        policy_.at(type).type = std::is_same_v<T, std::string>         ? NLA_STRING
                                : std::is_same_v<T, std::vector<Hook>> ? NLA_NESTED
                                : std::is_same_v<T, bool>              ? NLA_FLAG
                                : sizeof(T) == sizeof(std::uint64_t)   ? NLA_U64
                                                                       : NLA_U32;
    }

    std::array<nla_policy, most_attributes + 1> policy_{};
};

class Reader {
public:
    Reader(const nlattr *attributes, int size, const Policy &policy)
        : attributes_(attributes), size_(size) {
        const nlattr *at = nullptr;
        int rest = 0;

        // nla_parse() passes over what is cut short at the end.
        nla_for_each_attr(at, attributes, size, rest) {}
        if (rest > 0 || nla_parse(found_.data(), most_attributes, const_cast<nlattr *>(attributes),
                                  size, policy.get()) < 0)
            throw_malformed();
    }

    void operator()(std::uint16_t type, std::string &member) const {
        if (const nlattr *found = found_.at(type))
            member = nla_get_string(found);
    }

    void operator()(std::uint16_t type, bool &member) const { member = found_.at(type) != nullptr; }

    void operator()(std::uint16_t type, std::vector<Hook> &hooks) const;

    template <class T>
    void operator()(std::uint16_t type, T &member) const {
        const nlattr *found = found_.at(type);

        if (found == nullptr)
            return;
        if constexpr (requires { member.has_value(); })
            member = static_cast<Inner<T>>(number<Inner<T>>(found));
        else
            member = static_cast<T>(number<T>(found));
    }

    void limit(std::uint16_t type, Limit &member) const {
        (*this)(type, member);
        if (member == std::optional<std::uint64_t>(UMACCT_UNLIMITED))
            member.reset();
    }

    template <class T>
    void word(std::uint16_t type, T &member) const {
        if (const nlattr *found = found_.at(type))
            member = nla_get_u32(found) != 0;
    }

private:
    template <class T>
    static auto number(const nlattr *attribute) {
        if constexpr (sizeof(T) == sizeof(std::uint64_t))
            return nla_get_u64(attribute);
        else
            return nla_get_u32(attribute);
    }

    const nlattr *attributes_;
    int size_;
    std::array<nlattr *, most_attributes + 1> found_{};
};

class Writer {
public:
    Writer() : message_(nlmsg_alloc_size(largest_message)) {
        if (!message_)
            throw std::bad_alloc();
    }

    /// Empty text is none.
    void operator()(std::uint16_t type, const std::string &member) {
        if (!member.empty())
            check(nla_put_string(message_.get(), type, member.c_str()));
    }

    void operator()(std::uint16_t type, const bool &member) {
        if (member)
            check(nla_put_flag(message_.get(), type));
    }

    void operator()(std::uint16_t type, std::vector<Hook> &hooks) {
        for (Hook &hook : hooks) {
            nlattr *nest = nla_nest_start(message_.get(), type);

            check(nest == nullptr ? -1 : 0);
            visit(*this, hook);
            check(nla_nest_end(message_.get(), nest));
        }
    }

    template <class T>
    void operator()(std::uint16_t type, const T &member) {
        if constexpr (requires { member.has_value(); }) {
            if (member)
                (*this)(type, *member);
        } else if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
            check(nla_put_u64(message_.get(), type, member));
        } else {
            check(nla_put_u32(message_.get(), type, static_cast<std::uint32_t>(member)));
        }
    }

    void limit(std::uint16_t type, const Limit &member) {
        (*this)(type, member.value_or(UMACCT_UNLIMITED));
    }

    void word(std::uint16_t type, bool member) { (*this)(type, member ? 1U : 0U); }

    void word(std::uint16_t type, const std::optional<bool> &member) {
        if (member)
            word(type, *member);
    }

    Payload payload() const {
        const nlmsghdr *header = nlmsg_hdr(message_.get());
        const auto *data = static_cast<const std::byte *>(nlmsg_data(header));

        return {data, data + nlmsg_datalen(header)};
    }

private:
    struct Free {
        void operator()(nl_msg *message) const { nlmsg_free(message); }
    };

    static void check(int result) {
        if (result < 0)
            throw std::bad_alloc();
    }

    std::unique_ptr<nl_msg, Free> message_;
};

template <class Value>
Value read(const nlattr *attributes, int size) {
    static const Policy policy = [] {
        Policy made;
        Value value;

        visit(made, value);
        return made;
    }();
    Value value;
    Reader reader(attributes, size, policy);

    visit(reader, value);
    return value;
}

void Reader::operator()(std::uint16_t type, std::vector<Hook> &hooks) const {
    const nlattr *at = nullptr;
    int rest = 0;

    nla_for_each_attr(at, attributes_, size_, rest) {
        if (nla_type(at) == type)
            hooks.push_back(read<Hook>(static_cast<const nlattr *>(nla_data(at)), nla_len(at)));
    }
}

} // namespace

template <class Value>
Value decode(std::span<const std::byte> payload) {
    return read<Value>(reinterpret_cast<const nlattr *>(payload.data()),
                       static_cast<int>(payload.size()));
}

template <class Value>
Payload encode(const Value &value) {
    Value copy(value); // the tables know values that can be written to
    Writer writer;

    visit(writer, copy);
    return writer.payload();
}

template Status decode<Status>(std::span<const std::byte> payload);
template Reclaim decode<Reclaim>(std::span<const std::byte> payload);
template Account decode<Account>(std::span<const std::byte> payload);
template Client decode<Client>(std::span<const std::byte> payload);
template Event decode<Event>(std::span<const std::byte> payload);
template AccountRequest decode<AccountRequest>(std::span<const std::byte> payload);
template AccountReply decode<AccountReply>(std::span<const std::byte> payload);
template ClientRequest decode<ClientRequest>(std::span<const std::byte> payload);
template ConfigRequest decode<ConfigRequest>(std::span<const std::byte> payload);
template Payload encode<Status>(const Status &value);
template Payload encode<Reclaim>(const Reclaim &value);
template Payload encode<Account>(const Account &value);
template Payload encode<Client>(const Client &value);
template Payload encode<Event>(const Event &value);
template Payload encode<AccountRequest>(const AccountRequest &value);
template Payload encode<AccountReply>(const AccountReply &value);
template Payload encode<ClientRequest>(const ClientRequest &value);
template Payload encode<ConfigRequest>(const ConfigRequest &value);

} // namespace umacct
