// SPDX-License-Identifier: GPL-2.0-or-later
/// The page that shows the machine's memory in a browser, and the JSON that it reads: what verbs
/// of the tool print. Nothing can be changed through it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/http.h"
#include "lib/policy/policy.h"

namespace umacct {

/// A file of the page's, which is part of the program.
struct PageFile {
    std::string_view path;
    std::string_view type;
    std::string_view body;
};

/// Made by userspace/web/embed.cmake.
std::span<const PageFile> page_files();

/// Result of a command of the tool's.
struct Ran {
    int code = 0;
    std::string out;
    std::string err;
};

/// Runs the tool; words: what comes after "umacct".
using RunTool = std::function<Ran(const std::vector<std::string> &words)>;

/// Settings of access to the dashboard.
struct PageAccess {
    std::string token; ///< asked for over TCP; empty: nothing is served there
    std::vector<std::string> origins;
    std::vector<std::string> hosts;
};

class Page {
public:
    using Clock = std::chrono::steady_clock;

    /// An answer is made no more often than this, and takes no more than a tenth of the time:
    /// whoever asks meanwhile gets it again.
    static constexpr std::chrono::milliseconds least_age{500};
    static constexpr int share = 10;
    /// Number of cached answers; requests for the history differ.
    static constexpr std::size_t most_kept = 16;
    /// All answers together take no more than half of the time, after a burst of this length:
    /// the same thread serves the metrics.
    static constexpr std::chrono::milliseconds most_at_once{2000};

    Page(PageAccess access, RunTool run, std::function<Clock::time_point()> now = Clock::now);

    HttpAnswer answer(const HttpRequest &request);

private:
    struct Kept {
        unsigned int status = 0;
        std::string body;
        Clock::time_point made;
        Clock::duration lasts{};
    };

    bool may_read(std::string_view origin) const;
    /// Why it is refused; empty where it isn't.
    std::optional<HttpAnswer> refusal(const HttpRequest &request) const;
    HttpAnswer document(const HttpRequest &request);
    HttpAnswer made(const std::vector<std::string> &words);
    /// How long it is until an answer may be made again; 0 or less for now.
    Clock::duration wait(Clock::time_point now);

    PageAccess access_;
    RunTool run_;
    std::function<Clock::time_point()> now_;
    std::map<std::string, Kept> kept_; ///< the key is the command line
    Clock::duration spent_{};          ///< time for answers, less the time that others had since
    Clock::time_point counted_;        ///< time of the last change
};

/// Returns the names that the policy below root gives this machine, with or without a page.
std::vector<std::string> hosts_of(const std::filesystem::path &root);

/// Returns the access that the policy below root gives; empty if the dashboard is off. Throws Error
/// if its token can't be read, or isn't a secret: nothing is served then.
std::optional<PageAccess> page_access(const std::filesystem::path &root);

} // namespace umacct
