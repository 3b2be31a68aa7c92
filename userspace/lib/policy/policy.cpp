// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/memory/preflight.h"
#include "lib/policy/toml.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using Diagnostics = std::vector<Diagnostic>;

constexpr std::array guard_steps{
    std::pair{GuardStep::reclaim, std::string_view("reclaim")},
    std::pair{GuardStep::reserve, std::string_view("reserve")},
    std::pair{GuardStep::freeze, std::string_view("freeze")},
    std::pair{GuardStep::signal, std::string_view("signal")},
    std::pair{GuardStep::kill, std::string_view("kill")},
};

/// The default steps: nothing that can't be undone.
constexpr std::array usual_steps{GuardStep::reclaim, GuardStep::reserve, GuardStep::freeze};

constexpr std::array always_protected{
    std::string_view("/init.scope"),
    // Others run in these, or by them: to kill one is to kill all of those.
    std::string_view("/system.slice/containerd*.service"),
    std::string_view("/system.slice/crio*.service"),
    std::string_view("/system.slice/dbus*.service"),
    std::string_view("/system.slice/docker*.service"),
    std::string_view("/system.slice/gdm*.service"),
    std::string_view("/system.slice/incus*.service"),
    std::string_view("/system.slice/k3s*.service"),
    std::string_view("/system.slice/kubelet*.service"),
    std::string_view("/system.slice/libvirtd*.service"),
    std::string_view("/system.slice/lightdm*.service"),
    std::string_view("/system.slice/lxd*.service"),
    std::string_view("/system.slice/podman.service"),
    std::string_view("/system.slice/sddm*.service"),
    std::string_view("/system.slice/snap.docker.dockerd*.service"),
    std::string_view("/system.slice/ssh*.service"),
    std::string_view("/system.slice/systemd-*.service"),
    std::string_view("/system.slice/umacct*.service"),
};

Place place_of(const toml::source_region &source) {
    return {.file = source.path ? *source.path : "",
            .line = source.begin.line,
            .column = source.begin.column};
}

/// Returns how many characters must be put in, left out or changed to make one word of the other.
std::size_t distance(std::string_view from, std::string_view to) {
    std::vector<std::size_t> row(to.size() + 1);

    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::size_t before = std::exchange(row[0], i + 1);

        for (std::size_t j = 0; j < to.size(); ++j) {
            const std::size_t changed = before + (from[i] == to[j] ? 0 : 1);

            before = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, before + 1});
        }
    }
    return row.back();
}

/// A table of the file: takes keys, and says which were not taken.
class Reader {
public:
    Reader(const toml::table &table, const char *what, Diagnostics &diagnostics)
        : table_(table), what_(what), diagnostics_(diagnostics) {}

    /// The key's value as read(text) understands it; what that throws is a diagnostic.
    template <class Read>
    auto text(const char *key, Read read) -> std::optional<decltype(read(std::string()))> {
        const toml::node *node = take(key);

        return node == nullptr ? std::nullopt : value(key, *node, read);
    }

    /// The same of a list of texts.
    template <class Read>
    auto texts(const char *key, Read read)
        -> std::optional<std::vector<decltype(read(std::string()))>> {
        const toml::node *node = take(key);
        std::vector<decltype(read(std::string()))> values;

        if (node == nullptr)
            return std::nullopt;
        if (!node->is_array()) {
            diagnostic(*node, fmt::format("{} is a list, in brackets", key));
            return std::nullopt;
        }
        for (const toml::node &each : *node->as_array()) {
            if (auto read_value = value(key, each, read))
                values.push_back(std::move(*read_value));
        }
        return values;
    }

    std::optional<bool> flag(const char *key) { return exact<bool>(key, "true or false"); }

    std::optional<std::int64_t> number(const char *key) {
        return exact<std::int64_t>(key, "a whole number");
    }

    const toml::node *take(const char *key) {
        const toml::node *node = table_.get(key);

        known_.emplace_back(key);
        // Some keys had a '-' once.
        if (node == nullptr) {
            std::string former = key;

            std::ranges::replace(former, '_', '-');
            node = table_.get(former);
            former_.push_back(std::move(former));
        }
        if (node != nullptr)
            places_[key] = place_of(node->source());
        return node;
    }

