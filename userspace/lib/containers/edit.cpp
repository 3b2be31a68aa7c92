// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/containers/edit.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/replace_file.h"
#include "lib/json.h"

namespace umacct::containers {

namespace fs = std::filesystem;

namespace {

/// Larger texts are not compared line by line.
constexpr std::size_t most_pairs_of_lines = 4'000'000;

constexpr std::size_t context = 3; ///< lines that are shown before and after one that differs

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;

    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size() - 1) + 1;

        lines.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return lines;
}

struct Line {
    char mark;
    std::string_view text;
};

/// Those that differ, with some around them.
std::string shown(const std::vector<Line> &lines) {
    std::string text;
    bool left_out = false;

    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto first = lines.begin() + static_cast<std::ptrdiff_t>(i - std::min(i, context));
        const auto last =
            lines.begin() + static_cast<std::ptrdiff_t>(std::min(i + context + 1, lines.size()));
        const bool near =
            std::any_of(first, last, [](const Line &line) { return line.mark != ' '; });

        if (near)
            text += fmt::format("{}{}{}{}", left_out ? " ...\n" : "", lines[i].mark, lines[i].text,
                                lines[i].text.ends_with('\n') ? "" : "\n");
        left_out = !near;
    }
    return text;
}

/// Lengths of the longest common subsequences of lines, from each line of a and b on.
class Common {
public:
    Common(const std::vector<std::string_view> &a, const std::vector<std::string_view> &b)
        : width_(b.size() + 1), counts_((a.size() + 1) * width_) {
        for (std::size_t i = a.size(); i-- > 0;) {
            for (std::size_t j = b.size(); j-- > 0;)
                counts_[i * width_ + j] = a[i] == b[j] ? from(i + 1, j + 1) + 1
                                                       : std::max(from(i + 1, j), from(i, j + 1));
        }
    }

    std::size_t from(std::size_t i, std::size_t j) const { return counts_[i * width_ + j]; }

private:
    std::size_t width_;
    std::vector<std::size_t> counts_;
};

/// folders: those that go with it where they are empty.
void remove_file(const fs::path &file, const std::vector<fs::path> &folders) {
    std::error_code error;

    fs::remove(file, error);
    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("cannot remove {}: {}", file.string(), error.message()),
                    run_as_root);
    for (const fs::path &folder : folders)
        fs::remove(folder, error); // one that isn't empty stays
}

/// Those that have to be made for it, the lowest first.
std::vector<fs::path> missing_folders(const fs::path &file) {
    std::vector<fs::path> folders;
    std::error_code ignored;

    for (fs::path folder = file.parent_path();
         folder.has_relative_path() && !fs::exists(folder, ignored); folder = folder.parent_path())
        folders.push_back(folder);
    return folders;
}

/// code: 0, or an errno.
void throw_unless_written(const fs::path &file, int code) {
    if (code != 0)
        throw Error(failure_of(code),
                    fmt::format("cannot write {}: {}", file.string(),
                                std::generic_category().message(code)),
                    run_as_root);
}

/// It has whole files of others', which may have passwords in them.
void make_private(const fs::path &file) {
    std::error_code error;

    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, error);
    throw_unless_written(file, error.value());
}

void write_edit(const Edit &edit) {
    std::error_code ignored;
    // The target of a link is changed, not the link.
    const fs::path file =
        fs::is_symlink(edit.file, ignored) ? fs::canonical(edit.file, ignored) : edit.file;

    if (!edit.after)
        return remove_file(file, edit.folders);
    throw_unless_written(file, replace_file_of_others(file, *edit.after));
}

/// Translates a path to this root: the record may be from another one.
fs::path seen_from(const fs::path &root, const fs::path &file) {
    const fs::path below = file.lexically_relative(root);

    return below.empty() || *below.begin() == ".." ? root / file.relative_path() : file;
}

Json text_json(const std::optional<std::string> &text) {
    return text ? Json(*text) : Json(nullptr);
}

std::optional<std::string> text_of(const Json &json) {
    return json.is_null() ? std::nullopt : std::optional(json.get<std::string>());
}

