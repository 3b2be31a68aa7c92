// SPDX-License-Identifier: GPL-2.0-or-later
/// What the tool exits with, beside 0 and what lib/error.h's Failure says (1 to 4). The meanings
/// are in the footer of app.cpp and in umacct(1).
#pragma once

namespace umacct::tool {

constexpr int exit_not_enforced = 5; ///< a change was made, and nothing enforces it

// Of "preflight", where the answer is not yes.
constexpr int exit_after_reclaim = 6;
constexpr int exit_after_compaction = 7;
constexpr int exit_no_room = 8;

constexpr int exit_of_run = 125; ///< of "run" and "nvml", for an error of the tool's own

// What a shell, env and timeout exit with for a command that cannot be run.
constexpr int exit_not_executable = 126;
constexpr int exit_not_found = 127;

} // namespace umacct::tool
