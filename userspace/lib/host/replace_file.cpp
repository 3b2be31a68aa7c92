// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

namespace umacct {

namespace fs = std::filesystem;

int replace_file(const fs::path &file, const std::string &text) {
    std::error_code error;
    fs::path next = file;

    // Where there is no folder and none can be made, that is what is wrong.
    if (!fs::create_directories(file.parent_path(), error) && error)
        return error.value();
    next += ".new";
    errno = 0;
    std::ofstream out(next);
    out << text;
    out.close();
    if (!out)
        return errno != 0 ? errno : EIO;
    fs::rename(next, file, error);
    return error.value();
}

} // namespace umacct