    /// Returns the places of the known keys that are present.
    const Places &places() const { return places_; }

    void refuse_others() {
        for (const auto &[key, node] : table_) {
            if (std::ranges::find(known_, key.str()) == known_.end() &&
                std::ranges::find(former_, key.str()) == former_.end())
                diagnostic(place_of(key.source()),
                           fmt::format("{} has no '{}'; it may have {}{}", what_,
                                       printable(key.str()), fmt::join(known_, ", "),
                                       meant_by(key.str())));
        }
    }

    /// Returns the known key that a word is next to, as a question; nothing if none is near.
    std::string meant_by(std::string_view word) const {
        // A longer word is no slip of the pen, and would take long.
        if (known_.empty() || word.size() > 40)
            return "";
        const std::string_view nearest = *std::ranges::min_element(
            known_, {}, [&](std::string_view known) { return distance(word, known); });

        return distance(word, nearest) * 2 > word.size()
                   ? ""
                   : fmt::format(": did you mean {}?", nearest);
    }

    void diagnostic(const toml::node &node, const std::string &text) {
        diagnostic(place_of(node.source()), text);
    }

    void diagnostic(const Place &place, const std::string &text) {
        diagnostics_.push_back({place, text});
    }

private:
    template <class Value>
    std::optional<Value> exact(const char *key, const char *what) {
        const toml::node *node = take(key);

        if (node != nullptr && !node->is<Value>())
            diagnostic(*node, fmt::format("{} is {}", key, what));
        return node == nullptr ? std::nullopt : node->value_exact<Value>();
    }

    template <class Read>
    auto value(const char *key, const toml::node &node, Read read)
        -> std::optional<decltype(read(std::string()))> {
        if (!node.is_string()) {
            diagnostic(node, fmt::format("{} is a text, in quotes", key));
            return std::nullopt;
        }
        try {
            return read(node.as_string()->get());
        } catch (const Error &error) {
            diagnostic(node, fmt::format("{}: {}", key, error.what()));
            return std::nullopt;
        }
    }

    const toml::table &table_;
    const char *what_;
    Diagnostics &diagnostics_;
    std::vector<std::string> known_;
    std::vector<std::string> former_; ///< former spellings of keys that aren't there
    Places places_;
};

Amount read_floor(const std::string &text) {
    const Amount amount = parse_amount(text);

    if (amount.bytes == UMACCT_UNLIMITED)
        throw Error(Failure::usage, "it cannot be 'max': that much is never available");
    return amount;
}

umacct_charge_mode read_switch(const std::string &text) {
    if (text != "on" && text != "off")
        throw Error(Failure::usage, fmt::format("'{}' is neither 'on' nor 'off'", printable(text)));
    return text == "on" ? UMACCT_CHARGE_ON : UMACCT_CHARGE_OFF;
}

std::string read_pattern(const std::string &text) {
    if (text.empty())
        throw Error(Failure::usage, "an empty pattern fits nothing");
    return text;
}

/// A key alone is one with any value.
std::string read_label(const std::string &text) {
    if (text.empty() || text.starts_with('='))
        throw Error(Failure::usage,
                    fmt::format("'{}' has no key: it is KEY or KEY=VALUE", printable(text)));
    return text.find('=') == std::string::npos ? text + "=**" : text;
}

std::string read_path_pattern(const std::string &text) {
    if (!text.starts_with('/'))
        throw Error(Failure::usage, fmt::format("'{}' does not begin with '/'", printable(text)));
    return text;
}

std::string read_name(const std::string &text) {
    return printable(text);
}

GuardStep read_step(const std::string &text) {
    const auto *const found =
        std::ranges::find_if(guard_steps, [&](const auto &each) { return each.second == text; });

    if (found == guard_steps.end())
        throw Error(Failure::usage,
                    fmt::format("there is no step '{}'; the steps are reclaim, reserve, freeze, "
                                "signal, kill",
                                printable(text)));
    return found->first;
}

/// A unit's name, as "systemctl" takes it.
std::string read_unit(const std::string &text) {
    const std::string pattern = read_pattern(text);

    return pattern.find('.') == std::string::npos && !pattern.ends_with('*') ? pattern + ".service"
                                                                             : pattern;
}

