// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/owners/no_such_target.h"

namespace umacct {

namespace {

constexpr std::size_t shortest_prefix = 4;
constexpr std::size_t matches_shown = 5;
constexpr const char *target_hint =
    "what is not running has no cgroup; TARGET is a cgroup path, a systemd unit, a container's "
    "name "
    "or id (or its beginning), a machine's name, NAMESPACE/POD[/CONTAINER] or a pid, with 'path:', "
    "'unit:', 'container:', 'pod:' or 'pid:' "
    "before it where that is in doubt; 'umacct audit' lists every container, systemd-cgls every "
    "cgroup";

/// Kind that the user named.
enum class Kind { any, path, owner, pid };

struct Prefix {
    std::string_view text;
    Kind kind;
    const char *what; ///< kind that there is none of
    std::optional<OwnerKind> owner = {};
};

constexpr std::array target_prefixes{
    Prefix{"path:", Kind::path, "cgroup"},
    Prefix{"unit:", Kind::owner, "unit", OwnerKind::unit},
    Prefix{"container:", Kind::owner, "container", OwnerKind::container},
    Prefix{"pod:", Kind::owner, "pod", OwnerKind::pod},
    Prefix{"pid:", Kind::pid, "process"},
    Prefix{"", Kind::any, "cgroup"}};

struct Word {
    std::string_view all;  ///< word as it was written
    std::string_view text; ///< word without its prefix
    const Prefix &prefix;
};

Word read_word(std::string_view all) {
    const auto *prefix = std::ranges::find_if(
        target_prefixes, [all](const Prefix &each) { return all.starts_with(each.text); });

    return {.all = all, .text = all.substr(prefix->text.size()), .prefix = *prefix};
}

bool is_number(std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
}

[[noreturn]] void throw_no(std::string_view word, const char *what,
                           const std::string &hint = target_hint) {
    throw NoSuchTarget(Failure::failed, fmt::format("TARGET '{}': there is no such {}", word, what),
                       hint);
}

Target at_path(const Word &word, std::string path, const Cgroups &cgroups) {
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    if (!cgroups.exists(path))
        throw_no(word.all, "cgroup");
    return {.path = path, .id = cgroups.id(path), .pid = {}};
}

std::string absolute_path(std::string_view text, const Cgroups &cgroups) {
    if (const auto below_mount = cgroups.path_of(text); below_mount && cgroups.exists(*below_mount))
        return *below_mount;
    return std::filesystem::path(text).lexically_normal().string();
}

std::string directory_path(const Word &word, const Cgroups &cgroups) {
    const auto path = cgroups.path_of(std::filesystem::absolute(word.text));

    if (!path)
        throw Error(Failure::failed,
                    fmt::format("TARGET '{}' is not a directory of the cgroup file system ({})",
                                word.all, cgroups.mount().point.string()),
                    "leave out the './' to name a cgroup from the root of the hierarchy");
    return *path;
}

/// Empty for a word that isn't a path, or names no cgroup where it need not be one.
std::optional<Target> by_path(const Word &word, const Cgroups &cgroups) {
    const std::string_view text = word.text;

    if (text == "." || text == ".." || text.starts_with("./") || text.starts_with("../"))
        return at_path(word, directory_path(word, cgroups), cgroups);
    if (text.starts_with('/'))
        return at_path(word, absolute_path(text, cgroups), cgroups);
    const std::string path = absolute_path(join_path("/", text), cgroups);
    if (word.prefix.kind == Kind::path || cgroups.exists(path))
        return at_path(word, path, cgroups);
    return std::nullopt;
}

/// Empty where there is no such process.
std::optional<Target> by_pid(const Word &word, const Cgroups &cgroups) {
    std::uint32_t pid = 0;
    const char *end = word.text.data() + word.text.size();
    const auto read = std::from_chars(word.text.data(), end, pid);
    const auto path =
        read.ec == std::errc() && read.ptr == end ? cgroups.of_pid(pid) : std::nullopt;

    if (!path || !cgroups.exists(*path))
        return std::nullopt;
    return Target{.path = *path, .id = cgroups.id(*path), .pid = pid, .found = FoundBy::pid};
}

/// Random ids of runtimes; containerd lets its users choose.
bool has_number(const Owner &owner) {
    return owner.kind == OwnerKind::pod || is_container_id(owner.id);
}

bool is_named(const Owner &owner, std::string_view text) {
    // Containers without a name of their own are not their pod.
    const bool named =
        owner.kind == OwnerKind::pod || owner.pod.empty() || !owner.container.empty();

    return (owner.id == text && !has_number(owner)) || (named && owner.full_name() == text) ||
           owner.container == text || (owner.kind == OwnerKind::pod && owner.pod == text);
}

/// How the word means this owner, if it does.
std::optional<FoundBy> matches(const Owner &owner, const Word &word) {
    // A machine of systemd-nspawn's is a container, too.
    const bool is_machine =
        owner.kind == OwnerKind::unit && !owner.name.empty() &&
        word.prefix.owner.value_or(OwnerKind::container) == OwnerKind::container;

    if (is_machine && owner.name == word.text)
        return FoundBy::name;
    if (owner.kind != word.prefix.owner.value_or(owner.kind))
        return std::nullopt;
    if (owner.kind == OwnerKind::unit) {
        if (owner.id == word.text || owner.id == fmt::format("{}.service", word.text))
            return FoundBy::unit;
        return std::nullopt;
    }
    if (is_named(owner, word.text))
        return FoundBy::name;
    if (word.text.size() >= shortest_prefix && has_number(owner) && owner.id.starts_with(word.text))
        return FoundBy::id;
    return std::nullopt;
}

struct Match {
    std::string path;
    Owner owner;
    FoundBy found;
    bool inside;
    bool exact; ///< a full id: no other container's name takes precedence

