// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/cgroup_of.h"

#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/cgroup_tree.h"
#include "lib/owners/owner.h"
#include "lib/text.h"

namespace umacct::oci_hook {

namespace {

/// Whether a cgroup is called by the container's id, whatever the runtime put before and after.
bool is_named_by(const std::string &path, const std::string &id) {
    const std::string_view name = base_name(path);

    return name == id || (is_container_id(id) && name.find(id) != std::string_view::npos);
}

/// The container's own cgroup is the outermost one: some runtimes, such as crun, make another in it
/// for its processes.
std::string outermost(const std::string &path, const std::string &id) {
    std::string found = path;

    for (std::string at = path; at != "/"; at = parent_path(at)) {
        if (is_named_by(at, id))
            found = at;
    }
    return found;
}

} // namespace

ContainerCgroup::ContainerCgroup(const Cgroups &cgroups, const std::filesystem::path &proc,
                                 const ContainerState &state)
    : cgroups_(cgroups),
      process_(open((proc / std::to_string(state.pid)).c_str(),
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) {
    if (process_.get() < 0)
        throw Error(failure_of(errno), fmt::format("cannot find its process {}: {}", state.pid,
                                                   std::generic_category().message(errno)));
    inner_ = read_path();
    path_ = outermost(inner_, state.id);
    id_ = cgroups.id(path_);
}

void ContainerCgroup::check_own() const {
    const std::string runtimes = cgroups_.of_self();

    // Settings on the runtime's own cgroup would affect all of its containers.
    if (inner_ == runtimes || is_below(runtimes, inner_))
        throw Error(Failure::failed,
                    fmt::format("it has no cgroup of its own: it is in {}", printable(inner_)),
                    "without one, nothing can be limited for it alone");
}

bool ContainerCgroup::is_still_it() const {
    const auto folder = folder_of(cgroups_, path_);

    return read_path() == inner_ && folder && folder->id == id_;
}

std::string ContainerCgroup::read_path() const {
    constexpr std::string_view ours = "0::";
    const FileDescriptor file(openat(process_.get(), "cgroup", O_RDONLY | O_CLOEXEC));
    std::string text;
    std::array<char, 4096> buffer{};

    for (ssize_t size = 0; (size = read(file.get(), buffer.data(), buffer.size())) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(size));

    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(ours))
            return line.substr(ours.size());
    }
    throw Error(Failure::failed, "its process is in no cgroup of the v2 hierarchy, or is gone");
}

} // namespace umacct::oci_hook