/// Its key's value; one that can't be understood is a diagnostic.
template <class Change, class Value, class Neutral>
void read_setting(Reader &reader, const Setting<Change, Value, Neutral> &setting,
                  WrittenSettings &to) {
    if constexpr (std::is_same_v<Value, bool>)
        to.exact.*setting.change = reader.flag(setting.policy);
    else
        reader.text(setting.policy, [&](const std::string &text) {
            to.read(setting, text);
            return true;
        });
}

Rule read_rule(const toml::table &table, Diagnostics &diagnostics) {
    Reader reader(table, "a rule", diagnostics);
    Rule rule;

    rule.place = place_of(table.source());
    rule.name = reader.text("name", read_name).value_or("");
    rule.priority = reader.number("priority").value_or(0);
    rule.cgroup = reader.text("cgroup", read_path_pattern);
    rule.unit = reader.text("unit", read_unit);
    rule.container = reader.text("container", read_pattern);
    rule.image = reader.text("image", read_pattern);
    rule.pod = reader.text("pod", read_pattern);
    rule.name_space = reader.text("namespace", read_pattern);
    rule.label = reader.text("label", read_label);

    std::vector<std::string> settings;
    for_each_setting([&](const auto &setting) {
        settings.emplace_back(setting.policy);
        read_setting(reader, setting, rule.settings);
    });
    settings.emplace_back("total");
    rule.total = reader.text("total", parse_amount);
    reader.refuse_others();
    rule.places = reader.places();

    const auto has_any = [&](auto... keys) { return (table.contains(keys) || ...); };
    if (!has_any("cgroup", "unit", "container", "image", "pod", "namespace", "label"))
        reader.diagnostic(rule.place, "a rule needs one of cgroup, unit, container, image, pod, "
                                      "namespace, label");
    if (rule.unit && rule.needs_name())
        reader.diagnostic(rule.place, "a unit is neither a container nor a pod: make it two rules");
    if (std::ranges::none_of(settings, has_any))
        reader.diagnostic(rule.place,
                          fmt::format("a rule needs one of {}", fmt::join(settings, ", ")));

    auto &charge = rule.settings.exact.charge;
    if (rule.total && !rule.drop_ins())
        reader.diagnostic(rule.places.at("total"),
                          "total is MemoryMax= of services, which systemd sets: for a rule with "
                          "unit alone. For a container or a pod, write charge = \"on\" here, and "
                          "its limit where it is made: docker run --memory, or "
                          "resources.limits.memory");
    else if (rule.total && charge.value_or(UMACCT_CHARGE_ON) != UMACCT_CHARGE_ON)
        reader.diagnostic(rule.places.at("charge"), "total needs charge = \"on\"");
    else if (rule.total)
        charge = UMACCT_CHARGE_ON;

    const auto soft = rule.settings.amount(UMACCT_A_ACCOUNT_SOFT);
    const auto hard = rule.settings.amount(UMACCT_A_ACCOUNT_HARD);
    if (soft && hard && soft->percent.has_value() == hard->percent.has_value() &&
        soft->percent.value_or(static_cast<double>(soft->bytes)) >
            hard->percent.value_or(static_cast<double>(hard->bytes)))
        reader.diagnostic(rule.place, "soft is above hard");
    return rule;
}

/// Those of the first file that has the key stay.
void add_places(Policy &policy, std::string_view table, const Places &places) {
    for (const auto &[key, place] : places)
        policy.places.try_emplace(fmt::format("{}.{}", table, key), place);
}

std::string read_notify(const std::string &text) {
    if (text.find_first_not_of(' ') == std::string::npos)
        throw Error(Failure::usage, "it is empty", "a command, or an address with https://");
    return text;
}

