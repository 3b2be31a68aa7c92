// SPDX-License-Identifier: GPL-2.0-or-later
/// What the module knows, as values. The source of truth for every field is
/// include/umacct.h; bytes are bytes, times are nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <umacct.h>

namespace umacct {

/// A limit in bytes; empty means that there is none ("max").
using Limit = std::optional<std::uint64_t>;

struct Hook {
    std::string name;
    std::string symbol;
    umacct_hook_state state = UMACCT_HOOK_IDLE;
    bool required = false;
    std::string reason; ///< when state is FAILED
    std::uint64_t calls = 0;
    std::uint64_t missed = 0;
};

struct Status {
    std::string module_version;
    umacct_driver_state driver_state = UMACCT_DRIVER_ABSENT;
    std::string driver_version; ///< empty with an absent driver
    umacct_driver_state uvm_state = UMACCT_DRIVER_ABSENT;
    std::string reason;      ///< why the driver is UNKNOWN or BROKEN
    std::uint32_t flags = 0; ///< enum umacct_status_flags
    std::uint64_t usage = 0;
    std::uint64_t charged = 0;
    std::uint64_t driver_usage = 0;
    std::uint64_t driver_peak = 0;
    std::uint64_t managed = 0;
    std::uint64_t metadata = 0;
    std::uint64_t untracked = 0;
    std::uint64_t untracked_count = 0;
    std::uint64_t stale_count = 0;
    std::uint32_t accounts = 0;
    std::uint32_t clients = 0;
    std::uint32_t records = 0;
    std::uint64_t reserve = 0; ///< 0: off
    std::uint64_t reserve_count = 0;
    umacct_charge_mode charge_default = UMACCT_CHARGE_OFF;
    std::uint64_t events_sent = 0;
    std::uint64_t events_lost = 0;
    std::string charge_reason; ///< why charging can't be switched on; empty where it can
    std::uint64_t unattributed_count = 0;
    std::uint64_t available = 0;        ///< that the driver could have, but for the reserve
    std::optional<std::uint64_t> pools; ///< freed, and kept by the driver; empty: not known
    std::vector<Hook> hooks;

    std::uint64_t uncharged() const { return usage - charged; }

    bool has(umacct_status_flags flag) const { return (flags & flag) != 0; }
};

/// What came of giving back to the kernel what the driver's pools held.
struct Reclaim {
    std::uint64_t reclaimed = 0;
    std::optional<std::uint64_t> pools; ///< what is left; as Status's
};

struct Account {
    std::uint64_t id = 0;
    std::optional<std::uint64_t> parent_id; ///< empty for the root
    std::uint32_t level = 0;
    std::string path;
    std::uint64_t usage = 0;
    std::uint64_t local = 0; ///< without the children
    std::uint64_t peak = 0;
    std::uint64_t charged = 0;
    std::uint64_t managed = 0;
    std::uint64_t metadata = 0;
    std::uint64_t allocs = 0;
    std::uint64_t frees = 0;
    std::uint64_t failures = 0;
    std::uint64_t refusals = 0;
    std::uint32_t clients = 0;
    Limit soft;
    Limit hard;
    std::uint64_t throttle_ns = 0; ///< 0: none
    bool view = false;
    umacct_charge_mode charge = UMACCT_CHARGE_INHERIT;
    umacct_charge_mode charge_effective = UMACCT_CHARGE_OFF;
    Limit effective;
    std::optional<std::uint64_t> effective_id;
    std::uint64_t soft_count = 0;
    std::uint64_t hard_count = 0;
    std::uint64_t reserve_count = 0;
    std::uint64_t throttled_ns = 0;
    std::uint64_t alloc_time_ns = 0;             ///< that its tasks were in the driver's allocator
    std::uint64_t alloc_time_max_ns = 0;         ///< the longest of these
    std::optional<std::uint64_t> memory_current; ///< the kernel's, where the module can read it
    std::optional<std::uint64_t> memory_max;     ///< UMACCT_UNLIMITED for "max"

    std::uint64_t uncharged() const { return usage - charged; }

    /// Someone set something on this very account.
    bool configured() const;
};

/// What to set on an account; what is empty stays as it is. A limit of
/// UMACCT_UNLIMITED takes the limit away.
struct AccountChange {
    std::optional<std::uint64_t> soft;
    std::optional<std::uint64_t> hard;
    std::optional<std::uint64_t> throttle_ns;
    std::optional<bool> view;
    std::optional<umacct_charge_mode> charge;

    bool empty() const { return !soft && !hard && !throttle_ns && !view && !charge; }

    bool operator==(const AccountChange &other) const = default;
};

/// A process, as far as it allocated for one account.
struct Client {
    std::uint32_t pid = 0; ///< 0: not in the reader's pid namespace
    std::uint64_t start_time_ns = 0;
    std::string comm;
    std::uint64_t account_id = 0;
    std::string path;
    std::uint64_t usage = 0;
    std::uint64_t peak = 0;
    std::uint64_t charged = 0;
    std::uint64_t managed = 0;
    std::uint64_t metadata = 0;
    std::uint64_t allocs = 0;
    std::uint64_t frees = 0;
    bool exited = false;

    std::uint64_t uncharged() const { return usage - charged; }
};

struct Event {
    umacct_event_type type = UMACCT_EVENT_SOFT_CROSSED;
    std::uint64_t sequence = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t account_id = 0;
    std::string path;
    std::optional<std::uint64_t> limit_id; ///< empty for the reserve
    std::string limit_path;
    std::uint32_t pid = 0;
    std::string comm;
    std::uint64_t size = 0;
    std::uint64_t usage = 0;
    std::uint64_t limit = 0;
    std::uint64_t count = 1; ///< how often it happened since it was told last
};

/// What becomes of a change that was made.
struct Enforcement {
    umacct_driver_state driver_state = UMACCT_DRIVER_HOOKED;
    std::string reason; ///< why nothing enforces it now; empty where something does
};

/// The words that text and JSON use; "unknown" for values of a newer module.
std::string_view name_of(umacct_driver_state state);
std::string_view name_of(umacct_hook_state state);
std::string_view name_of(umacct_charge_mode mode);
std::string_view name_of(umacct_event_type type);

} // namespace umacct
