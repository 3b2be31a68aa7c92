// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/text_file.h"

#include <fstream>
#include <sstream>

namespace umacct {

std::string contents_of(const std::filesystem::path &file) {
    std::ostringstream all;

    all << std::ifstream(file).rdbuf();
    return all.str();
}

std::string line_of(const std::filesystem::path &file) {
    const std::string contents = contents_of(file);

    return contents.substr(0, contents.find('\n'));
}

bool is_there(const std::filesystem::path &path) {
    std::error_code ignored;

    return std::filesystem::exists(path, ignored);
}

} // namespace umacct
