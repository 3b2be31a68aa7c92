// SPDX-License-Identifier: GPL-2.0-or-later
/// Made by "make generate" from docs/netlink/umacct.yaml: do not edit.
// clang-format off
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

inline constexpr std::string_view driver_state_words[] = {"absent", "hooked", "unknown", "broken"};
inline constexpr std::string_view hook_state_words[] = {"idle", "armed", "off", "failed"};
inline constexpr std::string_view charge_mode_words[] = {"inherit", "off", "on"};
inline constexpr std::string_view event_type_words[] = {"unknown", "soft_crossed", "soft_recovered", "hard_refused", "reserve_refused", "failed"};

struct Hook {
    /// purpose of the hook
    std::string name;
    /// module:symbol
    std::string symbol;
    /// its state
    umacct_hook_state state = UMACCT_HOOK_IDLE;
    /// nothing is accounted unless it is armed
    bool required = false;
    /// why it failed, in plain words; empty unless it failed
    std::string reason;
    /// calls seen since the module was loaded, or the observer began to count
    std::uint64_t calls = 0;
    /// calls that the kernel could not deliver
    std::uint64_t missed = 0;
};

struct Status {
    /// the module's version
    std::string module_version;
    /// state of the driver
    umacct_driver_state driver_state = UMACCT_DRIVER_ABSENT;
    /// version of the driver; empty without a driver
    std::string driver_version;
    /// state of nvidia-uvm
    umacct_driver_state uvm_state = UMACCT_DRIVER_ABSENT;
    /// why the driver is not hooked, why nothing is enforced, or what is doubtful; empty if there
    /// is none
    std::string reason;
    /// capabilities of the module and the kernel
    std::uint32_t flags = 0;
    /// memory that the driver took for all accounts
    std::uint64_t usage = 0;
    /// the part of usage that the kernel's memory controller is charged for
    std::uint64_t charged = 0;
    /// memory that the driver took for itself, outside usage
    std::uint64_t driver_usage = 0;
    /// the highest driver usage so far
    std::uint64_t driver_peak = 0;
    /// the part of usage that is nvidia-uvm's pages, managed memory
    std::uint64_t managed = 0;
    /// memory of allocations that could not be recorded
    std::uint64_t untracked = 0;
    /// allocations that could not be recorded
    std::uint64_t untracked_count = 0;
    /// records that were dropped because their free was never seen
    std::uint64_t stale_count = 0;
    /// cgroups with an account
    std::uint32_t accounts = 0;
    /// processes that hold memory, or held some
    std::uint32_t clients = 0;
    /// live allocations; empty to a reader that may not see all
    std::optional<std::uint32_t> records;
    /// memory that allocations must leave available; 0 for none
    std::uint64_t reserve = 0;
    /// allocations refused for the reserve
    std::uint64_t reserve_count = 0;
    /// charging of cgroups that neither set nor inherit it: UMACCT_CHARGE_OFF or _ON
    umacct_charge_mode charge_default = UMACCT_CHARGE_OFF;
    /// sequence number of the newest event
    std::uint64_t events_sent = 0;
    /// events that could not be sent or that a listener had no room for
    std::uint64_t events_lost = 0;
    /// one for each hook
    std::vector<Hook> hooks;
    /// why charging can't be switched on; empty where it can
    std::string charge_reason;
    /// allocations refused because memory ran out while their account was looked for
    std::uint64_t unattributed_count = 0;
    /// memory that the driver could take: MemAvailable and the driver's pools, without CMA areas
    /// and page cache that memory.min protects
    std::uint64_t available = 0;
    /// freed memory that the driver keeps in its pools; empty if not known
    std::optional<std::uint64_t> pools;
    /// the part of usage that is the drivers' metadata: for pages, objects, clients, open files, VA
    /// spaces and address ranges
    std::uint64_t metadata = 0;
    /// MemTotal, as no view changes it; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_total;
    /// MemFree; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_free;
    /// MemAvailable; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_available;
    /// Buffers; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_buffers;
    /// Cached; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_cached;
    /// SReclaimable; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_sreclaimable;
    /// KReclaimable; empty to a reader that may not see all
    std::optional<std::uint64_t> memory_kreclaimable;
    /// the part of the available memory that guarantees keep
    std::uint64_t kept = 0;
    /// time at which the observer began to count, since the epoch: earlier memory is in no account;
    /// empty where the module answers
    std::optional<std::uint64_t> since_ns;

