// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/path.h"

#include <fmt/format.h>

namespace umacct {

std::string_view base_name(std::string_view path) {
    return path == "/" ? path : path.substr(path.rfind('/') + 1);
}

std::string parent_path(std::string_view path) {
    const auto slash = path.rfind('/');

    return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

std::string join_path(std::string_view path, std::string_view name) {
    return path == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", path, name);
}

bool is_below(std::string_view path, std::string_view above) {
    if (above == "/")
        return path != "/";
    return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

} // namespace umacct
