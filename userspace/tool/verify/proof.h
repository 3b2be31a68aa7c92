// SPDX-License-Identifier: GPL-2.0-or-later
/// The proof of the blind spot, or of its absence: takes a little memory through
/// the driver in a cgroup of its own, looks at what the kernel saw of it, and
/// tries what can be done about it. Nothing is printed here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/module/model.h"
#include "lib/module/module.h"

namespace umacct {

/// Figures of the cgroup and of the machine at one moment.
struct Figures {
    std::uint64_t memory_current = 0;
    std::uint64_t memory_free = 0; ///< the whole machine's: others change it, too
    std::uint64_t usage = 0;       ///< umacct's figure
    std::uint64_t charged = 0;
    std::uint64_t metadata = 0; ///< part of usage, and never charged
};

struct MemoryEvents {
    std::uint64_t max = 0;       ///< the kernel held the cgroup at memory.max
    std::uint64_t oom_kills = 0; ///< the kernel killed in it
};

struct Allocation {
    std::uint64_t bytes = 0;  ///< bytes that the driver granted
    std::uint32_t status = 0; ///< the driver's, of the refusal that ended it; 0 for none
};

/// A cgroup with a process in it that allocates; tests put their own here.
class TestCgroup {
public:
    TestCgroup() = default;
    TestCgroup(const TestCgroup &) = delete;
    TestCgroup &operator=(const TestCgroup &) = delete;
    TestCgroup(TestCgroup &&) = delete;
    TestCgroup &operator=(TestCgroup &&) = delete;
    virtual ~TestCgroup() = default;

    /// UMACCT_UNLIMITED takes it away.
    virtual void set_memory_max(std::uint64_t bytes) = 0;
    virtual void set_account(const AccountChange &change) = 0;
    /// Allocates up to that many bytes, and stops at a refusal.
    virtual Allocation allocate(std::uint64_t bytes) = 0;
    virtual void free_all() = 0;
    virtual Figures figures() = 0;
    virtual MemoryEvents events() = 0;
};

enum class Finding : std::uint8_t {
    blind,   ///< the driver took more than memory.max, and memory.current didn't see it
    charged, ///< the kernel saw it
    unclear, ///< neither: something else was in the way
    holds,   ///< the limit was kept
    fails,   ///< it wasn't
    skipped, ///< it can't be tried here
};

std::string_view name_of(Finding finding);

/// One thing that was tried.
struct Step {
    std::string name; ///< "plain", "limit", "charge"
    std::uint64_t memory_max = UMACCT_UNLIMITED;
    Limit hard;
    bool charging = false; ///< switched on for the cgroup
    std::uint64_t asked = 0;
    Allocation got;
    Figures before;
    Figures during;
    Figures after;
    MemoryEvents events; ///< events that it caused
    Finding finding = Finding::skipped;
    std::string text; ///< the finding in words

    /// How far memory.current rose.
    std::uint64_t seen() const {
        return during.memory_current > before.memory_current
                   ? during.memory_current - before.memory_current
                   : 0;
    }
};

/// Why something can't be tried here; empty if it can.
struct Obstacles {
    std::string limits;
    std::string charging;
};

/// Takes size bytes three times: as the machine is, under a umacct limit, and with
/// charging on, each with a limit of half the size. chunk: the pages of one allocation,
/// in bytes; what the driver keeps beside them is known by how far usage rose.
std::vector<Step> verify(TestCgroup &cgroup, std::uint64_t size, std::uint64_t chunk,
                         const Obstacles &obstacles);

} // namespace umacct
