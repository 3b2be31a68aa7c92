// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

// Its assertions end the program for what a file has wrong, as "[,"; without them it says so. The
// linker takes one of the copies that files have of it: all have to be without.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>
