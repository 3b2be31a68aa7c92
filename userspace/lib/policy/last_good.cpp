// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/last_good.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct {

namespace {

namespace fs = std::filesystem;

fs::path with(fs::path folder, const char *suffix) {
    folder += suffix;
    return folder;
}

} // namespace

// The folder is the service's (StateDirectory=).
LastGood::LastGood(const fs::path &root) : folder_(root / "var/lib/umacctd/policy") {}

void LastGood::keep(const std::vector<fs::path> &files) const {
    const fs::path next = with(folder_, ".new");
    const fs::path last = with(folder_, ".old");
    std::error_code error;

    fs::remove_all(next, error);
    if (!fs::create_directories(next, error))
        return;
    // Their order is kept: the first that says something wins.
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (!fs::copy_file(files[i],
                           next / fmt::format("{:04}-{}", i, files[i].filename().string()), error))
            return;
    }
    fs::remove_all(last, error);
    fs::rename(folder_, last, error);
    fs::rename(next, folder_, error);
}

std::optional<Policy> LastGood::policy() const {
    // Between two renames there is only the one before.
    for (const fs::path &folder : {folder_, with(folder_, ".old")}) {
        std::error_code error;
        std::vector<fs::path> files;

        for (fs::directory_iterator at(folder, error), end; !error && at != end;
             at.increment(error))
            files.push_back(at->path());
        if (error)
            continue;
        std::ranges::sort(files);
        try {
            return read_policy(files);
        } catch (const Error &) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

} // namespace umacct
