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

/// What a command of the tool's did.
struct Ran {
    int code = 0;
    std::string out;
    std::string err;
};

/// Runs the tool; words: what comes after "umacct".
using RunTool = std::function<Ran(const std::vector<std::string> &words)>;

/// For whom the page is.
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
    /// So many answers are kept; what is asked of the history differs.
    static constexpr std::size_t most_kept = 16;
    /// All answers together take no more than half of the time, after so much of it at once:
    /// metrics are told by the same thread.
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

    bool is_our_host(std::string_view host) const;
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
    std::map<std::string, Kept> kept_; ///< by their words
    Clock::duration spent_{};          ///< on answers, less the time that others had since
    Clock::time_point counted_;        ///< until when that is so
};

/// What of the policy below root is for the page; empty where it is off. Throws Error where its
/// token can't be had, or isn't a secret: then nothing is served.
std::optional<PageAccess> page_access(const std::filesystem::path &root);

} // namespace umacct
