// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/mountinfo.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <sstream>
#include <utility>

#include <sys/sysmacros.h>

#include "lib/host/path.h"

namespace umacct {

namespace {

/// Undoes mountinfo's \040 for a space and its like.
std::string unescape(std::string_view text) {
    std::string result;

    for (std::size_t i = 0; i < text.size(); ++i) {
        int code = 0;
        const bool escaped =
            text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr ==
                text.data() + i + 4;

        if (escaped)
            i += 3;
        result += escaped ? static_cast<char>(code) : text[i];
    }
    return result;
}

} // namespace

bool Mount::answers(const Trust &trust) const {
    // These have no device of their own, and no server either.
    static constexpr std::array own{
        std::string_view{"tmpfs"},  std::string_view{"ramfs"}, std::string_view{"devtmpfs"},
        std::string_view{"rootfs"}, std::string_view{"btrfs"}, std::string_view{"zfs"},
        std::string_view{"sysfs"},  std::string_view{"proc"},  std::string_view{"bcachefs"},
    };

    if (trust.root && point == "/")
        return true;
    if (type == "overlay")
        return trust.overlays;
    // A program's has its device, and may say what it is: "fuseblk.ntfs".
    return std::ranges::find(own, type) != own.end() ||
           (major(device) != 0 && type != "fuseblk" && !type.starts_with("fuseblk."));
}

std::vector<Mount> read_mounts(std::istream &mountinfo) {
    std::vector<Mount> mounts;

    for (std::string line; std::getline(mountinfo, line);) {
        // id parent major:minor root mount-point options [optional...] - type source options
        std::istringstream words(line);
        std::vector<std::string> fields;

        for (std::string word; words >> word;)
            fields.push_back(word);
        const auto dash = std::find(fields.begin(), fields.end(), "-");
        if (fields.size() < 5 || std::distance(dash, fields.end()) < 2)
            continue;

        Mount mount;
        unsigned major_number = 0;
        unsigned minor_number = 0;
        char colon = 0;
        std::istringstream(fields[0]) >> mount.id;
        std::istringstream(fields[2]) >> major_number >> colon >> minor_number;
        mount.device = makedev(major_number, minor_number);
        mount.root = unescape(fields[3]);
        mount.point = unescape(fields[4]);
        mount.type = dash[1];
        if (std::distance(dash, fields.end()) > 3)
            mount.options = dash[3];
        mounts.push_back(std::move(mount));
    }
    return mounts;
}

const Mount *mount_of(const std::vector<Mount> &mounts, const std::filesystem::path &path,
                      const Trust &trust) {
    const Mount *found = nullptr;
    bool answers = true;
    bool has_root = trust.root;

    for (const Mount &mount : mounts) {
        if (path != mount.point && !is_below(path.string(), mount.point.string()))
            continue;
        has_root = has_root || mount.point == "/";
        answers = answers && mount.answers(trust);
        // The later of two mounts at one place is visible.
        if (found == nullptr || !is_below(found->point.string(), mount.point.string()))
            found = &mount;
    }
    return answers && has_root ? found : nullptr;
}

} // namespace umacct
