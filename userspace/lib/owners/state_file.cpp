// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/state_file.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"
#include "lib/host/process.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_name = 253;       ///< a pod's; others are shorter
constexpr std::size_t longest_entry = 16384;    ///< a line of /etc/passwd
constexpr std::size_t most_entries = 16384;     ///< bound of a folder
constexpr std::size_t largest_file = 16U << 20; ///< one for all of podman's containers
constexpr std::size_t largest_answer = 2U << 20;
constexpr rlim_t most_memory = 64U << 20; ///< memory besides the tool's
constexpr auto longest_time = 3s;         ///< seconds, one of them of computing

/// How often to look at users' files, as a look may take time, and at what gave no answer.
constexpr auto period = 10s;
/// Time for all children for a user's files in a period; for root's.
constexpr auto budget_of_user = 1s;
constexpr auto budget_of_root = 5s;

/// Interval and time for checking shared answers.
constexpr auto look_interval = 60s;
constexpr auto longest_look = 200ms;
/// Bounds on the shared answers: their number, and their bytes.
constexpr std::size_t most_answers = 4096;
constexpr std::size_t most_shared = 8U << 20;
/// Another version's readers may answer otherwise.
constexpr const char *answers_head = "umacct " UMACCT_VERSION;

/// Refreshes without a question before it is forgotten.
constexpr std::uint64_t forgotten_after = 8;

void limit(__rlimit_resource resource, rlim_t value) {
    const rlimit both{.rlim_cur = value, .rlim_max = value};

    setrlimit(resource, &both);
}

rlim_t memory_in_use() {
    rlim_t pages = 0;

    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

/// Confines the child: it may only compute from here on.
void confine(rlim_t memory) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_AS, memory + most_memory);
    limit(RLIMIT_CPU, 1);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NOFILE, 0);
    limit(RLIMIT_NPROC, 0);
}

/// Runs in the child.
std::string answer(const fs::path &file, const StateReader &read, std::optional<uid_t> user) {
    const rlim_t memory = memory_in_use();

    if (user && !drop_privileges(*user))
        return "";
    const auto text = read_state_file(file, user);
    if (!text || (!user && !drop_privileges(nobodys_uid)))
        return "";
    confine(memory);
    return read(*text);
}

StateFiles::Lines split_lines(const std::string &text) {
    StateFiles::Lines lines;
    std::istringstream stream(text);

    for (std::string line; std::getline(stream, line);)
        lines.push_back(std::move(line));
    return lines;
}

} // namespace

const StateFiles::Lines &StateFiles::ask(const fs::path &file, const StateReader &read,
                                         std::optional<uid_t> user) {
    Known &known = known_[file.string()];

    if (is_stale(known, file, user)) {
        auto lines = user ? ask_child(file, read, user) : answer_about(file, read, *known.stamp);

        known.due = lines && !user ? Clock::time_point::max() : Clock::now() + period;
        known.lines = std::move(lines).value_or(Lines());
    }
    return known.lines;
}

std::string StateFiles::ask_line(const fs::path &file, const StateReader &read,
                                 std::optional<uid_t> user) {
    const Lines &lines = ask(file, read, user);

    return lines.empty() ? "" : lines.front();
}

const StateFiles::Lines &StateFiles::entries(const fs::path &folder) {
    Known &known = known_[folder.string()];

    if (!is_stale(known, folder, {}))
        return known.lines;

    std::error_code error;
    known.due = Clock::time_point::max();
    known.lines.clear();
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (known.lines.size() == most_entries)
            break;
        known.lines.push_back(at->path().filename().string());
    }
    std::sort(known.lines.begin(), known.lines.end());
    return known.lines;
}

void StateFiles::refresh() {
    ++generation_;
    std::erase_if(known_, [this](const auto &each) {
        return each.second.generation + forgotten_after < generation_;
    });
}

fs::path StateFiles::below_root(const fs::path &path) const {
    return root_ / path.relative_path();
}

const fs::path &StateFiles::home(uid_t user) {
    const auto [at, is_new] = homes_.try_emplace(user, "/dev/null");

    if (!is_new)
        return at->second;

    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> users(
        std::fopen(below_root("etc/passwd").c_str(), "re"), std::fclose);
    // Two threads of umacctd's may ask at a time.
    std::vector<char> texts(longest_entry);
    passwd entry{};
    passwd *found = nullptr;
    while (users && fgetpwent_r(users.get(), &entry, texts.data(), texts.size(), &found) == 0 &&
           found != nullptr && entry.pw_uid != user) {
    }
    // Users may come from elsewhere, a directory service for one.
    if ((found == nullptr || entry.pw_uid != user) && root_ == "/")
        getpwuid_r(user, &entry, texts.data(), texts.size(), &found);
    if (found != nullptr && entry.pw_uid == user)
        at->second = below_root(entry.pw_dir);
    return at->second;
}

std::optional<StateFiles::Stamp> StateFiles::stamp_of(const fs::path &path) {
    struct stat info {};

    if (stat(path.c_str(), &info) != 0)
        return std::nullopt;
    return Stamp{static_cast<std::int64_t>(info.st_dev),
                 static_cast<std::int64_t>(info.st_ino),
                 info.st_size,
                 info.st_mtim.tv_sec,
                 info.st_mtim.tv_nsec,
                 info.st_ctim.tv_sec,
                 info.st_ctim.tv_nsec};
}

