// SPDX-License-Identifier: GPL-2.0-or-later
/// Exit codes that are no failure's (those are lib/error.h's). What they mean is in the
/// footer of app.cpp and in the manual.
#pragma once

namespace umacct::tool {

constexpr int exit_not_enforced = 5; ///< of a change that was made and that nothing enforces

// Of "preflight", where the answer isn't yes.
constexpr int exit_after_reclaim = 6;
constexpr int exit_after_compaction = 7;
constexpr int exit_no_room = 8;

constexpr int exit_of_run = 125; ///< of "run", for a failure of ours

} // namespace umacct::tool
