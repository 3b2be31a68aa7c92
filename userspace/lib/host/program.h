// SPDX-License-Identifier: GPL-2.0-or-later
/// Other people's programs, run to their end.
#pragma once

#include <string>
#include <vector>

namespace umacct {

/// Runs a program that is expected to succeed, and returns what it wrote to standard output.
/// words: the program, looked for as a shell does, and its arguments. package: what has it. Throws
/// Error, with what the program printed, where it can't be run or fails.
std::string run_program(std::vector<std::string> words, const std::string &package);

} // namespace umacct
