// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/tenant.h"

#include <fstream>
#include <string>

#include "lib/owners/identity.h"
#include "lib/owners/owner.h"

namespace umacct {

namespace {

bool is_container(const Cgroups &cgroups, std::string_view path) {
    const auto owner = owner_of(path);

    return (owner && owner->kind == OwnerKind::container) || has_kept_owner(cgroups, path);
}

} // namespace

bool is_tenants(const Cgroups &cgroups, std::string_view path) {
    for (std::string at(path); at != "/"; at = parent_path(at)) {
        const std::string_view name = base_name(at);
        const auto folder = folder_of(cgroups, at);

        // A system in a system, wherever its tree is.
        if (name.starts_with("lxc.payload") || name.starts_with("lxc.monitor") ||
            (folder && folder->owner != 0) || is_container(cgroups, at))
            return true;
    }
    return false;
}

std::string_view tenant_of(std::string_view path) {
    const auto second = path.find('/', 1);

    return path.substr(0, second == std::string_view::npos ? second : path.find('/', second + 1));
}

bool is_whole(const Cgroups &cgroups, std::string_view path) {
    const std::string_view name = base_name(path);

    if (is_container(cgroups, path))
        return true;
    const auto owner = owner_of(path);
    return owner && owner->kind == OwnerKind::unit && !name.starts_with("user@") &&
           (name.ends_with(".service") || name.ends_with(".scope"));
}

bool is_tenants_group(std::string_view path, const CgroupFolder &folder) {
    const std::string_view name = base_name(path);
    const auto owner = owner_of(path);

    return folder.owner != 0 || name.starts_with("user@") ||
           (name.starts_with("user-") && name.ends_with(".slice")) ||
           (owner && owner->kind == OwnerKind::pod);
}

bool is_tenants_unit(const Cgroups &cgroups, const std::string &path, const CgroupFolder &folder,
                     bool has_memory) {
    const auto directory = cgroups.directory(path);

    if (folder.owner == 0 || !directory)
        return false;
    if (folder.is_leaf)
        return true;
    if (!has_memory)
        return cgroups.read(path, "cgroup.procs").has_value();

    std::ifstream given(*directory / "cgroup.subtree_control");
    if (!given)
        return false;
    for (std::string name; given >> name;) {
        if (name == "memory")
            return false;
    }
    return true;
}

Preference preference_of(const Cgroups &cgroups, const std::string &path) {
    const bool tenants = is_tenants(cgroups, path);
    const auto is_set = [&](const std::string &name) {
        const auto has = [&](const std::string &space) {
            const auto value = attribute_of(cgroups, path, (space + name).c_str());

            return value && (*value == "1" || *value == "yes" || *value == "true");
        };

        return has("trusted.") || (!tenants && has("user."));
    };

    if (is_set("oomd_omit"))
        return Preference::omit;
    return is_set("oomd_avoid") ? Preference::avoid : Preference::none;
}

} // namespace umacct
