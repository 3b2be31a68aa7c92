// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/protection.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <unordered_map>

#include "lib/arithmetic.h"
#include "lib/host/cgroup_tree.h"

namespace umacct {

namespace {

std::uint64_t share(std::uint64_t whole, std::uint64_t part, std::uint64_t of) {
    return static_cast<std::uint64_t>(static_cast<double>(whole) * static_cast<double>(part) /
                                      static_cast<double>(of));
}

/// A cgroup on the way down, with what those directly below it have together.
struct Node {
    const MemoryUse *use = nullptr;
    std::size_t parent = 0; ///< the root is the first
    std::uint64_t children_protected = 0;
    std::uint64_t children_cache = 0;
    std::uint64_t effective = 0;
    std::string by;
    std::uint64_t obtainable = 0; ///< page cache that those below it give back
};

/// See mm/page_counter.c; protection beyond the usage changes nothing.
std::uint64_t effective_protection(const Node &node, const Node &parent, bool recursive) {
    const std::uint64_t claimed = std::min(node.use->usage, node.use->min);

    if (parent.use == nullptr)
        return claimed;
    if (parent.children_protected > parent.effective)
        return share(claimed, parent.effective, parent.children_protected);
    if (!recursive || parent.effective <= parent.children_protected ||
        parent.use->usage <= parent.children_protected || node.use->usage <= claimed)
        return claimed;
    return claimed + share(parent.effective - parent.children_protected, node.use->usage - claimed,
                           parent.use->usage - parent.children_protected);
}

} // namespace

Protection::Protection(const std::vector<MemoryUse> &cgroups, bool recursive) {
    std::vector<Node> nodes(1);
    std::unordered_map<std::string_view, std::size_t> places{{"/", 0}};

    for (const MemoryUse &use : cgroups) {
        // A parent without the controller has no figures.
        const auto parent = places.find(parent_path(use.path));

        if (parent == places.end())
            continue;
        Node &above = nodes[parent->second];
        above.children_protected += std::min(use.usage, use.min);
        above.children_cache += use.cache;
        places.emplace(use.path, nodes.size());
        nodes.push_back({.use = &use, .parent = parent->second, .by = {}});
    }
    for (std::size_t i = 1; i < nodes.size(); ++i) {
        Node &node = nodes[i];
        const Node &parent = nodes[node.parent];

        node.effective = effective_protection(node, parent, recursive);
        node.by = node.use->min > 0 ? node.use->path : parent.by;
    }
    // Bottom up, as memory that those below give back is no longer used above.
    for (std::size_t i = nodes.size(); i-- > 1;) {
        Node &node = nodes[i];
        const std::uint64_t own = without(node.use->cache, node.children_cache);
        const std::uint64_t given =
            std::min(own, without(node.use->usage, node.effective + node.obtainable));

        nodes[node.parent].obtainable += node.obtainable + given;
        if (node.effective > 0 && own > given)
            list_.push_back({.path = node.use->path, .bytes = own - given, .by = node.by});
    }
}

Protection Protection::read(const Cgroups &cgroups) {
    std::vector<MemoryUse> uses;
    const std::function<void(const std::string &, const std::filesystem::path &)> visit =
        [&](const std::string &path, const std::filesystem::path &directory) {
            std::error_code ignored;

            for (const std::string &name : folders_in(directory, ignored)) {
                const std::string child = join_path(path, name);
                const auto usage = cgroups.number(child, "memory.current");
                const auto min = cgroups.number(child, "memory.min");

                // Most machines have none on the first level, and then there is none below.
                if (!usage || !min || (path == "/" && *min == 0))
                    continue;
                auto stat = cgroups.keyed(child, "memory.stat");
                uses.push_back({.path = child,
                                .usage = *usage,
                                .min = *min,
                                .cache = stat["active_file"] + stat["inactive_file"]});
                visit(child, directory / name);
            }
        };

    if (const auto root = cgroups.directory("/"))
        visit("/", *root);
    return uses.empty() ? Protection() : Protection(uses, cgroups.mount().recursive_protection);
}

std::uint64_t Protection::below(std::string_view path) const {
    std::uint64_t bytes = 0;

    for (const ProtectedCache &each : list_) {
        if (is_below(each.path, path))
            bytes += each.bytes;
    }
    return bytes;
}

std::string Protection::most() const {
    std::map<std::string, std::uint64_t> by;

    for (const ProtectedCache &each : list_)
        by[each.by] += each.bytes;
    const auto first =
        std::ranges::max_element(by, {}, [](const auto &each) { return each.second; });
    return first == by.end() ? "" : first->first;
}

} // namespace umacct
