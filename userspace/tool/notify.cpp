// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/notify.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/owners/tenant.h"

namespace umacct::tool {

namespace {

std::vector<std::string> command_of(const std::string &to) {
    if (to.starts_with("http://") || to.starts_with("https://"))
        return {"curl",          "-sSf", "-o", "/dev/null", "-H", "Content-Type: application/json",
                "--data-binary", "@-",   to};
    return {"/bin/sh", "-c", to};
}

/// Writes the event into an empty file, to be read from its start.
void write_event(int file, const std::string &event) {
    if (file < 0 || write(file, event.data(), event.size()) != static_cast<ssize_t>(event.size()) ||
        lseek(file, 0, SEEK_SET) != 0)
        throw std::system_error(errno, std::generic_category(), "memfd_create");
}

std::string path_of(const Json &event) {
    return event.value("path", "");
}

std::string kind_of(const Json &event) {
    return event.value("type", "") + " " + path_of(event);
}

/// Whether it is umacctd's, which makes few of them.
bool is_umacctds(const Json &event) {
    const std::string type = event.value("type", "");

    return type == "guard" || type == "step_ahead";
}

} // namespace

Notifier::Notifier(std::string to, Log log) : to_(std::move(to)), log_(std::move(log)) {
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

void Notifier::put(Json event) {
    const auto same =
        is_umacctds(event) ? waiting_.end() : std::ranges::find(waiting_, kind_of(event), kind_of);

    if (same != waiting_.end()) {
        event["count"] = event.value("count", 1ULL) + same->value("count", 1ULL);
        waiting_.erase(same);
    }
    waiting_.push_back(std::move(event));
    if (waiting_.size() > most_waiting)
        drop();
    look();
}

void Notifier::drop() {
    std::map<std::string, int> counts;
    const auto count_of = [&](const Json &event) {
        return is_umacctds(event) ? 0 : counts[std::string(tenant_of(path_of(event)))];
    };

    for (const Json &event : waiting_) {
        if (!is_umacctds(event))
            ++counts[std::string(tenant_of(path_of(event)))];
    }
    waiting_.erase(std::ranges::max_element(waiting_, {}, count_of));
    ++dropped_;
}

void Notifier::look(Clock::time_point now) {
    int status = 0;

    if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            log_(fmt::format("notify: the command failed with {}",
                             WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                               : fmt::format("signal {}", WTERMSIG(status))));
    }
    if (pid_ > 0 && now >= until_) {
        log_(fmt::format("notify: the command was ended: it ran for {} s", patience.count()));
        end();
    }
    if (pid_ > 0)
        return;
    std::erase_if(quiet_, [now](const auto &each) { return each.second <= now; });
    auto next = std::ranges::find_if(waiting_, is_umacctds);
    if (next == waiting_.end())
        next = std::ranges::find_if(
            waiting_, [this](const Json &event) { return !quiet_.contains(kind_of(event)); });
    if (next == waiting_.end())
        return;
    if (dropped_ > 0)
        log_(fmt::format("notify: events dropped: {}; the command is too slow", dropped_));
    dropped_ = 0;

    const Json event = std::move(*next);
    waiting_.erase(next);
    if (!is_umacctds(event))
        quiet_[kind_of(event)] = now + quiet;
    start(json_text(event) + "\n", now);
}

void Notifier::start(const std::string &event, Clock::time_point now) {
    // A file, so that a command that does not read it delays nothing.
    const FileDescriptor input(memfd_create("umacct-event", MFD_CLOEXEC));
    std::vector<std::string> words = command_of(to_);
    std::vector<char *> argv;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    write_event(input.get(), event);
    argv.reserve(words.size() + 1);
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
    // A group of its own, so that a pipeline ends as a whole.
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int code = posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0) {
        pid_ = -1;
        log_(fmt::format("notify: cannot run {}: {}", words.front(),
                         std::generic_category().message(code)));
    }
    until_ = now + patience;
}

void Notifier::end() {
    if (pid_ < 0)
        return;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

} // namespace umacct::tool
