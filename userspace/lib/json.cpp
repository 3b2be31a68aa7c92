// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <type_traits>
#include <utility>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

namespace umacct {

namespace {

/// Empty text means that there is none.
std::optional<std::string_view> text_or_none(const std::string &text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

std::uint64_t now_ns(clockid_t clock) {
    timespec now{};

    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

/// From nanoseconds since 1970.
std::string rfc3339(std::uint64_t ns) {
    return fmt::format("{:%FT%T}.{:09}Z", fmt::gmtime(static_cast<time_t>(ns / 1'000'000'000)),
                       ns % 1'000'000'000);
}

/// The same moment, counted from the machine's start.
std::uint64_t monotonic_us(std::uint64_t ns) {
    const std::uint64_t ago = now_ns(CLOCK_REALTIME) - ns; // may wrap, and wraps back

    return (now_ns(CLOCK_BOOTTIME) - ago) / 1000;
}

Json flag_names(const Status &status) {
    return {{"memcg_v2", status.has(UMACCT_STATUS_MEMCG_V2)},
            {"kmem", status.has(UMACCT_STATUS_KMEM)},
            {"native_charge", status.has(UMACCT_STATUS_NATIVE_CHARGE)},
            {"page_pools", status.has(UMACCT_STATUS_PAGE_POOLS)},
            {"charge_ready", status.has(UMACCT_STATUS_CHARGE_READY)},
            {"view_ready", status.has(UMACCT_STATUS_VIEW_READY)},
            {"cgroup_v2", status.has(UMACCT_STATUS_CGROUP_V2)},
            {"selftest", status.has(UMACCT_STATUS_SELFTEST)},
            {"unenforced", status.has(UMACCT_STATUS_UNENFORCED)}};
}

// --- what lists are of, once for documents and once for text ---------------------

template <class Take>
void members(Take &take, const Owner &owner) {
    static constexpr std::string_view kinds[] = {"container", "pod", "unit"};
    const bool is_container = owner.kind == OwnerKind::container;

    take("kind", kinds[static_cast<int>(owner.kind)]);
    take("runtime", owner.runtime);
    take("id", owner.id);
    take("name", text_or_none(owner.full_name()));
    take("container_id", text_or_none(is_container ? owner.id : ""));
    take("namespace", text_or_none(owner.kube_namespace));
    take("pod", text_or_none(owner.pod));
    take("container", text_or_none(owner.container));
}

template <class Take>
void members(Take &take, const Owners &owners, const Account &account) {
    take("id", account.id);
    take("parent_id", account.parent_id);
    take("level", account.level);
    take("path", account.path);
    take("owner", owners.nearest(account.path));
    take("usage_bytes", account.usage);
    take("local_bytes", account.local);
    take("peak_bytes", account.peak);
    take("charged_bytes", account.charged);
    take("uncharged_bytes", account.uncharged());
    take("managed_bytes", account.managed);
    take("allocs", account.allocs);
    take("frees", account.frees);
    take("failures", account.failures);
    take("refusals", account.refusals);
    take("clients", account.clients);
    take("soft_bytes", account.soft);
    take("hard_bytes", account.hard);
    take("throttle_ns", account.throttle_ns);
    take("view", account.view);
    take("charge", name_of(account.charge));
    take("charge_effective", name_of(account.charge_effective));
    take("effective_bytes", account.effective);
    take("effective_id", account.effective_id);
    take("local_soft_count", account.soft_count);
    take("local_hard_count", account.hard_count);
    take("reserve_count", account.reserve_count);
    take("throttled_ns", account.throttled_ns);
    take("alloc_time_ns", account.alloc_time_ns);
    take("alloc_time_max_ns", account.alloc_time_max_ns);
    take("bookkeeping_bytes", account.bookkeeping);
}

template <class Take>
void members(Take &take, const Pressure &pressure) {
    take("some_avg10_percent", pressure.some.avg10);
    take("some_total_us", pressure.some.total_us);
    take("full_avg10_percent", pressure.full.avg10);
    take("full_total_us", pressure.full.total_us);
}

template <class Take>
void members(Take &take, const Owners &owners, const Account &account,
             const MemoryController &memory) {
    const bool no_limit = memory.max == std::optional<std::uint64_t>(UMACCT_UNLIMITED);

    members(take, owners, account);
    take("memory_current_bytes", memory.current);
    // null is "no limit" here as everywhere: memory_current tells it from "not known".
    take("memory_max_bytes", no_limit ? std::nullopt : memory.max);
    take("memory_pressure", memory.pressure);
}

template <class Take>
void members(Take &take, const Owners &owners, const Client &client) {
    take("pid", client.pid == 0 ? std::nullopt : std::optional(client.pid));
    take("start_monotonic_us", client.start_time_ns / 1000);
    take("comm", client.comm);
    take("account_id", client.account_id);
    take("path", client.path);
    take("owner", owners.nearest(client.path));
    take("usage_bytes", client.usage);
    take("peak_bytes", client.peak);
    take("charged_bytes", client.charged);
    take("uncharged_bytes", client.uncharged());
    take("managed_bytes", client.managed);
    take("allocs", client.allocs);
    take("frees", client.frees);
    take("exited", client.exited);
}

template <class... Values>
Json build(const Values &...values);

/// Puts members into a document.
struct Builder {
    template <class T>
    void operator()(const char *key, const T &value) {
        json[key] = form(value);
    }

    template <class T>
    static Json form(const T &value) {
        if constexpr (requires { value.has_value(); })
            return value ? form(*value) : Json(nullptr);
        else if constexpr (std::is_same_v<T, Owner> || std::is_same_v<T, Pressure>)
            return build(value);
        else
            return value;
    }

    Json json = Json::object();
};

/// Writes the same as text, without the document: of 10,000 rows that takes a twentieth of
/// the time. Room for a member is made once, and its name, whose length is known, is copied
/// without a call.
class Writer {
public:
    using Buffer = fmt::basic_memory_buffer<char, 2048>; ///< with room for a usual row

    explicit Writer(Buffer &to) : to_(to) {}

    /// One object.
    template <class... Values>
    static void append(Buffer &to, const Values &...values) {
        Writer writer(to);

        members(writer, values...);
        to.push_back('}');
    }

    template <std::size_t Size, class T>
    void operator()(const char (&key)[Size], const T &value) {
        char *at = room(Size + 3);

        *at++ = std::exchange(separator_, ',');
        *at++ = '"';
        at = std::copy_n(key, Size - 1, at);
        *at++ = '"';
        *at = ':';
        put(value);
    }

private:
    static constexpr std::size_t most_digits = 20;

    /// So many bytes more, to be written.
    char *room(std::size_t bytes) {
        const std::size_t size = to_.size();

        to_.resize(size + bytes);
        return to_.data() + size;
    }

    template <std::size_t Size>
    void put_word(const char (&word)[Size]) {
        std::copy_n(word, Size - 1, room(Size - 1));
    }

    template <class T>
    void put(const T &value) {
        if constexpr (requires { value.has_value(); }) {
            if (value)
                put(*value);
            else
                put_word("null");
        } else if constexpr (std::is_same_v<T, bool>) {
            if (value)
                put_word("true");
            else
                put_word("false");
        } else if constexpr (std::is_integral_v<T>) {
            char *at = room(most_digits);
            const char *end = std::to_chars(at, at + most_digits, value).ptr;

            to_.resize(static_cast<std::size_t>(end - to_.data()));
        } else if constexpr (std::is_floating_point_v<T>) {
            fmt::format_to(fmt::appender(to_), "{:#}", value);
        } else if constexpr (std::is_same_v<T, Owner> || std::is_same_v<T, Pressure>) {
            append(to_, value);
        } else {
            put_text(value);
        }
    }

    void put_text(std::string_view text) {
        const bool plain = std::ranges::all_of(
            text, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });

        if (plain) {
            to_.push_back('"');
            std::ranges::copy(text, room(text.size()));
            to_.push_back('"');
        } else {
            to_.append(json_text(text));
        }
    }

    Buffer &to_;
    char separator_ = '{'; ///< before the next member
};

template <class... Values>
void append_row(std::string &to, const Values &...values) {
    Writer::Buffer row;

    Writer::append(row, values...);
    to.append(row.data(), row.size());
}

template <class... Values>
Json build(const Values &...values) {
    Builder builder;

    members(builder, values...);
    return std::move(builder.json);
}

} // namespace

Json to_json(const std::optional<Owner> &owner) {
    return owner ? build(*owner) : Json(nullptr);
}

Json to_json(const Hook &hook) {
    return {{"name", hook.name},
            {"symbol", hook.symbol},
            {"state", name_of(hook.state)},
            {"required", hook.required},
            {"reason", Builder::form(text_or_none(hook.reason))},
            {"calls", hook.calls},
            {"missed", hook.missed}};
}

Json to_json(const Status &status) {
    Json hooks = Json::array();

    for (const Hook &hook : status.hooks)
        hooks.push_back(to_json(hook));
    return {{"module_version", status.module_version},
            {"driver_state", name_of(status.driver_state)},
            {"driver_version", Builder::form(text_or_none(status.driver_version))},
            {"uvm_state", name_of(status.uvm_state)},
            {"reason", Builder::form(text_or_none(status.reason))},
            {"flags", flag_names(status)},
            {"usage_bytes", status.usage},
            {"charged_bytes", status.charged},
            {"uncharged_bytes", status.uncharged()},
            {"driver_usage_bytes", status.driver_usage},
            {"driver_peak_bytes", status.driver_peak},
            {"managed_bytes", status.managed},
            {"pools_bytes", Builder::form(status.pools)},
            {"untracked_bytes", status.untracked},
            {"untracked_count", status.untracked_count},
            {"unattributed_count", status.unattributed_count},
            {"stale_count", status.stale_count},
            {"accounts", status.accounts},
            {"clients", status.clients},
            {"records", status.records},
            {"available_bytes", status.available},
            {"reserve_bytes", status.reserve},
            {"reserve_count", status.reserve_count},
            {"charge_default", name_of(status.charge_default)},
            {"charge_reason", Builder::form(text_or_none(status.charge_reason))},
            {"events_sent", status.events_sent},
            {"events_lost", status.events_lost},
            {"hooks", hooks}};
}

Json to_json(const Reclaim &reclaim) {
    return {{"reclaimed_bytes", reclaim.reclaimed}, {"pools_bytes", Builder::form(reclaim.pools)}};
}

Json to_json(const Owners &owners, const Account &account) {
    return build(owners, account);
}

Json to_json(const Owners &owners, const Account &account, const MemoryController &memory) {
    return build(owners, account, memory);
}

Json to_json(const Owners &owners, const Client &client) {
    return build(owners, client);
}

void append_json(std::string &to, const Owners &owners, const Account &account,
                 const MemoryController &memory) {
    append_row(to, owners, account, memory);
}

void append_json(std::string &to, const Owners &owners, const Client &client) {
    append_row(to, owners, client);
}

Json to_json(const Owners &owners, const std::vector<Client> &clients) {
    Json json = Json::array();

    for (const Client &client : clients)
        json.push_back(to_json(owners, client));
    return json;
}

Json to_json(const Owners &owners, const Event &event) {
    return {{"type", name_of(event.type)},
            {"seq", event.sequence},
            {"time", rfc3339(event.time_ns)},
            {"monotonic_us", monotonic_us(event.time_ns)},
            {"account_id", event.account_id},
            {"path", event.path},
            {"owner", to_json(owners.nearest(event.path))},
            {"limit_id", Builder::form(event.limit_id)},
            {"limit_path", Builder::form(text_or_none(event.limit_path))},
            {"pid", event.pid},
            {"comm", event.comm},
            {"size_bytes", event.size},
            {"usage_bytes", event.usage},
            {"limit_bytes", event.limit},
            {"count", event.count}};
}

Json to_json(const AccountChange &change) {
    Json json = Json::object();
    const auto limit = [](std::uint64_t bytes) {
        return bytes == UMACCT_UNLIMITED ? Json(nullptr) : Json(bytes);
    };

    if (change.soft)
        json["soft_bytes"] = limit(*change.soft);
    if (change.hard)
        json["hard_bytes"] = limit(*change.hard);
    if (change.throttle_ns)
        json["throttle_ns"] = *change.throttle_ns;
    if (change.view)
        json["view"] = *change.view;
    if (change.charge)
        json["charge"] = name_of(*change.charge);
    return json;
}

Json to_json(const Enforcement &made) {
    return {{"driver_state", name_of(made.driver_state)}, {"not_enforced", made.reason}};
}

Json json_document(const std::string &boot_id) {
    const std::uint64_t now = now_ns(CLOCK_REALTIME);

    return {{"schema", json_schema},
            {"time", rfc3339(now)},
            {"monotonic_us", monotonic_us(now)},
            {"boot_id", Builder::form(text_or_none(boot_id))}};
}

Json merged(Json first, const Json &second) {
    first.update(second);
    return first;
}

std::string json_text(const Json &json) {
    // Names of processes and cgroups may hold any bytes: in ASCII none moves a terminal.
    return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

} // namespace umacct