std::vector<Edit> read_edits(const fs::path &file) {
    const auto text = read_text(file);
    std::vector<Edit> edits;

    if (!text)
        return edits;
    try {
        const Json record = Json::parse(*text);

        for (const Json &each : record.at("files")) {
            edits.push_back({.file = each.at("file").get<std::string>(),
                             .before = text_of(each.at("before")),
                             .after = text_of(each.at("after")),
                             .shared = each.at("shared").get<bool>()});
            for (const Json &folder : each.value("folders", Json::array()))
                edits.back().folders.emplace_back(folder.get<std::string>());
        }
    } catch (const Json::exception &error) {
        throw Error(Failure::failed,
                    fmt::format("{} is no record of umacct's: {}", file.string(), error.what()),
                    "without that file, nothing is known of what was set up");
    }
    return edits;
}

} // namespace

bool is_ahead(fs::file_time_type time) {
    return time > fs::file_time_type::clock::now() + std::chrono::minutes(1);
}

std::optional<std::string> read_text(const fs::path &file) {
    std::error_code error;
    std::ostringstream text;

    if (!fs::exists(file, error) && !error)
        return std::nullopt;
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    if (!in || !(in.peek() == std::ifstream::traits_type::eof() || text << in.rdbuf()))
        throw Error(failure_of(errno),
                    fmt::format("cannot read {}: {}", file.string(),
                                std::generic_category().message(errno)),
                    run_as_root);
    return text.str();
}

std::string difference(const Edit &edit) {
    const std::string before = edit.before.value_or("");
    const std::string after = edit.after.value_or("");
    const auto a = lines_of(before);
    const auto b = lines_of(after);
    const auto name = [&](const std::optional<std::string> &text) {
        return text ? edit.file.string() : "/dev/null";
    };
    std::vector<Line> lines;
    std::size_t i = 0;
    std::size_t j = 0;

    if ((a.size() + 1) * (b.size() + 1) <= most_pairs_of_lines) {
        const Common common(a, b);

        while (i < a.size() && j < b.size()) {
            if (a[i] == b[j]) {
                lines.push_back({' ', a[i++]});
                ++j;
            } else if (common.from(i + 1, j) >= common.from(i, j + 1)) {
                lines.push_back({'-', a[i++]});
            } else {
                lines.push_back({'+', b[j++]});
            }
        }
    }
    while (i < a.size())
        lines.push_back({'-', a[i++]});
    while (j < b.size())
        lines.push_back({'+', b[j++]});
    return fmt::format("--- {}\n+++ {}\n{}", name(edit.before), name(edit.after), shown(lines));
}

bool Record::is_there(const fs::path &root, const std::string &part) {
    std::error_code ignored;

    return fs::exists(file_of(root, part), ignored);
}

Record::Record(fs::path root, std::string part)
    : root_(std::move(root)), part_(std::move(part)), edits_(read_edits(file_of(root_, part_))) {}

std::optional<fs::path> Record::altered() const {
    for (const Edit &made : edits_) {
        const fs::path file = seen_from(root_, made.file);

        if (!made.shared && read_text(file) != made.after)
            return file;
    }
    return std::nullopt;
}

fs::file_time_type Record::last_change() const {
    std::error_code error;
    auto last = fs::last_write_time(file_of(root_, part_), error);

    for (const Edit &made : edits_) {
        if (error)
            break;
        if (!made.shared)
            last = std::max(last, fs::last_write_time(seen_from(root_, made.file), error));
    }
    // One that is gone was changed just now.
    return error ? fs::file_time_type::max() : last;
}

