// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/markup.h"

#include "lib/text.h"

namespace umacct::tool {

std::string escaped(std::string_view text) {
    std::string result;

    for (const char c : printable(text)) {
        switch (c) {
        case '<':
            result += "&lt;";
            break;
        case '>':
            result += "&gt;";
            break;
        case '&':
            result += "&amp;";
            break;
        case '"':
            result += "&quot;";
            break;
        case '\'':
            result += "&#39;";
            break;
        default:
            result += c;
        }
    }
    return result;
}

Markup &Markup::add(Constant ours) {
    return put(ours.text);
}

Markup &Markup::text(std::string_view anybodys) {
    return put(escaped(anybodys));
}

Markup &Markup::put(std::string_view markup) {
    out_.write(markup.data(), static_cast<std::streamsize>(markup.size()));
    return *this;
}

} // namespace umacct::tool
