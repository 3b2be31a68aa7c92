// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/target.h"

#include <charconv>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct {

namespace {

constexpr std::size_t shortest_prefix = 4;
constexpr std::size_t matches_shown = 5;
constexpr const char *target_hint =
    "TARGET is a cgroup path, a systemd unit, a container's name or id (or its beginning), "
    "NAMESPACE/POD[/CONTAINER] or a pid; 'umacct ls --all' lists what there is";

std::optional<std::uint32_t> as_pid(std::string_view text) {
    std::uint32_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);

    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return pid;
}

[[noreturn]] void throw_no_cgroup(std::string_view text) {
    throw Error(Failure::failed,
                fmt::format("TARGET '{}': there is no such cgroup{}", text,
                            as_pid(text) ? " or process" : ""),
                target_hint);
}

Target at_path(std::string_view text, std::string path, const Cgroups &cgroups) {
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    if (!cgroups.exists(path))
        throw_no_cgroup(text);
    return {.path = path, .id = cgroups.id(path), .pid = {}};
}

std::string absolute_path(std::string_view text, const Cgroups &cgroups) {
    if (const auto below_mount = cgroups.path_of(text); below_mount && cgroups.exists(*below_mount))
        return *below_mount;
    return std::filesystem::path(text).lexically_normal().string();
}

std::string directory_path(std::string_view text, const Cgroups &cgroups) {
    const auto path = cgroups.path_of(std::filesystem::absolute(text));

    if (!path)
        throw Error(Failure::failed,
                    fmt::format("TARGET '{}' is not a directory of the cgroup file system ({})",
                                text, cgroups.mount().point.string()),
                    "leave out the './' to name a cgroup from the root of the hierarchy");
    return *path;
}

/// The id is a number that nobody chose. containerd lets its users choose.
bool has_number(const Owner &owner) {
    return owner.kind == OwnerKind::pod || is_container_id(owner.id);
}

bool matches(const Owner &owner, std::string_view text) {
    if (owner.kind == OwnerKind::unit)
        return owner.id == text || owner.id == fmt::format("{}.service", text);
    if (text.size() >= shortest_prefix && has_number(owner) && owner.id.starts_with(text))
        return true;
    // Of a pod's containers those that aren't known by name of their own are not the pod.
    const bool named =
        owner.kind == OwnerKind::pod || owner.pod.empty() || !owner.container.empty();
    return owner.id == text || (named && owner.full_name() == text) || owner.container == text ||
           (owner.kind == OwnerKind::pod && owner.pod == text);
}

/// "/system.slice/docker-4f5a….scope (docker vllm)"
std::string candidate(const std::string &path, const Owner &owner) {
    return owner.full_name().empty() || owner.kind == OwnerKind::unit
               ? path
               : fmt::format("{} ({})", path, owner.label());
}

std::string by_name(std::string_view text, const Cgroups &cgroups, const Owners &owners) {
    std::vector<std::pair<std::string, Owner>> found;
    std::vector<std::string> by_id;

    cgroups.for_each([&](const std::string &path) {
        const auto owner = owners.of(path);

        if (!owner || !matches(*owner, text))
            return;
        found.emplace_back(path, *owner);
        if (owner->id == text && has_number(*owner))
            by_id.push_back(path);
    });
    if (found.empty())
        throw_no_cgroup(text);
    // Nobody can take a full id away from its container by a name of that kind.
    if (by_id.size() == 1)
        return by_id.front();
    if (found.size() > 1) {
        std::string list;
        for (std::size_t i = 0; i < found.size() && i < matches_shown; ++i)
            list +=
                fmt::format("{}{}", i == 0 ? "" : ", ", candidate(found[i].first, found[i].second));
        throw Error(Failure::failed,
                    fmt::format("TARGET '{}' names {} cgroups: {}{}", text, found.size(), list,
                                found.size() > matches_shown ? ", ..." : ""),
                    "write the path of the one you mean, its full name, or more of its id");
    }
    return found.front().first;
}

} // namespace

Target resolve_target(std::string_view text, const Cgroups &cgroups, const Owners &owners) {
    if (text.empty())
        throw Error(Failure::usage, "TARGET is empty", target_hint);
    if (const auto pid = as_pid(text)) {
        if (const auto path = cgroups.of_pid(*pid)) {
            Target target = at_path(text, *path, cgroups);
            target.pid = pid;
            return target;
        }
    }
    if (text == "." || text == ".." || text.starts_with("./") || text.starts_with("../"))
        return at_path(text, directory_path(text, cgroups), cgroups);
    if (text.starts_with('/'))
        return at_path(text, absolute_path(text, cgroups), cgroups);
    if (const std::string path = absolute_path(join_path("/", text), cgroups); cgroups.exists(path))
        return at_path(text, path, cgroups);
    return at_path(text, by_name(text, cgroups, owners), cgroups);
}

} // namespace umacct