void read_machine(const toml::table &table, Policy &policy, Diagnostics &diagnostics) {
    Reader reader(table, "[machine]", diagnostics);
    const auto reserve = reader.text("reserve", parse_reserve);
    const auto charge = reader.text("charge", read_switch);
    const auto view = reader.flag("view");
    const auto headroom = reader.text("headroom", parse_reserve);
    const auto headroom_blocks = reader.text("headroom_blocks", parse_block);
    const auto headroom_anonymous = reader.flag("headroom_anonymous");
    const auto observer = reader.flag("observer");
    const auto notify = reader.text("notify", read_notify);
    const auto first = [](auto &setting, const auto &next) {
        if (!setting)
            setting = next;
    };

    reader.refuse_others();
    add_places(policy, "machine", reader.places());
    first(policy.reserve, reserve);
    first(policy.charge, charge);
    first(policy.view, view);
    first(policy.headroom, headroom);
    first(policy.headroom_blocks, headroom_blocks);
    first(policy.headroom_anonymous, headroom_anonymous);
    first(policy.observer, observer);
    first(policy.notify, notify);
}

void read_guard(const toml::table &table, Policy &policy, Diagnostics &diagnostics) {
    Reader reader(table, "[guard]", diagnostics);
    GuardPolicy guard;
    const auto take = [](auto &member, auto value) {
        if (value)
            member = std::move(*value);
    };

    guard.floor = reader.text("floor", read_floor);
    guard.pressure = reader.text("pressure", parse_share);
    take(guard.failed, reader.flag("failed"));
    take(guard.for_ns, reader.text("for", parse_time));
    guard.steps.assign(usual_steps.begin(), usual_steps.end());
    take(guard.steps, reader.texts("steps", read_step));
    take(guard.wait_ns, reader.text("wait", parse_time));
    take(guard.release_ns, reader.text("release", parse_time));
    take(guard.protect, reader.texts("protect", read_path_pattern));
    take(guard.dry_run, reader.flag("dry_run"));
    reader.refuse_others();
    if (!table.contains("floor") && !table.contains("pressure") && !guard.failed)
        reader.diagnostic(place_of(table.source()), "[guard] needs floor, pressure or failed");
    if (guard.steps.empty())
        reader.diagnostic(*table.get("steps"), "steps: without any, the guard does nothing");
    if (policy.guard)
        return;
    add_places(policy, "guard", reader.places());
    policy.guard = std::move(guard);
}

std::string read_file_name(const std::string &text) {
    if (!text.starts_with('/'))
        throw Error(Failure::usage, fmt::format("'{}' is no whole path", text));
    return text;
}

bool is_host(std::string_view text) {
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") ==
                                std::string_view::npos;
}

/// Parses an origin, written as in a browser's header.
std::string read_origin(const std::string &text) {
    const std::size_t scheme = text.starts_with("https://")  ? 8
                               : text.starts_with("http://") ? 7
                                                             : 0;
    const std::size_t colon = text.find(':', scheme);
    const std::string_view port =
        colon == std::string_view::npos ? "1" : std::string_view(text).substr(colon + 1);

    if (scheme == 0 || !is_host(std::string_view(text).substr(scheme, colon - scheme)) ||
        port.empty() || port.size() > 5 ||
        port.find_first_not_of("0123456789") != std::string_view::npos)
        throw Error(Failure::usage,
                    fmt::format("'{}' is no origin, such as https://dash.example or "
                                "http://127.0.0.1:3000",
                                text));
    return text;
}

std::string read_host(const std::string &text) {
    if (!is_host(text))
        throw Error(Failure::usage,
                    fmt::format("'{}' is no host's name, in lower case and without a port", text));
    return text;
}

/// Whether to start without limits.
bool read_without_module(const std::string &text) {
    if (text != "refuse" && text != "start")
        throw Error(Failure::usage,
                    fmt::format("'{}' is neither 'refuse' nor 'start'", printable(text)));
    return text == "start";
}

void read_containers(const toml::table &table, Policy &policy, Diagnostics &diagnostics) {
    Reader reader(table, "[containers]", diagnostics);
    const auto start_unlimited = reader.text("without_module", read_without_module);
    const auto from_memory_limit = reader.flag("from_memory_limit");
    const auto keep = reader.text("keep", parse_reserve);
    ContainerPolicy &containers = policy.containers;

    reader.refuse_others();
    add_places(policy, "containers", reader.places());
    if (!containers.start_unlimited)
        containers.start_unlimited = start_unlimited;
    if (!containers.from_memory_limit)
        containers.from_memory_limit = from_memory_limit;
    if (!containers.keep)
        containers.keep = keep;
}

