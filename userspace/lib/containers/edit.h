// SPDX-License-Identifier: GPL-2.0-or-later
/// Files of a container runtime's that "umacct setup" makes or changes, and puts back. What was
/// there before is kept in a record, with what was made of it: who undoes it finds either the
/// latter, and puts back the former byte by byte, or that the file was changed since.
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
    bool shared = false;               ///< another program's file, with a part of ours
    /// Folders that were made for it, the deepest first; removed with it when they are empty. Set
    /// in the record alone.
    std::vector<std::filesystem::path> folders = {};

    bool changes() const { return before != after; }
};

/// Whether a file's time is later than now: the clock was wrong, or is.
bool is_ahead(std::filesystem::file_time_type time);

/// The file's text; empty where there is no file. Throws Error where it can't be read.
std::optional<std::string> read_text(const std::filesystem::path &file);

/// Formats the edit as diff -u does.
std::string difference(const Edit &edit);

/// The edits made for a part, below root, perhaps from inside a chroot there. Only root may read
/// it: it contains other programs' files.
class Record {
public:
    /// Returns whether there is a record, which all users may ask.
    static bool is_there(const std::filesystem::path &root, const std::string &part);

    /// part: what it is called. Throws Error where the record can't be read.
    Record(std::filesystem::path root, std::string part);

    bool is_there() const { return !edits_.empty(); }

    /// The first file of umacct's alone that is not as it was made; empty where each is. Throws
    /// Error where one can't be read.
    std::optional<std::filesystem::path> altered() const;

    /// Returns the time of the last change to one of umacct's own files, or to its record of them.
    std::filesystem::file_time_type last_change() const;

    /// Removes our part from a shared file that was changed since; empty if nothing else is left.
    using TakeOut =
        std::function<std::optional<std::string>(const std::string &now, const Edit &made)>;

    /// Makes the edits, and remembers them; the record isn't written where nothing changes. A file
    /// that is in the record already stays there as it was before the first time, or, where
    /// if it was changed since, as it would be without our part. Throws Error; the record
    /// says then what was done.
    void make(const std::vector<Edit> &edits, const TakeOut &take_out);

    /// Returns the edits that undo the recorded ones.
    std::vector<Edit> undoing(const TakeOut &take_out) const;

    /// Makes these edits, and forgets all that was done. Throws Error.
    void forget(const std::vector<Edit> &undoing);

private:
    static std::filesystem::path file_of(const std::filesystem::path &root,
                                         const std::string &part);
    /// Returns the edits in other parts' records.
    std::vector<Edit> of_others() const;
    /// Forgets files of umacct's alone that these edits don't need and that are gone. Those that
    /// are there still are as they are to be.
    void let_go(const std::vector<Edit> &edits);
    /// Dates files that lie in the future back to now.
    void date_back() const;
    std::string text() const; ///< the record's file

    std::filesystem::path root_;
    std::string part_;
    std::vector<Edit> edits_;
};

} // namespace umacct::containers
