// SPDX-License-Identifier: GPL-2.0-or-later
/// Manual pages, in the language of man(7).
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "docgen/interface.h"

namespace umacct::docgen {

/// What a page's head and foot say.
struct Edition {
    std::string version;
    std::string date; ///< YYYY-MM-DD
};

/// The text as it shall be seen, in the middle or at the beginning of a line.
std::string roff(std::string_view text);

/// umacct(1)
void print_manual(std::ostream &out, const Interface &interface, const Edition &edition);
/// umacct-VERB(1)
void print_manual(std::ostream &out, const Interface &interface, const Verb &verb,
                  const Edition &edition);

} // namespace umacct::docgen