void read_exporter(const toml::table &table, Policy &policy, Diagnostics &diagnostics) {
    Reader reader(table, "[exporter]", diagnostics);
    const auto top = reader.number("top");
    PagePolicy page;
    const auto first = [](auto &member, auto &value) {
        if (!member)
            member = std::move(value);
    };

    page.on = reader.flag("page");
    page.token = reader.text("page_token", read_file_name);
    page.origins = reader.texts("page_origins", read_origin);
    page.hosts = reader.texts("page_hosts", read_host);
    reader.refuse_others();
    first(policy.page.on, page.on);
    first(policy.page.token, page.token);
    first(policy.page.origins, page.origins);
    first(policy.page.hosts, page.hosts);
    if (top && *top < 0)
        reader.diagnostic(*table.get("top"), "top is how many: 0 or more");
    else if (top && !policy.exporter_top)
        policy.exporter_top = static_cast<std::size_t>(*top);
}

void read_rules(const toml::array &array, Policy &policy, Diagnostics &diagnostics) {
    for (const toml::node &node : array) {
        Rule rule = read_rule(*node.as_table(), diagnostics);

        if (rule.name.empty())
            rule.name = fmt::format("rule {}", policy.rules.size() + 1);
        policy.rules.push_back(std::move(rule));
    }
}

void read_document(const toml::table &document, Policy &policy, Diagnostics &diagnostics) {
    Reader reader(document, "a policy", diagnostics);

    if (const toml::node *machine = reader.take("machine")) {
        if (const toml::table *table = machine->as_table())
            read_machine(*table, policy, diagnostics);
        else
            reader.diagnostic(*machine, "machine is a table: [machine]");
    }
    if (const toml::node *guard = reader.take("guard")) {
        if (const toml::table *table = guard->as_table())
            read_guard(*table, policy, diagnostics);
        else
            reader.diagnostic(*guard, "guard is a table: [guard]");
    }
    if (const toml::node *containers = reader.take("containers")) {
        if (const toml::table *table = containers->as_table())
            read_containers(*table, policy, diagnostics);
        else
            reader.diagnostic(*containers, "containers is a table: [containers]");
    }
    if (const toml::node *exporter = reader.take("exporter")) {
        if (const toml::table *table = exporter->as_table())
            read_exporter(*table, policy, diagnostics);
        else
            reader.diagnostic(*exporter, "exporter is a table: [exporter]");
    }
    if (const toml::node *rules = reader.take("rule")) {
        if (const toml::array *array = rules->as_array(); array && array->is_array_of_tables())
            read_rules(*array, policy, diagnostics);
        else
            reader.diagnostic(*rules, "each rule is a table in a list: [[rule]]");
    }
    reader.refuse_others();
}

bool is_above_ascii(char byte) {
    return static_cast<unsigned char>(byte) > 0x7f;
}

bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

bool is_above_ascii_at(std::string_view text, toml::source_position place) {
    toml::source_position here{.line = 1, .column = 1};

    for (const char byte : text) {
        if (continues_character(byte))
            continue;
        if (here == place)
            return is_above_ascii(byte);
        here = byte == '\n' ? toml::source_position{.line = here.line + 1, .column = 1}
                            : toml::source_position{here.line, here.column + 1};
    }
    return false;
}

/// Finds a syntax error in a text of valid UTF-8. toml++ 3.3 must not see a character above ASCII
/// outside of strings and comments: in its search for white space it declares most of them
/// unreachable to the compiler. So it parses a text in which '!' replaces them, which is also
/// allowed in strings and comments alone.
std::optional<Diagnostic> mistake_in(std::string_view text, const std::string &file) {
    std::string ascii;

    for (const char byte : text)
        if (!continues_character(byte))
            ascii += is_above_ascii(byte) ? '!' : byte;
    try {
        static_cast<void>(toml::parse(ascii, file));
    } catch (const toml::parse_error &error) {
        return Diagnostic{place_of(error.source()),
                          is_above_ascii_at(text, error.source().begin)
                              ? "such a character may be in strings and comments alone"
                              : printable(error.description())};
    }
    return std::nullopt;
}

