// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/text.h"

#include <fmt/format.h>
#include <pwd.h>

#include "lib/text.h"
#include "lib/units.h"

namespace umacct::tool {

std::string display_path(const Owners &owners, std::string_view path) {
    for (std::string at(path); at != "/"; at = parent_path(at)) {
        const auto owner = owners.of(at);

        if (owner && owner->kind != OwnerKind::unit)
            return printable(owner->label() + std::string(path.substr(at.size())));
    }
    return printable(path);
}

std::string name_and_path(const Owners &owners, std::string_view path) {
    const std::string shown = display_path(owners, path);
    const std::string whole = printable(path);

    return shown == whole ? whole : fmt::format("{} ({})", shown, whole);
}

std::string with_name(std::string text, std::string_view path, std::string_view name) {
    const std::size_t at = path.size() > 1 ? text.find(path) : std::string::npos;

    // A cgroup below it has another name.
    if (at != std::string::npos &&
        (at + path.size() == text.size() ||
         std::string_view(": ,;").find(text[at + path.size()]) != std::string_view::npos))
        text.replace(at, path.size(), name);
    return text;
}

std::string counted(std::uint64_t count, const char *one, const char *many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string short_name(const Owners &owners, std::string_view path) {
    const auto owner = owners.of(path);

    // The only named units are systemd-nspawn's machines.
    if (owner && owner->kind == OwnerKind::unit && !owner->name.empty())
        return fmt::format("machine {}", printable(owner->name));
    if (!owner || owner->kind == OwnerKind::unit)
        return printable(base_name(path));
    if (!owner->container.empty())
        return fmt::format("{} {}", owner->runtime, printable(owner->container));
    return printable(owner->label());
}

std::string name_of_user(uid_t uid) {
    const passwd *entry = getpwuid(uid);

    return entry == nullptr ? std::to_string(uid) : printable(entry->pw_name);
}

std::string format_known(const std::optional<std::uint64_t> &bytes) {
    if (!bytes)
        return "-";
    return *bytes == UMACCT_UNLIMITED ? "max" : format_size(*bytes);
}

std::string size_or_unknown(const std::optional<std::uint64_t> &bytes) {
    return bytes ? format_size(*bytes) : "unknown";
}

std::string reserve_text(const Status &status, std::string (*size)(std::uint64_t bytes)) {
    return !status.tells_all()   ? "not visible to you"
           : status.reserve == 0 ? "off"
                                 : size(status.reserve);
}

} // namespace umacct::tool
