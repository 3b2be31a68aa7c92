// SPDX-License-Identifier: GPL-2.0-or-later
/// How each container runtime comes to run umacct-hook: "umacct setup podman" and the like.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/containers/edit.h"

namespace umacct::containers {

struct Place {
    std::filesystem::path root;
    std::uint64_t memory; ///< the machine's
};

/// Containers that do not start any more once a setup is undone.
struct Stranded {
    std::string without; ///< runtime or setting that they need, and that would be gone; or empty
    const char *maker;   ///< program that made them
    const char *remedy;
    /// Names, or else ids; empty if they are not known.
    std::optional<std::vector<std::string>> containers = {};
    std::vector<std::string> doubtful = {}; ///< containers whose runtime is not known
};

struct Runtime {
    const char *name;
    const char *summary;
    const char *then;        ///< next step after the set-up
    const char *then_undone; ///< and once that is undone; empty for nothing
    /// Returns the wanted files. Throws Error.
    std::vector<Edit> (*edits)(const Place &place);
    Record::TakeOut take_out = nullptr; ///< removes our part from a file that was changed since
    /// Returns those of its files that also have others' settings. Throws Error.
    std::vector<Edit> (*shared)(const std::filesystem::path &root) = nullptr;
    /// Returns the socket of a runtime that reads its files only at its start: it makes the socket
    /// anew then. Throws Error.
    std::filesystem::path (*socket)(const std::filesystem::path &root) = nullptr;
    /// Returns the containers that to_undo() would strand. Throws Error.
    Stranded (*stranded)(const std::filesystem::path &root,
                         const std::vector<Edit> &edits) = nullptr;
};

/// Returns umacct-hook's path, as the machine whose root that is has it. Throws Error where it
/// isn't installed.
std::string installed_hook(const std::filesystem::path &root);

/// Null where there is none of that name.
const Runtime *find_runtime(std::string_view name);
const std::vector<Runtime> &all_runtimes();

/// Returns whether it was set up, and not undone.
bool was_set_up(const Runtime &runtime, const std::filesystem::path &root);

/// Whether umacct's part of its files is as it should be. A caller that may not read the files only
/// learns whether it was set up.
bool is_set_up(const Runtime &runtime, const std::filesystem::path &root);

/// Why containers that it makes now may not run the hook; empty where all of them do: its files are
/// as they should be, and it has read them.
std::string why_not_hooked(const Runtime &runtime, const std::filesystem::path &root);

/// Returns the edits of setting it up, or of undoing that.
std::vector<Edit> to_set_up(const Runtime &runtime, const Place &place);
std::vector<Edit> to_undo(const Runtime &runtime, const std::filesystem::path &root);

/// The same, done.
void set_up(const Runtime &runtime, const std::filesystem::path &root,
            const std::vector<Edit> &edits);
void undo(const Runtime &runtime, const std::filesystem::path &root,
          const std::vector<Edit> &edits);

} // namespace umacct::containers
