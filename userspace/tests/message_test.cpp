// SPDX-License-Identifier: GPL-2.0-or-later
/// Each attribute of the ABI is read and written; which member it is, "make generate" says.
#include "lib/module/message.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include "lib/error.h"
#include "tests/fake_module.h"

namespace umacct {
namespace {

/// Attributes that a test writes by hand, one after the other.
class Message {
public:
    Message() : message_(nlmsg_alloc()) {}

    Message(const Message &) = delete;
    Message &operator=(const Message &) = delete;
    Message(Message &&) = delete;
    Message &operator=(Message &&) = delete;

    ~Message() { nlmsg_free(message_); }

    nl_msg *get() const { return message_; }

    Payload payload() const {
        const auto *data = static_cast<const std::byte *>(nlmsg_data(nlmsg_hdr(message_)));

        return {data, data + nlmsg_datalen(nlmsg_hdr(message_))};
    }

private:
    nl_msg *message_;
};

/// A number of its own in every attribute from the second on, of which strings are text. Of a
/// longer number than it knows, a reader takes the first bytes.
template <class Value>
Value numbered(int max, std::initializer_list<int> strings,
               std::initializer_list<int> others = {}) {
    const Message message;
    std::vector<int> types;

    for (int type = 2; type <= max; ++type) {
        if (std::find(others.begin(), others.end(), type) == others.end())
            types.push_back(type);
    }
    for (const int type : types) {
        if (std::find(strings.begin(), strings.end(), type) != strings.end())
            nla_put_string(message.get(), type, std::to_string(type).c_str());
        else
            nla_put_u64(message.get(), type, static_cast<std::uint64_t>(type));
    }
    auto value = decode<Value>(message.payload());
    // The way back gives each attribute again.
    EXPECT_EQ(encode(decode<Value>(encode(value))), encode(value));
    for (const int type : types) {
        const nlattr *found = nla_find(reinterpret_cast<const nlattr *>(encode(value).data()),
                                       static_cast<int>(encode(value).size()), type);
        EXPECT_NE(found, nullptr) << type;
    }
    return value;
}

TEST(Message, OfAnAccount) {
    const auto a = numbered<Account>(UMACCT_A_ACCOUNT_MAX, {UMACCT_A_ACCOUNT_PATH},
                                     {UMACCT_A_ACCOUNT_DRIVER_STATE, UMACCT_A_ACCOUNT_REASON});

    EXPECT_EQ(a.path, std::to_string(UMACCT_A_ACCOUNT_PATH));
    EXPECT_EQ(a.usage, UMACCT_A_ACCOUNT_USAGE);
    EXPECT_EQ(a.hard, UMACCT_A_ACCOUNT_HARD);
    EXPECT_TRUE(a.view);
    EXPECT_EQ(a.alloc_time_max_ns, UMACCT_A_ACCOUNT_ALLOC_TIME_MAX);
    EXPECT_EQ(a.memory_max, UMACCT_A_ACCOUNT_MEMORY_MAX);
}

TEST(Message, OfAClient) {
    const auto c =
        numbered<Client>(UMACCT_A_CLIENT_MAX, {UMACCT_A_CLIENT_COMM, UMACCT_A_CLIENT_PATH});

    EXPECT_EQ(c.pid, UMACCT_A_CLIENT_PID);
    EXPECT_EQ(c.comm, std::to_string(UMACCT_A_CLIENT_COMM));
    EXPECT_TRUE(c.exited);
}

TEST(Message, OfAnEvent) {
    const auto e = numbered<Event>(
        UMACCT_A_EVENT_MAX, {UMACCT_A_EVENT_PATH, UMACCT_A_EVENT_LIMIT_PATH, UMACCT_A_EVENT_COMM});

    EXPECT_EQ(e.type, static_cast<umacct_event_type>(UMACCT_A_EVENT_TYPE));
    EXPECT_EQ(e.limit_path, std::to_string(UMACCT_A_EVENT_LIMIT_PATH));
    EXPECT_EQ(e.count, UMACCT_A_EVENT_COUNT);
}

TEST(Message, OfAStatus) {
    const auto s = numbered<Status>(UMACCT_A_STATUS_MAX,
                                    {UMACCT_A_STATUS_MODULE_VERSION, UMACCT_A_STATUS_DRIVER_VERSION,
                                     UMACCT_A_STATUS_REASON, UMACCT_A_STATUS_CHARGE_REASON},
                                    {UMACCT_A_STATUS_HOOK, UMACCT_A_STATUS_RECLAIMED});

    EXPECT_EQ(s.reason, std::to_string(UMACCT_A_STATUS_REASON));
    EXPECT_EQ(s.flags, UMACCT_A_STATUS_FLAGS);
    EXPECT_EQ(s.pools, UMACCT_A_STATUS_POOLS);
    EXPECT_EQ(s.memory_total, UMACCT_A_STATUS_MEMORY_TOTAL);
    EXPECT_EQ(s.memory_free, UMACCT_A_STATUS_MEMORY_FREE);
    EXPECT_EQ(s.memory_available, UMACCT_A_STATUS_MEMORY_AVAILABLE);
    EXPECT_EQ(s.memory_buffers, UMACCT_A_STATUS_MEMORY_BUFFERS);
    EXPECT_EQ(s.memory_cached, UMACCT_A_STATUS_MEMORY_CACHED);
    EXPECT_EQ(s.memory_sreclaimable, UMACCT_A_STATUS_MEMORY_SRECLAIMABLE);
    EXPECT_EQ(s.memory_kreclaimable, UMACCT_A_STATUS_MEMORY_KRECLAIMABLE);
}

TEST(Message, OfAReclaim) {
    const auto r = decode<Reclaim>(encode(Reclaim{.reclaimed = 7, .pools = 3}));

    EXPECT_EQ(r.reclaimed, 7U);
    EXPECT_EQ(r.pools, 3U);
    EXPECT_EQ(test::attribute(encode(r), UMACCT_A_STATUS_RECLAIMED), 7U);
    EXPECT_EQ(test::attribute(encode(r), UMACCT_A_STATUS_POOLS), 3U);
    EXPECT_FALSE(decode<Reclaim>(encode(Reclaim())).pools);
}

TEST(Message, HooksAreNestedInAStatus) {
    Status status;

    status.hooks.push_back({.name = "a",
                            .symbol = "m:a",
                            .state = UMACCT_HOOK_FAILED,
                            .required = true,
                            .reason = "gone",
                            .calls = 6,
                            .missed = 7});
    status.hooks.push_back({.name = "b"});

    const auto read = decode<Status>(encode(status));
    ASSERT_EQ(read.hooks.size(), 2U);
    EXPECT_EQ(read.hooks[0].name, "a");
    EXPECT_EQ(read.hooks[0].symbol, "m:a");
    EXPECT_EQ(read.hooks[0].state, UMACCT_HOOK_FAILED);
    EXPECT_TRUE(read.hooks[0].required);
    EXPECT_EQ(read.hooks[0].reason, "gone");
    EXPECT_EQ(read.hooks[0].calls, 6U);
    EXPECT_EQ(read.hooks[0].missed, 7U);
    EXPECT_EQ(read.hooks[1].name, "b");
    EXPECT_FALSE(read.hooks[1].required);
}

TEST(Message, OfANewerModuleIsRead) {
    const Message message;

    nla_put_u32(message.get(), 200, 1);
    nla_put_u32(message.get(), UMACCT_A_ACCOUNT_MAX + 1, 1);
    nla_put_u64(message.get(), UMACCT_A_ACCOUNT_ID, 5);
    EXPECT_EQ(decode<Account>(message.payload()).id, 5U);
}

TEST(Message, ThatIsMalformedIsAnError) {
    const Message short_number;
    const Message endless_text;
    const Payload whole = encode(Account{.id = 5, .path = "/a"});

    nla_put_u32(short_number.get(), UMACCT_A_ACCOUNT_ID, 5);
    EXPECT_THROW(decode<Account>(short_number.payload()), Error);
    nla_put(endless_text.get(), UMACCT_A_ACCOUNT_PATH, 2, "/a");
    EXPECT_THROW(decode<Account>(endless_text.payload()), Error);
    EXPECT_THROW(decode<Account>(Payload(8)), Error) << "a length of nothing";
    for (std::size_t size = 1; size < 12; ++size)
        EXPECT_THROW(decode<Account>(std::span(whole).first(size)), Error) << size;
}

TEST(Message, OfARequestHoldsWhatWasAsked) {
    const AccountRequest account{.id = 9, .change = {.hard = 7, .view = true}};
    const auto read = decode<AccountRequest>(encode(account));

    EXPECT_EQ(read.id, 9U);
    EXPECT_EQ(read.change.hard, 7U);
    EXPECT_EQ(read.change.view, true);
    EXPECT_FALSE(read.change.soft || read.change.throttle_ns || read.change.charge);
    EXPECT_TRUE(encode(AccountRequest()).empty());
    EXPECT_EQ(test::attribute(encode(ClientRequest{.account_id = 3}), UMACCT_A_CLIENT_ACCOUNT_ID),
              3U);
    EXPECT_TRUE(encode(ClientRequest()).empty());
}

} // namespace
} // namespace umacct
