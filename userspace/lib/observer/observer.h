// SPDX-License-Identifier: GPL-2.0-or-later
/// Usage where the kernel module isn't loaded: BPF programs of ours count, and answer as the
/// module does. What the module alone can do they refuse. The source of truth is what they keep
/// in their maps: see userspace/bpf/.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/module/transport.h"

namespace umacct {

/// What begin_observing() began; each answer is of what is pinned by then, or the module's, once
/// that is loaded. Empty where nothing is pinned, and to a reader who may not read root's files, or
/// is in a container.
std::unique_ptr<Transport> pinned_observer();

/// The same; where nothing is pinned, it begins to count, for as long as the answer is kept and its
/// process lives: nothing stays behind. Empty to a caller who isn't root, or is in a container.
/// Throws Error where it can't begin.
std::unique_ptr<Transport> observer_meanwhile();

/// So many allocations that live at once are known, unless told otherwise.
constexpr std::uint32_t usual_records = 1U << 20;

/// Begins to count, pinned: without its maker, until end_observing(). What an observer that runs
/// already has counted stays. Allocations beyond so many that live at once are untracked. Throws
/// Error.
void begin_observing(std::uint32_t records = usual_records);

/// Ends what begin_observing() began, and what it has counted is gone. Does nothing without.
void end_observing();

} // namespace umacct
