// SPDX-License-Identifier: GPL-2.0-or-later
/// Paths of cgroups, which tenants name, and the list of mounts.
#include "lib/host/cgroup.h"

#include <algorithm>
#include <sstream>

#include "lib/host/meminfo.h"
#include "lib/owners/owner.h"
#include "lib/text.h"
#include "tests/fuzz/fuzz.h"

using namespace umacct;

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const std::string text = fuzz::text_of(data, size);
    const std::string path = "/" + text;
    std::istringstream lines(text);
    const std::string safe = printable(text);

    fuzz::expect(printable(safe) == safe, "what is safe stays");
    fuzz::expect(safe.size() <= text.size(), "nothing is added");
    for (const char c : safe)
        fuzz::expect(static_cast<unsigned char>(c) >= ' ' && c != '\x7f', "no control characters");
    if (const auto owner = owner_of(path)) {
        fuzz::expect(!owner->id.empty() && !owner->label().empty(), "an owner has an id");
        // systemd writes the dashes of a pod's id as "_".
        std::string dashed = path;
        std::ranges::replace(dashed, '_', '-');
        fuzz::expect(dashed.find(owner->id.substr(0, 8)) != std::string::npos ||
                         path.find(owner->id.substr(0, 8)) != std::string::npos,
                     "from the path");
    }
    user_of(path);
    fuzz::expect(parent_path(path).starts_with('/'), "a parent is a path");
    fuzz::expect(parent_path(join_path(path, "x")) == path, "a child's parent");
    if (const auto mount = CgroupMount::find(lines))
        fuzz::expect(text.find("cgroup2") != std::string::npos, "cgroup v2's alone");
    fuzz::may_refuse([&] {
        std::istringstream again(text);

        Meminfo{again}.available();
    });
    return 0;
}
