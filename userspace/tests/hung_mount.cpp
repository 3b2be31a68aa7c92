// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/hung_mount.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace umacct::test {

namespace {

constexpr std::size_t memfd_bytes = 2U << 20;

fuse_attr attr_of(std::uint64_t node) {
    fuse_attr attr{};

    attr.ino = node;
    attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
    attr.nlink = 1;
    attr.size = 4096;
    return attr;
}

template <class Body>
void answer(int fuse, const fuse_in_header &to, const Body &body) {
    fuse_out_header head{.len = sizeof(head) + sizeof(body), .error = 0, .unique = to.unique};
    const std::array parts{iovec{&head, sizeof(head)},
                           iovec{const_cast<Body *>(&body), sizeof(body)}};

    static_cast<void>(writev(fuse, parts.data(), parts.size()));
}

void answer_one(int fuse) {
    alignas(fuse_in_header) std::array<char, 65536> buffer{};
    fuse_in_header in{};

    if (read(fuse, buffer.data(), buffer.size()) < static_cast<ssize_t>(sizeof(in)))
        return;
    std::memcpy(&in, buffer.data(), sizeof(in));
    if (in.opcode == FUSE_INIT) {
        fuse_init_out init{};

        init.major = FUSE_KERNEL_VERSION;
        init.minor = 31;
        init.max_write = 4096;
        answer(fuse, in, init);
    } else if (in.opcode == FUSE_LOOKUP) {
        fuse_entry_out entry{};

        entry.nodeid = 2;
        entry.attr = attr_of(2);
        answer(fuse, in, entry);
    } else if (in.opcode == FUSE_GETATTR) {
        fuse_attr_out out{};

        out.attr = attr_of(in.nodeid);
        answer(fuse, in, out);
    } else if (in.opcode == FUSE_OPEN) {
        answer(fuse, in, fuse_open_out{});
    } else {
        const fuse_out_header head{.len = sizeof(head), .error = -ENOSYS, .unique = in.unique};

        static_cast<void>(write(fuse, &head, sizeof(head)));
    }
}

/// Writes a byte once it has all. Only the server may have the mount's other end, or the user's own
/// end would wait for itself, and a reader of its output for that.
[[noreturn]] void use(const std::filesystem::path &file, int fuse, int ready) {
    close(fuse);
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const int memory = memfd_create("beside", 0);
    const std::vector<char> bytes(memfd_bytes, 'x');
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast,performance-no-int-to-ptr)
    const void *const failed = MAP_FAILED;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd >= 0 && mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) != failed &&
        write(memory, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
        write(ready, "", 1) == 1)
        pause();
    _exit(1);
}

[[noreturn]] void serve(const std::filesystem::path &place, int ready) {
    const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options =
        fmt::format("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
    std::array<int, 2> opened{};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fuse < 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("hung", place.c_str(), "fuse", 0, options.c_str()) != 0 || pipe(opened.data()) != 0)
        _exit(1);
    const pid_t user = fork();
    if (user == 0)
        use(place / "file", fuse, opened[1]);
    while (true) {
        std::array fds{pollfd{fuse, POLLIN, 0}, pollfd{opened[0], POLLIN, 0}};

        poll(fds.data(), fds.size(), -1);
        if (fds[1].revents != 0)
            break;
        answer_one(fuse);
    }
    if (write(ready, &user, sizeof(user)) == sizeof(user))
        pause();
    _exit(1);
}

} // namespace

HungMount::HungMount(const std::filesystem::path &place) {
    std::array<int, 2> ready{};

    if (pipe(ready.data()) != 0 || (server_ = fork()) < 0)
        return;
    if (server_ == 0) {
        close(ready[0]);
        serve(place, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &user_, sizeof(user_)) != sizeof(user_))
        user_ = 0;
    close(ready[0]);
}

HungMount::~HungMount() {
    // The mount answers with an error once its server has ended.
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
}

} // namespace umacct::test
