// SPDX-License-Identifier: GPL-2.0-or-later
/// How each container runtime comes to run umacct-hook: "umacct setup podman" and the like.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tool/containers/edit.h"

namespace umacct::containers {

struct Place {
    std::filesystem::path root;
    std::uint64_t memory; ///< the machine's
};

/// Containers that do not start any more once a setup is undone.
struct Stranded {
    std::string without; ///< what they were created with, and what is no more then; or empty
    const char *maker;   ///< who made them
    const char *remedy;
    /// By their names, or else ids; empty where it isn't known which they are.
    std::optional<std::vector<std::string>> containers = {};
    std::vector<std::string> doubtful = {}; ///< of which it isn't known what they were created with
};

struct Runtime {
    const char *name;
    const char *summary;
    const char *then;        ///< what to do once it is set up
    const char *then_undone; ///< and once that is undone; empty for nothing
    /// What its files are to be. Throws Error.
    std::vector<Edit> (*edits)(const Place &place);
    Record::TakeOut take_out = nullptr; ///< of a file of its that somebody changed since
    /// Of its files those that have others' settings, too. Throws Error.
    std::vector<Edit> (*shared)(const std::filesystem::path &root) = nullptr;
    /// Of one that reads its files at its start alone: where it answers. It makes that socket anew
    /// each time that it starts. Throws Error.
    std::filesystem::path (*socket)(const std::filesystem::path &root) = nullptr;
    /// What to_undo() would strand. Throws Error.
    Stranded (*stranded)(const std::filesystem::path &root,
                         const std::vector<Edit> &edits) = nullptr;
};

/// Null where there is none of that name.
const Runtime *find_runtime(std::string_view name);
const std::vector<Runtime> &all_runtimes();

/// Somebody set it up, and didn't undo that.
bool was_set_up(const Runtime &runtime, const std::filesystem::path &root);

/// Whether umacct's part of its files is as it should be. A caller that may not read the files only
/// learns whether it was set up.
bool is_set_up(const Runtime &runtime, const std::filesystem::path &root);

/// Why containers that it makes now may not run the hook; empty where all of them do: its files are
/// as they should be, and it has read them.
std::string why_not_hooked(const Runtime &runtime, const std::filesystem::path &root);

/// What setting it up, or undoing that, changes.
std::vector<Edit> to_set_up(const Runtime &runtime, const Place &place);
std::vector<Edit> to_undo(const Runtime &runtime, const std::filesystem::path &root);

/// The same, done.
void set_up(const Runtime &runtime, const std::filesystem::path &root,
            const std::vector<Edit> &edits);
void undo(const Runtime &runtime, const std::filesystem::path &root,
          const std::vector<Edit> &edits);

} // namespace umacct::containers