    /// The best match comes first.
    auto rank() const { return std::tuple(inside, !exact, found); }
};

/// The best matches.
std::vector<Match> by_owner(const Word &word, const Cgroups &cgroups, const Owners &owners) {
    std::vector<Match> best;

    cgroups.for_each([&](const std::string &path) {
        // A unit's name is in its path: no container's files are read for it.
        const auto owner = word.prefix.owner == OwnerKind::unit ? owner_of(path) : owners.of(path);
        const auto found = owner ? matches(*owner, word) : std::nullopt;

        if (!found)
            return;
        Match match{.path = path,
                    .owner = *owner,
                    .found = *found,
                    .inside = is_made_inside(path, owners),
                    .exact = owner->id == word.text && has_number(*owner)};
        if (!best.empty() && match.rank() > best.front().rank())
            return;
        if (!best.empty() && match.rank() < best.front().rank())
            best.clear();
        best.push_back(std::move(match));
    });
    return best;
}

/// "/system.slice/docker-4f5a….scope (docker vllm)"
std::string candidate(const Match &match) {
    return match.owner.full_name().empty() || match.owner.kind == OwnerKind::unit
               ? match.path
               : fmt::format("{} ({})", match.path, match.owner.label());
}

[[noreturn]] void throw_several(const Word &word, const std::vector<Match> &matches) {
    std::string list;

    for (std::size_t i = 0; i < matches.size() && i < matches_shown; ++i)
        list += fmt::format("{}{}", i == 0 ? "" : ", ", candidate(matches[i]));
    throw Error(Failure::failed,
                fmt::format("TARGET '{}' names {} cgroups: {}{}", word.all, matches.size(), list,
                            matches.size() > matches_shown ? ", ..." : ""),
                "write the path of the one you mean, its full name, or more of its id");
}

/// A number is a process, unless it could be something else. Empty where it is that alone.
std::optional<Target> by_number(const Word &word, const std::vector<Match> &matches,
                                const Cgroups &cgroups) {
    auto process = by_pid(word, cgroups);

    if (matches.empty() && !process)
        throw_no(word.all, "cgroup or process");
    if (matches.empty())
        return process;

    const Match &match = matches.front();
    const char *kind = match.owner.kind == OwnerKind::pod ? "pod" : "container";
    if (process)
        throw Error(Failure::failed,
                    fmt::format("TARGET '{}' is a process, in {}, and {} of {}", word.all,
                                process->path,
                                match.found == FoundBy::id ? "the beginning of the id" : "the name",
                                candidate(match)),
                    fmt::format("write pid:{0} or {1}:{0}", word.text, kind));
    if (match.found == FoundBy::id && !match.exact)
        throw_no(word.all, "cgroup or process",
                 fmt::format("for {}, whose id begins so, write {}:{}", candidate(match), kind,
                             word.text));
    return std::nullopt;
}

} // namespace

Target resolve_target(std::string_view text, const Cgroups &cgroups, const Owners &owners) {
    const Word word = read_word(text);
    const Kind kind = word.prefix.kind;
    const char *what = word.prefix.what;

    if (word.text.empty())
        throw Error(Failure::usage,
                    text.empty() ? "TARGET is empty"
                                 : fmt::format("TARGET '{}' names no {}", text, what),
                    target_hint);
    if (kind == Kind::any || kind == Kind::path) {
        if (const auto target = by_path(word, cgroups))
            return *target;
    }
    if (kind == Kind::pid) {
        if (const auto target = by_pid(word, cgroups))
            return *target;
        throw_no(text, what);
    }

    const std::vector<Match> matches = by_owner(word, cgroups, owners);
    if (kind == Kind::any && is_number(word.text)) {
        if (const auto target = by_number(word, matches, cgroups))
            return *target;
    }
    if (matches.empty())
        throw_no(text, what);
    if (matches.size() > 1)
        throw_several(word, matches);
    return {.path = matches.front().path,
            .id = cgroups.id(matches.front().path),
            .pid = {},
            .found = matches.front().found};
}

} // namespace umacct