bool StateFiles::is_stale(Known &known, const fs::path &path, std::optional<uid_t> user) {
    if (std::exchange(known.generation, generation_) == generation_)
        return false;
    // A user's folder may have a file system of theirs, which answers when it likes.
    if (user)
        return Clock::now() >= known.due;

    const auto found = stamp_of(path);
    const bool same = found == std::exchange(known.stamp, found);
    if (!found)
        known.lines.clear();
    return found && (!same || Clock::now() >= known.due);
}

std::optional<StateFiles::Lines>
StateFiles::answer_about(const fs::path &file, const StateReader &read, const Stamp &stamp) {
    read_answers();
    if (const auto known = answers_.find(file.string());
        known != answers_.end() && known->second.stamp == stamp) {
        known->second.read = read;
        return known->second.lines;
    }
    auto lines = ask_child(file, read, {});
    if (lines && shares_ && answers_.size() < most_answers) {
        answers_.insert_or_assign(file.string(),
                                  Answer{.stamp = stamp, .lines = *lines, .read = read});
        has_new_ = true;
    }
    return lines;
}

void StateFiles::share() {
    read_answers();
    shares_ = true;
    if (Clock::now() >= look_at_)
        look_at_answers();
    if (std::exchange(has_new_, false))
        write_answers();
}

void StateFiles::look_at_answers() {
    const auto start = Clock::now();

    look_at_ = start + look_interval;
    for (auto at = answers_.begin(); at != answers_.end() && Clock::now() - start < longest_look;) {
        auto &[file, answer] = *at;
        const auto stamp = stamp_of(file);

        if (stamp == answer.stamp) {
            ++at;
            continue;
        }
        auto lines = stamp && answer.read ? ask_child(file, answer.read, {}) : std::nullopt;
        has_new_ = true;
        if (!lines) {
            at = answers_.erase(at);
            continue;
        }
        answer.stamp = *stamp;
        answer.lines = std::move(*lines);
        ++at;
    }
}

void StateFiles::read_answers() {
    const fs::path file = root_ / answers_file;

    if (shares_ || std::exchange(answers_generation_, generation_) == generation_)
        return;
    const auto stamp = stamp_of(file);
    if (stamp == std::exchange(answers_stamp_, stamp))
        return;
    answers_.clear();

    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    while (line == answers_head) {
        Answer answer;
        std::size_t count = 0;
        std::string of;

        for (std::int64_t &number : answer.stamp)
            in >> number;
        if (!(in >> count) || !std::getline(in >> std::ws, of))
            return;
        for (std::string each; count > 0 && std::getline(in, each); --count)
            answer.lines.push_back(std::move(each));
        if (count > 0)
            return;
        answers_.insert_or_assign(std::move(of), std::move(answer));
    }
}

void StateFiles::write_answers() {
    std::string text = answers_head;

    text += '\n';
    for (const auto &[file, answer] : answers_) {
        std::string one;

        if (file.find('\n') != std::string::npos)
            continue;
        for (const std::int64_t number : answer.stamp)
            one += std::to_string(number) + ' ';
        one += std::to_string(answer.lines.size()) + ' ' + file + '\n';
        for (const std::string &line : answer.lines)
            one += line + '\n';
        if (text.size() + one.size() <= most_shared)
            text += one;
    }
    // Other programs read the files again if this fails.
    static_cast<void>(replace_file(root_ / answers_file, text));
}

std::optional<StateFiles::Lines>
StateFiles::ask_child(const fs::path &file, const StateReader &read, std::optional<uid_t> user) {
    // A user's files are read as that user, or not at all: a file system of theirs, or one that
    // hangs, must not delay other files.
    if (user && geteuid() != 0 && geteuid() != *user)
        return std::nullopt;

    const auto start = Clock::now();
    Budget &budget = budgets_[user.value_or(0)];

    if (start - budget.since > period)
        budget = {.since = start};
    if (budget.spent > (user ? budget_of_user : budget_of_root))
        return std::nullopt;

    ++children_;
    const auto text =
        answer_of_child([&] { return answer(file, read, user); }, longest_time, largest_answer);
    budget.spent += Clock::now() - start;
    return text ? std::optional(split_lines(*text)) : std::nullopt;
}

std::optional<std::string> read_state_file(const fs::path &file, std::optional<uid_t> user) {
    // A FIFO would wait for its writer without O_NONBLOCK.
    const FileDescriptor fd(
        open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));

    struct stat info {};

    if (fd.get() < 0 || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
        (user && info.st_uid != *user) || static_cast<std::size_t>(info.st_size) > largest_file)
        return std::nullopt;

    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t got = ::read(fd.get(), text.data() + done, text.size() - done);

        if (got < 0)
            return std::nullopt;
        if (got == 0)
            break;
        done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
}

std::string clean_name(std::string_view name) {
    static constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz"
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "0123456789_.-";
    std::string clean(name.substr(0, longest_name));

    std::replace_if(
        clean.begin(), clean.end(),
        [](char c) { return allowed.find(c) == std::string_view::npos; }, '?');
    return clean;
}

} // namespace umacct
