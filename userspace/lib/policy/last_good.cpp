// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/last_good.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/host/umacctd.h"

namespace umacct {

namespace {

namespace fs = std::filesystem;

fs::path with(fs::path folder, const char *suffix) {
    folder += suffix;
    return folder;
}

/// Their order is kept: the first that says something wins.
std::string kept_name(std::size_t at, const fs::path &file) {
    return fmt::format("{:04}-{}", at, file.filename().string());
}

/// Empty where it can't be read.
std::optional<std::string> text_of(const fs::path &file) {
    std::ifstream in(file, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});

    return in.is_open() && !in.bad() ? std::optional(std::move(text)) : std::nullopt;
}

bool is_running(const fs::path &root) {
    try {
        return Instance::running(root).has_value();
    } catch (const Error &) {
        return false;
    }
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
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (!fs::copy_file(files[i], next / kept_name(i, files[i]), error))
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

bool LastGood::is_of(const std::vector<fs::path> &files) const {
    std::error_code error;
    std::size_t kept = 0;

    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
        ++kept;
    if (error || kept != files.size())
        return false;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto text = text_of(files[i]);

        if (!text || text != text_of(folder_ / kept_name(i, files[i])))
            return false;
    }
    return true;
}

PolicyInForce policy_in_force(const fs::path &root) {
    const std::vector<fs::path> files = policy_files(root);
    const LastGood last(root);

    if (is_running(root) && !last.is_of(files)) {
        if (auto policy = last.policy())
            return {.policy = std::move(*policy), .differs = true};
    }
    return {.policy = read_policy(files)};
}

} // namespace umacct
