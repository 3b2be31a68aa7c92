// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/message.h"

#include <array>
#include <cstring>
#include <memory>
#include <new>

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "lib/error.h"
#include "lib/module/value_fields.h"

namespace umacct {

namespace {

/// More than any value has: a status with a nest for each hook is the largest.
constexpr std::size_t largest_message = 64U << 10;
constexpr std::uint16_t most_attributes = 64;

static_assert(UMACCT_A_STATUS_MAX <= most_attributes && UMACCT_A_ACCOUNT_MAX <= most_attributes &&
              UMACCT_A_CLIENT_MAX <= most_attributes && UMACCT_A_EVENT_MAX <= most_attributes &&
              UMACCT_A_HOOK_MAX <= most_attributes);

[[noreturn]] void throw_malformed() {
    throw Error(Failure::failed, "cannot read the module's answer: it is malformed",
                "the tool and the module may not fit together: compare 'umacct --version'");
}

// --- what JSON knows nothing of ----------------------------------------------------

void fields(auto &way, Is<AccountRequest> auto &request) {
    way(UMACCT_A_ACCOUNT_ID, request.id);
    for_each_setting([&](const auto &setting) {
        auto &member = request.change.*setting.change;

        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, std::optional<bool>>)
            way.word(setting.attribute, "", member);
        else
            way(setting.attribute, member);
    });
}

void fields(auto &way, Is<ClientRequest> auto &request) {
    way(UMACCT_A_CLIENT_ACCOUNT_ID, request.account_id);
    way(UMACCT_A_CLIENT_EXITING, request.exiting);
}

void fields(auto &way, Is<MachineChange> auto &change) {
    for_each_machine_setting(
        [&](const auto &setting) { way(setting.attribute, change.*setting.change); });
}

// --- the ways ------------------------------------------------------------------

/// Types of numbers and enumerations in a message.
template <class T>
using Wire = std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, std::uint32_t>;

/// Leaves to Reader and Writer what of a line is netlink's.
template <class Way>
struct Attributes {
    Way &way;

    void operator()(std::uint16_t type, auto &member) { way(type, member); }

    void operator()(std::uint16_t type, const char * /*key*/, auto &member) { way(type, member); }

    void operator()(const char * /*key*/, const auto & /*value*/) {}

    void maybe(std::uint16_t type, const char * /*key*/, auto &member) { way(type, member); }

    void limit(std::uint16_t type, const char * /*key*/, auto &member) { way.limit(type, member); }

    void word(std::uint16_t type, const char * /*key*/, auto &member) { way.word(type, member); }

    void time(std::uint16_t type, auto &member) { way(type, member); }

    void owner(const std::string & /*path*/) {}
};

class Reader {
public:
    Reader(const nlattr *attributes, int size) : attributes_(attributes), size_(size) {
        nlattr *at = nullptr;
        int rest = 0;

        nla_for_each_attr(at, const_cast<nlattr *>(attributes), size, rest) {
            if (nla_type(at) <= most_attributes)
                found_.at(static_cast<std::size_t>(nla_type(at))) = at;
        }
        if (rest > 0) // cut short at the end
            throw_malformed();
    }

    void operator()(std::uint16_t type, std::string &member) const {
        const nlattr *found = found_.at(type);

        if (found == nullptr)
            return;
        const auto *text = static_cast<const char *>(nla_data(found));
        if (nla_len(found) < 1 || text[nla_len(found) - 1] != '\0')
            throw_malformed();
        member = text;
    }

    void operator()(std::uint16_t type, bool &member) const { member = found_.at(type) != nullptr; }

    void operator()(std::uint16_t type, std::vector<Hook> &hooks) const;

    template <class T>
    void operator()(std::uint16_t type, std::optional<T> &member) const {
        if (found_.at(type) != nullptr)
            (*this)(type, member.emplace());
    }

    template <class T>
    void operator()(std::uint16_t type, T &member) const {
        const nlattr *found = found_.at(type);
        Wire<T> value{};

        if (found == nullptr)
            return;
        if (nla_len(found) < static_cast<int>(sizeof(value)))
            throw_malformed();
        std::memcpy(&value, nla_data(found), sizeof(value));
        member = static_cast<T>(value);
    }

    void limit(std::uint16_t type, Limit &member) const {
        (*this)(type, member);
        if (member == std::optional<std::uint64_t>(UMACCT_UNLIMITED))
            member.reset();
    }

    template <class T>
    void word(std::uint16_t type, T &member) const {
        std::optional<std::uint32_t> value;

        (*this)(type, value);
        if (value)
            member = *value != 0;
    }

private:
    const nlattr *attributes_;
    int size_;
    std::array<const nlattr *, most_attributes + 1> found_{};
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

    void operator()(std::uint16_t type, const std::vector<Hook> &hooks) {
        Attributes<Writer> nested{*this};

        for (const Hook &hook : hooks) {
            nlattr *nest = nla_nest_start(message_.get(), type);

            check(nest == nullptr ? -1 : 0);
            fields(nested, hook);
            check(nla_nest_end(message_.get(), nest));
        }
    }

    template <class T>
    void operator()(std::uint16_t type, const std::optional<T> &member) {
        if (member)
            (*this)(type, *member);
    }

    template <class T>
    void operator()(std::uint16_t type, const T &member) {
        const auto value = static_cast<Wire<T>>(member);

        check(nla_put(message_.get(), type, sizeof(value), &value));
    }

    void limit(std::uint16_t type, const Limit &member) {
        (*this)(type, member.value_or(UMACCT_UNLIMITED));
    }

    void word(std::uint16_t type, const std::optional<bool> &member) {
        if (member)
            (*this)(type, *member ? 1U : 0U);
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
    Value value;
    Reader reader(attributes, size);
    Attributes<Reader> way{reader};

    fields(way, value);
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
    Writer writer;
    Attributes<Writer> way{writer};

    fields(way, value);
    return writer.payload();
}

template Status decode<Status>(std::span<const std::byte> payload);
template Reclaim decode<Reclaim>(std::span<const std::byte> payload);
template Account decode<Account>(std::span<const std::byte> payload);
template Enforcement decode<Enforcement>(std::span<const std::byte> payload);
template Client decode<Client>(std::span<const std::byte> payload);
template Event decode<Event>(std::span<const std::byte> payload);
template AccountRequest decode<AccountRequest>(std::span<const std::byte> payload);
template ClientRequest decode<ClientRequest>(std::span<const std::byte> payload);
template Payload encode<Status>(const Status &value);
template Payload encode<Reclaim>(const Reclaim &value);
template Payload encode<Account>(const Account &value);
template Payload encode<Enforcement>(const Enforcement &value);
template Payload encode<Client>(const Client &value);
template Payload encode<Event>(const Event &value);
template Payload encode<AccountRequest>(const AccountRequest &value);
template Payload encode<ClientRequest>(const ClientRequest &value);
template Payload encode<MachineChange>(const MachineChange &value);

} // namespace umacct
