// SPDX-License-Identifier: GPL-2.0-or-later
/// Files of a container runtime's that "umacct setup" makes or changes, and puts back. What was
/// there before is kept in a record, with what was made of it: who undoes it finds either the
/// latter, and puts back the former byte by byte, or that somebody changed the file since.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace umacct::containers {

/// A file, as it is and as it is to be.
struct Edit {
    std::filesystem::path file;
    std::optional<std::string> before; ///< empty: there is none
    std::optional<std::string> after;  ///< empty: there shall be none
    bool shared = false;               ///< it is somebody else's, with something of ours in it
    /// In the record: those that were made for it, the lowest first. Where they are empty, they go
    /// with it.
    std::vector<std::filesystem::path> folders = {};

    bool changes() const { return before != after; }
};

/// The file's text; empty where there is no file. Throws Error where it can't be read.
std::optional<std::string> read_text(const std::filesystem::path &file);

/// What the edit changes, line by line, as diff -u has it.
std::string difference(const Edit &edit);

/// What was done for a part, below root, by somebody who may have been in a chroot there. Only root
/// may read it: files of others' are in it.
class Record {
public:
    /// Whether anything was, which anybody may ask.
    static bool is_there(const std::filesystem::path &root, const std::string &part);

    /// part: what it is called. Throws Error where the record can't be read.
    Record(std::filesystem::path root, std::string part);

    bool is_there() const { return !edits_.empty(); }

    /// The first file of umacct's alone that is not as it was made; empty where each is. Throws
    /// Error where one can't be read.
    std::optional<std::filesystem::path> altered() const;

    /// When one of umacct's files alone, or what it says of any, was changed last.
    std::filesystem::file_time_type last_change() const;

    /// Of a shared file that somebody changed since, the text without what is ours; empty where
    /// nothing is left of it.
    using TakeOut =
        std::function<std::optional<std::string>(const std::string &now, const Edit &made)>;

    /// Makes the edits, and remembers them; the record isn't written where nothing changes. A file
    /// that is in the record already stays there as it was before the first time, or, where
    /// somebody changed it since, as it would be without what is ours. Throws Error; the record
    /// says then what was done.
    void make(const std::vector<Edit> &edits, const TakeOut &take_out);

    /// What undoing changes.
    std::vector<Edit> undoing(const TakeOut &take_out) const;

    /// Makes these edits, and forgets all that was done. Throws Error.
    void forget(const std::vector<Edit> &undoing);

private:
    static std::filesystem::path file_of(const std::filesystem::path &root,
                                         const std::string &part);
    /// What other parts have in their records.
    std::vector<Edit> of_others() const;
    /// Forgets files of umacct's alone that these edits don't need and that are gone. Those that
    /// are there still are as they are to be.
    void let_go(const std::vector<Edit> &edits);
    std::string text() const; ///< as it is written

    std::filesystem::path root_;
    std::string part_;
    std::vector<Edit> edits_;
};

} // namespace umacct::containers
