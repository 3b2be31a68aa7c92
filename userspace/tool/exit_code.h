// SPDX-License-Identifier: GPL-2.0-or-later
/// Exit codes of the tool besides 0 and those of lib/error.h's Failure (1 to 4). The meanings are
/// in the footer of app.cpp and in umacct(1).
#pragma once

namespace umacct::tool {

constexpr int exit_not_enforced = 5; ///< a change was made, and nothing enforces it

// Answers of "preflight" other than yes.
constexpr int exit_after_reclaim = 6;
constexpr int exit_after_compaction = 7;
constexpr int exit_no_room = 8;

constexpr int exit_of_run = 125; ///< an error of "run" itself

// Codes of a shell, env and timeout for a command that cannot be run.
constexpr int exit_not_executable = 126;
constexpr int exit_not_found = 127;

} // namespace umacct::tool
