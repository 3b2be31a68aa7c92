// SPDX-License-Identifier: GPL-2.0-or-later
/// Careful reading of container runtimes' files, which tenants fill or own. A child process without
/// privileges, with little memory and little time, reads and parses each file. Its answer is a few
/// lines of text, or nothing, and is kept until the file changes. umacctd saves the answers about
/// root's files; other programs then make no child for a file that has not changed since.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace umacct {

/// Makes the answer from a file's text, in the child.
using StateReader = std::function<std::string(const std::string &text)>;

class StateFiles {
public:
    using Lines = std::vector<std::string>;

    /// root: where /var, /run and /etc are.
    explicit StateFiles(std::filesystem::path root) : root_(std::move(root)) {}

    /// The lines of the answer about a file; empty where there is none. user: whose the
    /// file must be, and the user that opens it; root for none.
    const Lines &ask(const std::filesystem::path &file, const StateReader &read,
                     std::optional<uid_t> user = {});
    /// The first of these lines, if any.
    std::string ask_line(const std::filesystem::path &file, const StateReader &read,
                         std::optional<uid_t> user = {});

    /// The sorted names of what is in a folder of root's.
    const Lines &entries(const std::filesystem::path &folder);

    /// A path as the machine means it; absolute ones are from the root, too.
    std::filesystem::path below_root(const std::filesystem::path &path) const;
    /// The user's home directory; /dev/null, below which nothing exists, where it isn't known.
    const std::filesystem::path &home(uid_t user);

    /// Checks from now on whether known files have changed. Answers that were not used lately are
    /// forgotten: their containers are gone.
    void refresh();

    /// Writes down the answers about root's files for other programs, from now on: to be called
    /// again and again. What changed meanwhile is read again, once a minute.
    void share();

    /// How often a child was made: for tests.
    std::uint64_t children() const { return children_; }

private:
    using Clock = std::chrono::steady_clock;

    /// A file's identity and state, to be compared.
    using Stamp = std::array<std::int64_t, 7>;

    struct Known {
        Lines lines;
        std::optional<Stamp> stamp;   ///< root's files only; empty if there is no file
        Clock::time_point due;        ///< time of the next reading, changed or not
        std::uint64_t generation = 0; ///< generation of the last check
    };

    /// An answer to share; read is empty if another program made it.
    struct Answer {
        Stamp stamp{};
        Lines lines;
        StateReader read;
    };

    struct Budget {
        Clock::time_point since;
        Clock::duration spent{};
    };

    static std::optional<Stamp> stamp_of(const std::filesystem::path &path);
    /// Answers from answers_, or by a child; empty as ask_child().
    std::optional<Lines> answer_about(const std::filesystem::path &file, const StateReader &read,
                                      const Stamp &stamp);
    /// Loads the saved answers if they were written anew.
    void read_answers();
    void write_answers();
    void look_at_answers();
    /// It has to be read.
    bool is_stale(Known &known, const std::filesystem::path &path, std::optional<uid_t> user);
    /// Empty when it gave no answer, or there is no time left for it.
    std::optional<Lines> ask_child(const std::filesystem::path &file, const StateReader &read,
                                   std::optional<uid_t> user);

    std::filesystem::path root_;
    std::uint64_t generation_ = 1;
    std::uint64_t children_ = 0;
    std::unordered_map<std::string, Known> known_;
    std::unordered_map<std::string, Answer> answers_; ///< the key is the file
    std::optional<Stamp> answers_stamp_;              ///< the saved file's
    std::uint64_t answers_generation_ = 0;            ///< generation of the last check
    bool shares_ = false;
    bool has_new_ = false; ///< an answer that isn't saved
    Clock::time_point look_at_;
    std::unordered_map<uid_t, Budget> budgets_;
    std::unordered_map<uid_t, std::filesystem::path> homes_;
};

/// The file's text; empty unless it is a regular file of bounded size, no link, and that
/// user's, if one is given.
std::optional<std::string> read_state_file(const std::filesystem::path &file,
                                           std::optional<uid_t> user = {});

/// Replaces the characters that no runtime allows in a name, and bounds the length.
std::string clean_name(std::string_view name);

} // namespace umacct