    /// usage less charged: what memory.current does not see
    std::uint64_t uncharged() const { return usage - charged; }

    /// the part of usage that is pages of nvidia.ko's own allocator
    std::uint64_t system() const { return usage - managed - metadata; }

    bool has(umacct_status_flags flag) const { return (flags & flag) != 0; }

    /// Returns whether the reader may see all. Otherwise the numbers of its own cgroup and
    /// those below are here, and every other one is 0 because it is hidden.
    bool tells_all() const { return records.has_value(); }
};

struct Account {
    /// the cgroup's id
    std::uint64_t id = 0;
    /// the parent's id; empty for the root
    std::optional<std::uint64_t> parent_id;
    /// depth below the root
    std::uint32_t level = 0;
    /// the cgroup, in the reader's cgroup namespace
    std::string path;
    /// memory taken through the driver
    std::uint64_t usage = 0;
    /// the part of usage, without the cgroups below
    std::uint64_t local = 0;
    /// the highest usage so far
    std::uint64_t peak = 0;
    /// the part of usage that the kernel's memory controller is charged for
    std::uint64_t charged = 0;
    /// the part of usage that is nvidia-uvm's pages, managed memory
    std::uint64_t managed = 0;
    /// allocations by nvidia.ko's page allocator; managed memory is not counted
    std::uint64_t allocs = 0;
    /// frees of such allocations
    std::uint64_t frees = 0;
    /// calls of nvidia.ko's page allocator that failed; each try of a request counts
    std::uint64_t failures = 0;
    /// allocations that umacct refused
    std::uint64_t refusals = 0;
    /// processes that hold memory, or held some, without the cgroups below
    std::uint32_t clients = 0;
    /// soft limit: an event is sent above it
    Limit soft;
    /// hard limit: an allocation that would exceed it is refused
    Limit hard;
    /// longest delay of one system call above the soft limit; 0 for none
    std::uint64_t throttle_ns = 0;
    /// whether /proc/meminfo and sysinfo report the memory that its tasks could have
    bool view = false;
    /// charging as set on this cgroup
    umacct_charge_mode charge = UMACCT_CHARGE_INHERIT;
    /// charging that is in force, by this setting, the ancestors and the default
    umacct_charge_mode charge_effective = UMACCT_CHARGE_OFF;
    /// the lowest hard limit from here to the root
    Limit effective;
    /// the account that has this limit; empty without one
    std::optional<std::uint64_t> effective_id;
    /// times that this soft limit was crossed, without the cgroups below
    std::uint64_t soft_count = 0;
    /// allocations that this hard limit refused, without the cgroups below
    std::uint64_t hard_count = 0;
    /// allocations refused for the reserve
    std::uint64_t reserve_count = 0;
    /// time that tasks were delayed above the soft limit
    std::uint64_t throttled_ns = 0;
    /// memory.current of the cgroup; empty without a memory controller here
    std::optional<std::uint64_t> memory_current;
    /// memory.max of the cgroup; UMACCT_UNLIMITED for none; empty without a memory controller here
    std::optional<std::uint64_t> memory_max;
    /// time that tasks spent in nvidia.ko's page allocator, measured in timer ticks
    std::uint64_t alloc_time_ns = 0;
    /// the longest time that one allocation by nvidia.ko's page allocator took
    std::uint64_t alloc_time_max_ns = 0;
    /// the part of usage that is the drivers' metadata: for pages, objects, clients, open files, VA
    /// spaces and address ranges
    std::uint64_t metadata = 0;
    /// guarantee: the unused part of it is refused to all other cgroups; 0 for none
    std::uint64_t keep = 0;
    /// requests for which the driver had no memory, in pages of any size
    std::uint64_t failed = 0;
    /// programs' own memory that is registered with the driver, and stays where it is: no part of
    /// usage
    std::uint64_t pinned = 0;

