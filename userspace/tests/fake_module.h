// SPDX-License-Identifier: GPL-2.0-or-later
/// A kernel module that lives in the test: answers from values, and remembers
/// what it was told.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/module/message.h"
#include "lib/module/transport.h"

namespace umacct::test {

struct FakeModule {
    struct Request {
        umacct_cmd command;
        Payload attributes;
    };

    Status status;
    std::vector<Account> accounts;
    std::vector<Client> clients;
    std::vector<Received<Payload>>
        to_receive; ///< answers of receive(), in order; gone after the last

    std::uint64_t sent_while_watching = 0; ///< added to events_sent by the first receive()
    std::function<void()> while_watching;  ///< called by each receive()

    int interruptions = 0;          ///< number of dumps to interrupt
    std::optional<int> goes_after;  ///< number of dumps after which it is unloaded
    std::optional<int> fail_with;   ///< errno that everything gets
    std::optional<int> refuse_with; ///< errno that every change gets
    int refuse_in = 0; ///< the change that comes as that one is refused, alone; 0 for none
    std::uint16_t refused_attribute = 0; ///< attribute that the refusal points at

    Enforcement enforcement;          ///< answer to every change
    Reclaim reclaim;                  ///< answer to RECLAIM
    std::vector<Request> changes;     ///< requests to change, in order
    std::function<void()> on_change;  ///< called by a change
    std::function<void()> on_account; ///< called before the answer about one account
    int dumps = 0;
    bool subscribed = false;

    /// A driver with all hooks armed, on a kernel that can do everything.
    FakeModule();

    std::unique_ptr<Transport> connect();
};

using umacct::encode; // NOLINT(misc-unused-using-decls): for the tests

/// The number that is an attribute of a request, read without the code under test.
std::optional<std::uint64_t> attribute(const Payload &payload, int type);

} // namespace umacct::test
