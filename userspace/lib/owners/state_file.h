// SPDX-License-Identifier: GPL-2.0-or-later
/// What container runtimes wrote down, read with care: tenants fill such files, or own
/// them. Each is read and understood by a child process that has no privileges, little
/// memory and little time. Its answer is a few lines of text, or nothing, and is kept
/// until the file changes. umacctd writes down what it was answered about root's files:
/// where it runs, other programs make no child for a file that is the same since.
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
    /// file must be, and as whom it is opened; root for none.
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

    /// From now on, looks again whether what was read has changed. What nobody asked for of
    /// late is forgotten: it is of containers that are gone.
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
        std::optional<Stamp> stamp;   ///< of root's files; none where there is no file
        Clock::time_point due;        ///< when to read it again though it looks the same
        std::uint64_t generation = 0; ///< in which it was looked at
    };

    /// What can be shared: read is empty where another program made it.
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
    /// From answers_, or a child; empty as ask_child().
    std::optional<Lines> answer_about(const std::filesystem::path &file, const StateReader &read,
                                      const Stamp &stamp);
    /// What is written down, if it was written anew.
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
    std::unordered_map<std::string, Answer> answers_; ///< by file
    std::optional<Stamp> answers_stamp_;              ///< of the file that they are from
    std::uint64_t answers_generation_ = 0;            ///< in which that was looked at
    bool shares_ = false;
    bool has_new_ = false; ///< that isn't written down
    Clock::time_point look_at_;
    std::unordered_map<uid_t, Budget> budgets_;
    std::unordered_map<uid_t, std::filesystem::path> homes_;
};

/// The file's text; empty unless it is a regular file of bounded size, no link, and that
/// user's, if one is given.
std::optional<std::string> read_state_file(const std::filesystem::path &file,
                                           std::optional<uid_t> user = {});

/// With the characters that no runtime allows in a name replaced, and of bounded length.
std::string clean_name(std::string_view name);

} // namespace umacct