    /// usage less charged: what memory.current does not see
    std::uint64_t uncharged() const { return usage - charged; }

    /// the part of usage that is pages of nvidia.ko's own allocator
    std::uint64_t system() const { return usage - managed - metadata; }

    /// Something is set on this very account.
    bool configured() const { return hard || soft || throttle_ns != 0 || keep != 0 || view || charge != UMACCT_CHARGE_INHERIT; }
};

struct Client {
    /// the process, in the reader's pid namespace; 0 if it has no pid there
    std::uint32_t pid = 0;
    /// start of the process, since the machine's start, by the clock of /proc/PID/stat
    std::uint64_t start_time_ns = 0;
    /// its name at its newest allocation
    std::string comm;
    /// the account's id
    std::uint64_t account_id = 0;
    /// the account's cgroup
    std::string path;
    /// memory that it took and that is still held
    std::uint64_t usage = 0;
    /// the highest usage so far
    std::uint64_t peak = 0;
    /// the part of usage that the kernel's memory controller is charged for
    std::uint64_t charged = 0;
    /// the part of usage that is nvidia-uvm's pages, managed memory
    std::uint64_t managed = 0;
    /// allocations by nvidia.ko's page allocator; managed memory is not counted
    std::uint64_t allocs = 0;
    /// frees of such allocations
    std::uint64_t frees = 0;
    /// the process is gone, but others hold what it allocated
    bool exited = false;
    /// the part of usage that is the drivers' metadata: for pages, objects, clients, open files, VA
    /// spaces and address ranges
    std::uint64_t metadata = 0;
    /// live allocations
    std::uint32_t records = 0;
    /// the process is exiting, and its memory is still coming back
    bool exiting = false;
    /// programs' own memory that is registered with the driver, and stays where it is: no part of
    /// usage
    std::uint64_t pinned = 0;

    /// usage less charged: what memory.current does not see
    std::uint64_t uncharged() const { return usage - charged; }

    /// the part of usage that is pages of nvidia.ko's own allocator
    std::uint64_t system() const { return usage - managed - metadata; }
};

struct Event {
    /// type of the event
    umacct_event_type type = UMACCT_EVENT_SOFT_CROSSED;
    /// sequence number: rises by one with each event, so a gap counts the lost ones
    std::uint64_t sequence = 0;
    /// time of the event, since the epoch
    std::uint64_t time_ns = 0;
    /// the task's account
    std::uint64_t account_id = 0;
    /// the task's cgroup
    std::string path;
    /// the account whose limit it was; empty for the reserve and where there was none
    std::optional<std::uint64_t> limit_id;
    /// cgroup of the account whose limit it was; empty for the reserve and where there was none
    std::string limit_path;
    /// the process, in the initial pid namespace
    std::uint32_t pid = 0;
    /// its name
    std::string comm;
    /// size of the allocation or the free
    std::uint64_t size = 0;
    /// usage of the limit's account; for the reserve and a failure, memory that was available
    std::uint64_t usage = 0;
    /// the limit or the reserve; 0 where there was none
    std::uint64_t limit = 0;
    /// how often it happened since the event before; all else is about the newest time
    std::uint64_t count = 1;
};

/// Settings to change on an account; empty ones stay as they are. A limit of
/// UMACCT_UNLIMITED removes the limit.
struct AccountChange {
    std::optional<std::uint64_t> hard;
    std::optional<std::uint64_t> soft;
    std::optional<std::uint64_t> throttle_ns;
    std::optional<std::uint64_t> keep;
    std::optional<bool> view;
    std::optional<umacct_charge_mode> charge;

    bool empty() const { return !hard && !soft && !throttle_ns && !keep && !view && !charge; }

    bool operator==(const AccountChange &other) const = default;
};

/// The same of the machine.
struct MachineChange {
    std::optional<std::uint64_t> reserve;
    std::optional<umacct_charge_mode> charge_default;

    bool empty() const { return !reserve && !charge_default; }

    bool operator==(const MachineChange &other) const = default;
};

/// How a setting is written.
enum class SettingKind { limit, size, time, flag, mode };