/// A key such as "a.b.c" is a table in a table: toml++ goes down into each of them by a call, and
/// of thousands its stack has no end. No key of a policy has more than two parts.
std::optional<Diagnostic> deep_key_in(std::string_view text, const std::string &file) {
    constexpr std::ptrdiff_t most_parts = 64;
    std::uint32_t line = 0;

    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line_text = text.substr(at, end - at);
        const std::string_view key = line_text.substr(0, line_text.find('='));

        ++line;
        if (!key.starts_with('#') && std::ranges::count(key, '.') > most_parts)
            return Diagnostic{{.file = file, .line = line, .column = 1},
                              fmt::format("a key of more than {} parts", most_parts)};
        at = end + 1;
    }
    return std::nullopt;
}

void read_text(std::string_view text, const std::string &file, Policy &policy,
               Diagnostics &diagnostics) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

    if (text.starts_with(byte_order_mark))
        text.remove_prefix(byte_order_mark.size());
    if (const auto deep = deep_key_in(text, file)) {
        diagnostics.push_back(*deep);
        return;
    }
    if (const auto mistake = mistake_in(text, file)) {
        diagnostics.push_back(*mistake);
        return;
    }
    try {
        read_document(toml::parse(text, file), policy, diagnostics);
    } catch (const toml::parse_error &error) {
        diagnostics.push_back({place_of(error.source()), printable(error.description())});
    }
}

/// Returns the policy in the order of matching.
Policy finished(Policy policy, Diagnostics diagnostics) {
    if (!diagnostics.empty())
        throw PolicyError(std::move(diagnostics));
    std::ranges::stable_sort(policy.rules, std::ranges::greater(), &Rule::priority);
    return policy;
}

/// Empty where the pattern fits, or isn't there.
std::string misfit(const char *key, const std::optional<std::string> &pattern,
                   const std::vector<std::string> &texts) {
    if (!pattern || std::ranges::any_of(texts, [&](const std::string &text) {
            return !text.empty() && glob_matches(*pattern, text);
        }))
        return "";
    return fmt::format("{} '{}'", key, *pattern);
}

/// Empty where the owner is what the rule speaks of.
std::string misfit(const Rule &rule, const Owner *owner) {
    const auto is = [&](OwnerKind kind) { return owner != nullptr && owner->kind == kind; };

    if (rule.unit)
        return is(OwnerKind::unit) ? "" : "it is no unit";
    if (rule.container || rule.image)
        return is(OwnerKind::container) ? "" : "it is no container";
    if (rule.pod || rule.name_space)
        return is(OwnerKind::pod) ? "" : "it is no pod";
    // A label may be of either. Of a pod, it is for all of its containers together.
    return is(OwnerKind::pod) || (is(OwnerKind::container) && owner->pod.empty())
               ? ""
               : "it is no pod, and no container outside of one";
}

/// An image as a person may call it: "docker.io/library/redis:7" is also "redis:7" and "redis".
std::vector<std::string> names_of_image(const std::string &image) {
    std::vector<std::string> names{image};

    for (const std::string_view usual : {"docker.io/library/", "docker.io/", "localhost/"}) {
        if (image.starts_with(usual))
            names.push_back(image.substr(usual.size()));
    }
    for (std::size_t i = 0, whole = names.size(); i < whole; ++i) {
        std::string name = names[i].substr(0, names[i].find('@'));
        const auto colon = name.rfind(':');

        names.push_back(name);
        // A registry may have a port.
        if (colon != std::string::npos && name.find('/', colon) == std::string::npos)
            names.push_back(name.substr(0, colon));
    }
    return names;
}

std::string line_of(const Diagnostics &diagnostics) {
    return fmt::format(
        "{}{}", diagnostics.front().line(),
        diagnostics.size() == 1 ? "" : fmt::format(", and {} more", diagnostics.size() - 1));
}

} // namespace

std::string_view name_of(GuardStep step) {
    return guard_steps.at(static_cast<std::size_t>(step)).second;
}