void Record::make(const std::vector<Edit> &edits, const TakeOut &take_out) {
    const auto others = of_others();
    const fs::path own = file_of(root_, part_);
    const auto said = read_text(own);

    for (const Edit &edit : edits) {
        const auto known = std::ranges::find(edits_, edit.file, &Edit::file);
        const auto other = std::ranges::find(others, edit.file, &Edit::file);
        auto folders = missing_folders(edit.file);

        // Recorded first, so that it can be undone whatever happens then.
        if (known == edits_.end()) {
            edits_.push_back(edit);
            edits_.back().folders = std::move(folders);
            // Another part made it; undone last, this one leaves what there was before both.
            if (other != others.end()) {
                edits_.back().before = other->before;
                edits_.back().folders = other->folders;
            }
        } else if (edit.changes()) {
            // It was changed since, and may still contain our part.
            if (edit.shared && edit.before != known->after)
                known->before = edit.before ? take_out(*edit.before, *known) : std::nullopt;
            known->after = edit.after;
            // Some were removed since, with the file.
            if (folders.size() > known->folders.size())
                known->folders = std::move(folders);
        } else if (!edit.shared) {
            // Another part made it anew.
            known->after = edit.after;
        }
    }

    let_go(edits);
    if (text() == said && std::ranges::none_of(edits, &Edit::changes))
        make_private(own);
    else
        throw_unless_written(own, replace_private_file(own, text()));
    for (const Edit &edit : edits) {
        if (edit.changes())
            write_edit(edit);
    }
    date_back();
}

/// Files that were written while the clock was ahead would look newer than a runtime that has read
/// them, until it is that time.
void Record::date_back() const {
    std::error_code error;
    const auto date = [&](const fs::path &file) {
        if (is_ahead(fs::last_write_time(file, error)) && !error)
            fs::last_write_time(file, fs::file_time_type::clock::now(), error);
    };

    date(file_of(root_, part_));
    for (const Edit &made : edits_)
        date(seen_from(root_, made.file));
}

void Record::let_go(const std::vector<Edit> &edits) {
    std::vector<Edit> kept;

    for (Edit &made : edits_) {
        const fs::path file = seen_from(root_, made.file);
        const bool is_stale = !made.shared && std::ranges::none_of(edits, [&](const Edit &edit) {
            return seen_from(root_, edit.file) == file;
        });

        if (is_stale)
            made.after = read_text(file);
        if (!is_stale || made.after)
            kept.push_back(std::move(made));
    }
    edits_ = std::move(kept);
}

std::vector<Edit> Record::undoing(const TakeOut &take_out) const {
    const auto others = of_others();
    std::vector<Edit> undoing;

    for (const Edit &made : edits_) {
        auto now = read_text(made.file);

        if (std::ranges::find(others, made.file, &Edit::file) != others.end())
            continue;
        if (!now)
            continue;
        auto after = now == made.after || !made.shared ? made.before : take_out(*now, made);
        undoing.push_back({.file = made.file,
                           .before = std::move(now),
                           .after = std::move(after),
                           .shared = made.shared,
                           .folders = made.folders});
    }
    return undoing;
}

void Record::forget(const std::vector<Edit> &undoing) {
    for (const Edit &edit : undoing) {
        if (edit.changes())
            write_edit(edit);
    }
    edits_.clear();
    const fs::path file = file_of(root_, part_);
    remove_file(file, {file.parent_path(), file.parent_path().parent_path()});
}

fs::path Record::file_of(const fs::path &root, const std::string &part) {
    return root / "var/lib/umacct/setup" / (part + ".json");
}

std::vector<Edit> Record::of_others() const {
    std::vector<Edit> all;
    std::error_code error;
    const fs::path own = file_of(root_, part_);

    for (fs::directory_iterator at(own.parent_path(), error), end; !error && at != end;
         at.increment(error)) {
        if (at->path() == own || at->path().extension() != ".json")
            continue;
        for (Edit &edit : read_edits(at->path()))
            all.push_back(std::move(edit));
    }
    return all;
}

std::string Record::text() const {
    Json files = Json::array();

    for (const Edit &edit : edits_) {
        Json folders = Json::array();

        for (const fs::path &folder : edit.folders)
            folders.push_back(folder.string());
        files.push_back({{"file", edit.file.string()},
                         {"before", text_json(edit.before)},
                         {"after", text_json(edit.after)},
                         {"shared", edit.shared},
                         {"folders", std::move(folders)}});
    }
    return Json{{"files", files}}.dump(2) + "\n";
}

} // namespace umacct::containers
