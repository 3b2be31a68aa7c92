// SPDX-License-Identifier: GPL-2.0-or-later
/// The node's ResourceSlice: one device, whose capacity is the node's memory without the reserve,
/// and which any number of claims may share.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "kubernetes/api_server.h"
#include "lib/json.h"

namespace umacct::kubernetes {

/// Returns the slice's name, on that node.
std::string slice_name(const std::string &node);

/// Returns the slice. node_uid: with the node, the slice goes, too. memory: in bytes.
Json slice_of(const std::string &node, const std::string &node_uid, std::uint64_t memory,
              std::int64_t generation);

/// Keeps the slice as it is to be.
class Publisher {
public:
    using Clock = std::chrono::steady_clock;

    Publisher(const ApiServer &server, std::string node)
        : server_(server), node_(std::move(node)) {}

    /// Publishes that memory; empty: withdraws the slice. Asks the API server only if that changed,
    /// or the slice was last looked at longer ago than look_again. Throws Error if it failed: it is
    /// to be tried again.
    void publish(std::optional<std::uint64_t> memory, Clock::time_point now);

    /// Has the slice be looked at next time: kubelet removes those of drivers that it doesn't know.
    void forget() { looked_.reset(); }

    /// Other programs change the slice or remove it without a notice.
    static constexpr std::chrono::minutes look_again{5};

private:
    void withdraw() const;
    void put(std::uint64_t memory);

    const ApiServer &server_;
    std::string node_;
    std::optional<std::uint64_t> published_;
    std::optional<Clock::time_point> looked_;
};

} // namespace umacct::kubernetes