bool GuardPolicy::protects(std::string_view path) const {
    const auto is_it = [&](std::string_view pattern) {
        // A pattern also protects the cgroups below.
        for (std::string_view at = path; at.size() > 1; at = at.substr(0, at.rfind('/'))) {
            if (glob_matches(pattern, at))
                return true;
        }
        return false;
    };

    return std::ranges::any_of(always_protected, is_it) || std::ranges::any_of(protect, is_it);
}

bool GuardPolicy::may_protect_below(std::string_view path) const {
    const std::string below = path == "/" ? "/" : fmt::format("{}/", path);

    return std::ranges::any_of(protect, [&](const std::string &pattern) {
        const std::string plain = pattern.substr(0, pattern.find_first_of("*?"));

        return plain.starts_with(below) || below.starts_with(plain);
    });
}

std::string Place::text() const {
    return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column);
}

std::string Place::line_text() const {
    return line == 0 ? file : fmt::format("{}:{}", file, line);
}

std::string Rule::title() const {
    return name.starts_with("rule ") ? name : fmt::format("rule \"{}\"", name);
}

std::optional<std::string> Rule::drop_ins() const {
    constexpr std::string_view suffix = ".service";

    if (!unit)
        return std::nullopt;
    std::string_view service = *unit;
    if (service.ends_with(suffix))
        service.remove_suffix(suffix.size());
    else if (!service.ends_with('*'))
        return std::nullopt;
    if (service.ends_with("-*") || service.ends_with("@*"))
        service.remove_suffix(1);
    if (service.find_first_of("*?/") != std::string_view::npos)
        return std::nullopt;
    return fmt::format("{}{}.d", service, suffix);
}

const Rule *Policy::match(const Subject &subject) const {
    const auto found =
        std::ranges::find_if(rules, [&](const Rule &rule) { return fit(rule, subject).fits; });

    return found == rules.end() ? nullptr : &*found;
}

RuleOrder Policy::order(std::string_view path, const Rule *rule, std::uint64_t total) const {
    RuleOrder order;

    order.most_keep = containers.keep.value_or(Amount()).of(total);
    if (rule != nullptr) {
        order.asked = rule->change(total);
        order.rule = fmt::format("{}, {}", rule->title(), rule->place.line_text());
    }
    // [machine] holds for the root cgroup, whatever a rule for "/**" says.
    if (path == "/" && view) {
        const auto place = places.find("machine.view");

        order.asked.view = view;
        order.view = place == places.end() ? "" : place->second.line_text();
    }
    return order;
}

MachineOrder Policy::machine_order(std::uint64_t total) const {
    MachineOrder order;

    if (reserve)
        order.asked.reserve = reserve->of(total);
    order.asked.charge_default = charge;
    for_each_machine_setting([&](const auto &setting) {
        const auto place = places.find(fmt::format("machine.{}", setting.policy));

        if (place != places.end())
            order.by[setting.attribute] = fmt::format(
                "{}, {}",
                place->second.file.find("/run/umacct.toml.d/") == std::string::npos ? "[machine]"
                                                                                    : "a person",
                place->second.line_text());
    });
    return order;
}

bool Policy::needs_names() const {
    return std::ranges::any_of(rules, &Rule::needs_name);
}

bool Policy::needs_labels() const {
    return std::ranges::any_of(rules, [](const Rule &rule) { return rule.label.has_value(); });
}

Fit fit(const Rule &rule, const Subject &subject) {
    const Owner *owner = subject.owner;
    std::string why = misfit("cgroup", rule.cgroup, {std::string(subject.path)});

    if (!why.empty())
        return {.fits = false, .why = std::move(why)};
    if (!rule.unit && !rule.needs_name())
        return {.fits = true, .why = {}};

    why = misfit(rule, owner);
    if (!why.empty())
        return {.fits = false, .why = std::move(why)};
    if (subject.inside && !rule.cgroup)
        return {.fits = false,
                .why =
                    "its name was chosen inside a container, service or session; only a rule with "
                    "a 'cgroup' pattern can match it"};
    for (const auto &each : {misfit("unit", rule.unit, {owner->id}),
                             misfit("container", rule.container, {owner->name, owner->container}),
                             misfit("image", rule.image, names_of_image(owner->image)),
                             misfit("pod", rule.pod, {owner->pod}),
                             misfit("namespace", rule.name_space, {owner->kube_namespace}),
                             misfit("label", rule.label, owner->labels)}) {
        if (!each.empty())
            return {.fits = false, .why = each};
    }
    return {.fits = true, .why = {}};
}

