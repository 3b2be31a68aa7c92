// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/last_good.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "lib/host/replace_file.h"
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

/// Names that no drop-in has, which ends in ".toml".
constexpr const char *mount_mark = "mount";

bool is_running(const fs::path &root) {
    try {
        return Instance::running(root).has_value();
    } catch (const Error &) {
        return false;
    }
}

} // namespace

// The folder is the service's (StateDirectory=).
LastGood::LastGood(const fs::path &root) : root_(root), folder_(root / kept_policy) {}

bool LastGood::is_drop_in(const fs::path &file) const {
    return file.parent_path() == root_ / "etc/umacct.toml.d";
}

bool LastGood::has_mount() const {
    struct stat folder {};

    struct stat above {};

    return stat((root_ / "etc/umacct.toml.d").c_str(), &folder) == 0 &&
           stat((root_ / "etc").c_str(), &above) == 0 && folder.st_dev != above.st_dev;
}

std::vector<PolicyText> LastGood::to_keep(const std::vector<PolicyText> &texts) const {
    std::vector<PolicyText> kept;

    for (const PolicyText &each : texts) {
        if (each.file.parent_path() != root_ / "run/umacct.toml.d")
            kept.push_back(
                {.file = folder_ / kept_name(kept.size(), each.file), .text = each.text});
    }
    return kept;
}

std::vector<PolicyText> LastGood::kept() const {
    // Only the one before is there between two renames.
    for (const fs::path &folder : {folder_, with(folder_, ".old")}) {
        std::error_code error;
        std::vector<fs::path> files;

        for (fs::directory_iterator at(folder, error), end; !error && at != end;
             at.increment(error)) {
            if (at->path().filename() != mount_mark)
                files.push_back(at->path());
        }
        if (error)
            continue;
        std::ranges::sort(files);
        return read_texts(files);
    }
    return {};
}

int LastGood::keep(const std::vector<PolicyText> &texts) const {
    const fs::path mark = root_ / policy_not_kept;
    std::error_code ignored;

    if (fs::exists(folder_, ignored) && is_of(texts) && !is_outdated() &&
        has_mount() == fs::exists(folder_ / mount_mark, ignored))
        return 0;
    const int code = write(texts);

    if (code == 0) {
        fs::remove(mark, ignored);
    } else {
        fs::create_directories(mark.parent_path(), ignored);
        static_cast<void>(replace_file(mark, ""));
    }
    return code;
}

bool LastGood::is_outdated() const {
    std::error_code ignored;

    return fs::exists(root_ / policy_not_kept, ignored);
}

int LastGood::write(const std::vector<PolicyText> &texts) const {
    const fs::path next = with(folder_, ".new");
    const fs::path last = with(folder_, ".old");
    std::error_code error;

    fs::remove_all(next, error);
    fs::create_directories(next, error);
    if (error)
        return error.value();
    // A whole one is there after a power cut: this, or the one before.
    for (const PolicyText &each : to_keep(texts)) {
        if (const int code = replace_file(next / each.file.filename(), each.text.value_or("")))
            return code;
    }
    if (has_mount()) {
        if (const int code = replace_file(next / mount_mark, ""))
            return code;
    }
    fs::remove_all(last, error);
    if (fs::exists(folder_, error)) {
        if (const int code = rename_path(folder_, last))
            return code;
    }
    return rename_path(next, folder_);
}

std::optional<Policy> LastGood::policy(const fs::path &without) const {
    std::vector<PolicyText> texts = read_texts(policy_files(root_));
    std::vector<PolicyText> kept = this->kept();
    std::error_code error;

    if (kept.empty() && !fs::exists(folder_, error))
        return std::nullopt;
    std::erase_if(texts, [&](const PolicyText &each) {
        return each.file.parent_path() != root_ / "run/umacct.toml.d" || each.file == without;
    });
    texts.insert(texts.end(), kept.begin(), kept.end());
    try {
        return read_policy(texts);
    } catch (const Error &) {
        return std::nullopt;
    }
}

bool LastGood::is_of(const std::vector<PolicyText> &texts) const {
    const std::vector<PolicyText> wanted = to_keep(texts);
    const std::vector<PolicyText> kept = this->kept();

    return std::ranges::equal(wanted, kept, [](const PolicyText &a, const PolicyText &b) {
        return a.text && a.text == b.text && a.file.filename() == b.file.filename();
    });
}

std::vector<Diagnostic> LastGood::missing(const std::vector<PolicyText> &texts) const {
    const std::vector<PolicyText> kept = this->kept();
    std::vector<Diagnostic> missing;
    std::error_code error;
    const auto name_of = [](const PolicyText &each) {
        return each.file.filename().string().substr(kept_name(0, "").size());
    };

    for (const PolicyText &each : texts) {
        const bool had_text = std::ranges::any_of(kept, [&](const PolicyText &before) {
            return name_of(before) == each.file.filename() && !before.text.value_or("").empty();
        });

        if (had_text && each.text && each.text->empty())
            missing.push_back({{.file = each.file.string()},
                               "it is empty, and was not; remove it if that is meant"});
    }
    const bool had_drop_ins = std::ranges::any_of(
        kept, [&](const PolicyText &each) { return name_of(each) != "umacct.toml"; });
    const bool has_drop_ins = std::ranges::any_of(
        texts, [this](const PolicyText &each) { return is_drop_in(each.file); });
    if (had_drop_ins && !has_drop_ins && has_mount() != fs::exists(folder_ / mount_mark, error))
        missing.push_back({{.file = (root_ / "etc/umacct.toml.d").string()},
                           "it has no files, as another file system is mounted than before"});
    return missing;
}

PolicyInForce policy_in_force(const fs::path &root, const fs::path &without) {
    std::vector<PolicyText> texts = read_texts(policy_files(root));
    const LastGood last(root);
    const bool differs = !last.missing(texts).empty() ||
                         (is_running(root) && !last.is_outdated() && !last.is_of(texts));

    if (differs) {
        if (auto policy = last.policy(without))
            return {.policy = std::move(*policy), .differs = true};
    }
    std::erase_if(texts, [&](const PolicyText &each) { return each.file == without; });
    return {.policy = read_policy(texts)};
}

} // namespace umacct
