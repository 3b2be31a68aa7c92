// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace umacct {

namespace fs = std::filesystem;

namespace {

/// 0, or an errno.
int make_like(const fs::path &next, const fs::path &file) {
    struct stat before {};

    if (stat(file.c_str(), &before) != 0)
        return errno == ENOENT ? 0 : errno;
    return chown(next.c_str(), before.st_uid, before.st_gid) != 0 ||
                   chmod(next.c_str(), before.st_mode & 07777) != 0
               ? errno
               : 0;
}

int replace(const fs::path &file, const std::string &text, bool is_of_others) {
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
    if (const int code = is_of_others ? make_like(next, file) : 0) {
        fs::remove(next, error);
        return code;
    }
    fs::rename(next, file, error);
    return error.value();
}

} // namespace

int replace_file(const fs::path &file, const std::string &text) {
    return replace(file, text, false);
}

int replace_file_of_others(const fs::path &file, const std::string &text) {
    return replace(file, text, true);
}

} // namespace umacct
