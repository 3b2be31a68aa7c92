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

#include "lib/host/clock.h"
#include "lib/module/value_fields.h"

namespace umacct {

namespace {

/// Empty text means that there is none.
std::optional<std::string_view> text_or_none(const std::string &text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

/// Formats nanoseconds since 1970.
std::string rfc3339(std::uint64_t ns) {
    return fmt::format("{:%FT%T}.{:09}Z", fmt::gmtime(static_cast<time_t>(ns / 1'000'000'000)),
                       ns % 1'000'000'000);
}

/// The same moment, counted from the machine's start.
std::uint64_t monotonic_us(std::uint64_t ns) {
    const std::uint64_t ago = now_ns(CLOCK_REALTIME) - ns; // may wrap, and wraps back

    return (now_ns(CLOCK_BOOTTIME) - ago) / 1000;
}

// --- what of JSON isn't the module's -----------------------------------------------

void fields(auto &way, Is<Owner> auto &owner) {
    static constexpr std::string_view kinds[] = {"container", "pod", "unit"};
    const bool is_container = owner.kind == OwnerKind::container;

    way("kind", kinds[static_cast<int>(owner.kind)]);
    way("runtime", owner.runtime);
    way("id", owner.id);
    way("name", text_or_none(owner.full_name()));
    way("container_id", text_or_none(is_container ? owner.id : ""));
    way("namespace", text_or_none(owner.kube_namespace));
    way("pod", text_or_none(owner.pod));
    way("container", text_or_none(owner.container));
}

void fields(auto &way, Is<Pressure> auto &pressure) {
    way("some_avg10_percent", pressure.some.avg10);
    way("some_total_us", pressure.some.total_us);
    way("full_avg10_percent", pressure.full.avg10);
    way("full_total_us", pressure.full.total_us);
}

void fields(auto &way, Is<MemoryController> auto &memory) {
    const bool no_limit = memory.max == std::optional<std::uint64_t>(UMACCT_UNLIMITED);

    way("memory_current_bytes", memory.current);
    // null is "no limit" here as everywhere: memory_current tells it from "not known".
    way("memory_max_bytes", no_limit ? std::nullopt : memory.max);
    way("memory_pressure", memory.pressure);
    way("total_bytes", memory.total);
    way("cache_bytes", memory.cache);
    way("swap_bytes", memory.swap);
}

void fields(auto &way, Is<ProcessMemory> auto &memory) {
    way("total_bytes", memory.total);
    way("swap_bytes", memory.swap);
}

/// Writes text without a document: of 10,000 rows that takes a twentieth of the time. Room for
/// a member is made once, and its name, whose length is known, is copied without a call.
class Writer {
public:
    using Buffer = fmt::basic_memory_buffer<char, 2048>; ///< large enough for a usual row

    /// One object of all the values' members. owners: null where none is of a cgroup.
    static void append(Buffer &to, const Owners *owners, const auto &...values) {
        Writer writer(to, owners);

        (fields(writer, values), ...);
        to.push_back('}');
    }

    template <std::size_t Size>
    void operator()(const char (&key)[Size], const auto &value) {
        char *at = room(Size + 3);

        *at++ = std::exchange(separator_, ',');
        *at++ = '"';
        at = std::copy_n(key, Size - 1, at);
        *at++ = '"';
        *at = ':';
        put(value);
    }

    // Overloads for members that have a netlink attribute, or only that.

    void operator()(std::uint16_t /*type*/, const auto &key, const auto &value) {
        (*this)(key, value);
    }

    void operator()(std::uint16_t /*type*/, const auto & /*value*/) {}

    void maybe(std::uint16_t /*type*/, const auto &key, const std::string &text) {
        (*this)(key, text_or_none(text));
    }

    void limit(std::uint16_t /*type*/, const auto &key, const Limit &limit) { (*this)(key, limit); }

    void word(std::uint16_t /*type*/, const auto &key, bool value) { (*this)(key, value); }

    void time(std::uint16_t /*type*/, std::uint64_t ns) {
        (*this)("time", rfc3339(ns));
        (*this)("monotonic_us", monotonic_us(ns));
    }

    void owner(const std::string &path) { (*this)("owner", owners_->nearest(path)); }

private:
    static constexpr std::size_t most_digits = 20;

    Writer(Buffer &to, const Owners *owners) : to_(to), owners_(owners) {}

    /// Extends the text by that many bytes.
    char *room(std::size_t bytes) {
        const std::size_t size = to_.size();

        to_.resize(size + bytes);
        return to_.data() + size;
    }

    void put_word(std::string_view word) { std::ranges::copy(word, room(word.size())); }

    template <class T>
    void put(const T &value) {
        if constexpr (requires { value.has_value(); }) {
            if (value)
                put(*value);
            else
                put_word("null");
        } else if constexpr (std::is_same_v<T, bool>) {
            put_word(value ? "true" : "false");
        } else if constexpr (std::is_integral_v<T>) {
            char *at = room(most_digits);
            const char *end = std::to_chars(at, at + most_digits, value).ptr;

            to_.resize(static_cast<std::size_t>(end - to_.data()));
        } else if constexpr (std::is_floating_point_v<T>) {
            fmt::format_to(fmt::appender(to_), "{:#}", value);
        } else if constexpr (std::is_enum_v<T>) {
            put_text(name_of(value));
        } else if constexpr (std::is_convertible_v<T, std::string_view>) {
            put_text(value);
        } else if constexpr (std::is_same_v<T, std::vector<Hook>>) {
            char separator = '[';

            for (const Hook &hook : value) {
                to_.push_back(std::exchange(separator, ','));
                put(hook);
            }
            put_word(value.empty() ? "[]" : "]");
        } else {
            append(to_, owners_, value);
        }
    }

    void put_text(std::string_view text) {
        const bool plain = std::ranges::all_of(
            text, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });

        if (plain) {
            to_.push_back('"');
            put_word(text);
            to_.push_back('"');
        } else {
            to_.append(json_text(text));
        }
    }

    Buffer &to_;
    const Owners *owners_;
    char separator_ = '{'; ///< precedes the next member
};

void append_row(std::string &to, const Owners *owners, const auto &...values) {
    Writer::Buffer row;

    Writer::append(row, owners, values...);
    to.append(row.data(), row.size());
}

Json document_of(const Owners *owners, const auto &...values) {
    Writer::Buffer text;

    Writer::append(text, owners, values...);
    return Json::parse(text.begin(), text.end());
}

} // namespace

Json to_json(const std::optional<Owner> &owner) {
    return owner ? document_of(nullptr, *owner) : Json(nullptr);
}

Json to_json(const Hook &hook) {
    return document_of(nullptr, hook);
}

Json to_json(const Status &status) {
    Json json = document_of(nullptr, status);

    if (status.tells_all())
        return json;
    // A number that the reader may not see is no 0.
    for (const char *key : restricted_keys)
        json[key] = nullptr;
    for (Json &hook : json["hooks"])
        hook["calls"] = hook["missed"] = nullptr;
    return json;
}

Json to_json(const Reclaim &reclaim) {
    return document_of(nullptr, reclaim);
}

Json to_json(const Enforcement &made) {
    return document_of(nullptr, made);
}

Json to_json(const Owners &owners, const Account &account) {
    return document_of(&owners, account);
}

Json to_json(const Owners &owners, const Account &account, const MemoryController &memory) {
    return document_of(&owners, account, memory);
}

Json to_json(const Owners &owners, const Client &client) {
    return document_of(&owners, client);
}

Json to_json(const Owners &owners, const Client &client, const ProcessMemory &memory) {
    return document_of(&owners, client, memory);
}

Json to_json(const Owners &owners, const Event &event) {
    return document_of(&owners, event);
}

void append_json(std::string &to, const Owners &owners, const Account &account,
                 const MemoryController &memory) {
    append_row(to, &owners, account, memory);
}

void append_json(std::string &to, const Owners &owners, const Client &client,
                 const ProcessMemory &memory) {
    append_row(to, &owners, client, memory);
}

namespace {

/// Adds the setting, if the change has it.
template <class Change, class Value, class Neutral, class Whole, class Of>
void add_setting(Json &json, const Setting<Change, Value, Neutral, Whole, Of> &setting,
                 const Whole &change) {
    const Change &value = change.*setting.change;

    if (!value)
        return;
    if constexpr (std::is_same_v<Value, Limit>)
        json[setting.key] = *value == UMACCT_UNLIMITED ? Json(nullptr) : Json(*value);
    else if constexpr (std::is_enum_v<Value>)
        json[setting.key] = name_of(*value);
    else
        json[setting.key] = *value;
}

} // namespace

Json to_json(const AccountChange &change) {
    Json json = Json::object();

    for_each_setting([&](const auto &setting) { add_setting(json, setting, change); });
    return json;
}

Json to_json(const MachineChange &change) {
    Json json = Json::object();

    for_each_machine_setting([&](const auto &setting) { add_setting(json, setting, change); });
    return json;
}

Json json_document(const std::string &boot_id) {
    const std::uint64_t now = now_ns(CLOCK_REALTIME);

    return {{"schema", json_schema},
            {"time", rfc3339(now)},
            {"monotonic_us", monotonic_us(now)},
            {"boot_id", boot_id.empty() ? Json(nullptr) : Json(boot_id)}};
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