bool glob_matches(std::string_view pattern, std::string_view text) {
    // Backtracking: where to resume, one character later, if the part after the last '*' or '**'
    // doesn't fit.
    struct Star {
        std::size_t at = std::string_view::npos;
        std::size_t in = 0;

        bool there() const { return at != std::string_view::npos; }
    };

    std::size_t at = 0;
    std::size_t in = 0;
    Star star;
    Star two_stars;

    while (in < text.size()) {
        const std::string_view rest = pattern.substr(at);

        if (rest.starts_with("**")) {
            at += 2;
            two_stars = {at, in};
            star = {};
        } else if (rest.starts_with('*')) {
            ++at;
            star = {at, in};
        } else if (!rest.empty() &&
                   (rest.front() == text[in] || (rest.front() == '?' && text[in] != '/'))) {
            ++at;
            ++in;
        } else if (star.there() && text[star.in] != '/') {
            at = star.at;
            in = ++star.in;
        } else if (two_stars.there()) {
            at = two_stars.at;
            in = ++two_stars.in;
            star = {};
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

PolicyError::PolicyError(std::vector<Diagnostic> diagnostics)
    : Error(Failure::usage, line_of(diagnostics),
            "'umacct config check' says all, umacct.toml(5) what can be written"),
      diagnostics_(std::move(diagnostics)) {}

std::string Diagnostic::line() const {
    return fmt::format("{}: {}", place.text(), text);
}

std::vector<std::filesystem::path> policy_files(const std::filesystem::path &root) {
    std::vector<std::filesystem::path> files;
    std::error_code error;

    for (const char *name : {"run/umacct.toml.d", "etc/umacct.toml.d"}) {
        const std::filesystem::path folder = root / name;
        const auto first = static_cast<std::ptrdiff_t>(files.size());

        for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
             at.increment(error)) {
            if (at->path().extension() == ".toml")
                files.push_back(at->path());
        }
        // A folder that can't be listed is a policy that can't be read, not one without drop-ins;
        // one that may not be listed is no business of the caller's.
        if (error && error != std::errc::no_such_file_or_directory &&
            error != std::errc::permission_denied)
            files.push_back(folder / "");
        std::sort(files.begin() + first, files.end());
        // A link to what isn't mounted is a policy that can't be read, not one that there isn't.
        if (is_symlink(symlink_status(folder, error)) && !exists(folder, error))
            files.push_back(folder);
    }
    if (symlink_status(root / "etc/umacct.toml", error).type() !=
        std::filesystem::file_type::not_found)
        files.push_back(root / "etc/umacct.toml");
    return files;
}

std::vector<PolicyText> read_texts(const std::vector<std::filesystem::path> &files) {
    std::vector<PolicyText> texts;

    texts.reserve(files.size());
    for (const auto &file : files) {
        std::ifstream in(file);
        std::ostringstream text;
        const bool is_read =
            in && (in.peek() == std::ifstream::traits_type::eof() ? !in.bad()
                                                                  : !(text << in.rdbuf()).fail());

        texts.push_back({.file = file, .text = is_read ? std::optional(text.str()) : std::nullopt});
    }
    return texts;
}

Policy read_policy(const std::vector<PolicyText> &texts) {
    Policy policy;
    Diagnostics diagnostics;

    for (const auto &[file, text] : texts) {
        if (text)
            read_text(*text, file.string(), policy, diagnostics);
        else
            diagnostics.push_back({{.file = file.string()}, "cannot read it"});
    }
    return finished(std::move(policy), std::move(diagnostics));
}

Policy read_policy(const std::vector<std::filesystem::path> &files) {
    return read_policy(read_texts(files));
}

Policy read_policy(const std::string &text, const std::string &name) {
    Policy policy;
    Diagnostics diagnostics;

    read_text(text, name, policy, diagnostics);
    return finished(std::move(policy), std::move(diagnostics));
}

} // namespace umacct
