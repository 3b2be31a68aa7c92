// SPDX-License-Identifier: GPL-2.0-or-later
/// Usage where the kernel module isn't loaded: BPF programs of ours count, and answer as the
/// module does. What the module alone can do they refuse. The source of truth is what they keep
/// in their maps: see userspace/bpf/.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/module/transport.h"

namespace umacct {

/// Opens the observer that begin_observing() pinned; each answer is of the one that is pinned by
/// then, or the module's, once that is loaded. Empty if nothing is pinned, and to a caller who may
/// not read root's files, or is in a container.
std::unique_ptr<Transport> pinned_observer();

/// The same; where nothing is pinned, it begins to count, for as long as the answer is kept and its
/// process lives: nothing stays behind. Empty to a caller who isn't root, or is in a container.
/// Throws Error where it can't begin.
std::unique_ptr<Transport> observer_meanwhile();

/// Default bound on live allocations that are tracked.
constexpr std::uint32_t usual_records = 1U << 20;

/// Begins to count, pinned: without its maker, until end_observing(). What an observer that runs
/// already has counted stays. Live allocations beyond that number are untracked. Throws
/// Error.
void begin_observing(std::uint32_t records = usual_records);

/// Ends what begin_observing() began, and what it has counted is gone. Does nothing without.
void end_observing();

} // namespace umacct