/// A setting of an account, or of the machine. Neutral is the type of its value, Change
/// std::optional<Neutral>, and Value what Of has: the same type, or Limit. Whole is what
/// changes of all settings are.
template <class Change, class Value, class Neutral, class Whole = AccountChange,
          class Of = Account>
struct Setting {
    std::uint16_t attribute;
    const char *policy; ///< its key in a rule, or of the machine
    const char *key;    ///< its key in JSON
    const char *option; ///< its option on a command line
    const char *title;
    const char *help;     ///< purpose of its option and its key
    const char *help_off; ///< purpose of the option with no-, for one that is on or off
    SettingKind kind;
    std::uint64_t most;   ///< its largest value
    Change Whole::*change;
    Value Of::*value;
    Neutral neutral; ///< value without a setting
};

/// Clang 14 makes none for an aggregate.
template <class Change, class Value, class Neutral, class Whole, class Of>
Setting(std::uint16_t, const char *, const char *, const char *, const char *,
        const char *, const char *, SettingKind, std::uint64_t, Change Whole::*, Value Of::*,
        Neutral)
    -> Setting<Change, Value, Neutral, Whole, Of>;

/// Calls use() with each setting of an account, in the order in which they are printed.
void for_each_setting(auto &&use) {
    use(Setting{UMACCT_A_ACCOUNT_HARD, "hard", "hard_bytes", "--hard", "hard limit",
                "refuse what would exceed this: a size, such as 40G or 50%, or max",
                "", SettingKind::limit, UINT64_MAX,
                &AccountChange::hard, &Account::hard, std::uint64_t{UMACCT_UNLIMITED}});
    use(Setting{UMACCT_A_ACCOUNT_SOFT, "soft", "soft_bytes", "--soft", "soft limit",
                "send an event above this: a size, such as 40G or 50%, or max",
                "", SettingKind::limit, UINT64_MAX,
                &AccountChange::soft, &Account::soft, std::uint64_t{UMACCT_UNLIMITED}});
    use(Setting{UMACCT_A_ACCOUNT_THROTTLE, "throttle", "throttle_ns", "--throttle", "throttle",
                "delay a call above the soft limit by at most this: 50ms, or off",
                "", SettingKind::time, UMACCT_THROTTLE_MAX_NS,
                &AccountChange::throttle_ns, &Account::throttle_ns, std::uint64_t{0}});
    use(Setting{UMACCT_A_ACCOUNT_KEEP, "keep", "keep_bytes", "--keep", "guarantee",
                "keep this from others until it is used: a size, such as 40G or 50%, or off",
                "", SettingKind::size, UINT64_MAX,
                &AccountChange::keep, &Account::keep, std::uint64_t{0}});
    use(Setting{UMACCT_A_ACCOUNT_VIEW, "view", "view", "--view", "view",
                "let /proc/meminfo and sysinfo report what its programs can have",
                "let them report the machine's figures", SettingKind::flag, 1,
                &AccountChange::view, &Account::view, false});
    use(Setting{UMACCT_A_ACCOUNT_CHARGE, "charge", "charge", "MODE", "charging",
                "charge the kernel's memory controller: on, off or inherit",
                "", SettingKind::mode, 2,
                &AccountChange::charge, &Account::charge, UMACCT_CHARGE_INHERIT});
}

/// The same of the machine's.
void for_each_machine_setting(auto &&use) {
    use(Setting{UMACCT_A_STATUS_RESERVE, "reserve", "reserve_bytes", "SIZE", "reserve",
                "leave this available to the machine: a size, such as 8G or 10%, or off",
                "", SettingKind::size, UINT64_MAX,
                &MachineChange::reserve, &Status::reserve, std::uint64_t{0}});
    use(Setting{UMACCT_A_STATUS_CHARGE_DEFAULT, "charge", "charge_default", "MODE", "charging, the machine's default:",
                "charge the cgroups that neither set nor inherit it: on or off",
                "", SettingKind::mode, 2,
                &MachineChange::charge_default, &Status::charge_default, UMACCT_CHARGE_OFF});
}

} // namespace umacct
