// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/program.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/text.h"

namespace umacct {

namespace {

std::string read_all(int fd) {
    std::array<char, 4096> part{};
    std::string text;
    ssize_t size = 0;

    while ((size = read(fd, part.data(), part.size())) > 0 || (size < 0 && errno == EINTR))
        text.append(part.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
}

} // namespace

std::string run_program(std::vector<std::string> words, const std::string &package) {
    std::array<int, 2> ends{};
    std::vector<char *> argv;
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int status = 0;

    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe");
    const FileDescriptor from(ends[0]);
    FileDescriptor to(ends[1]);
    // A file, so that the program never waits for its reader.
    const FileDescriptor complaints(memfd_create("umacct", MFD_CLOEXEC));
    if (complaints.get() < 0)
        throw std::system_error(errno, std::generic_category(), "memfd_create");

    argv.reserve(words.size() + 1);
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, complaints.get(), STDERR_FILENO);
    const int code = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code == ENOENT)
        throw Error(Failure::failed, fmt::format("{} is not installed", words.front()),
                    fmt::format("apt install {}", package));
    if (code != 0)
        throw Error(Failure::failed, fmt::format("cannot run {}: {}", words.front(),
                                                 std::generic_category().message(code)));
    to.reset(-1);

    std::string text = read_all(from.get());
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        lseek(complaints.get(), 0, SEEK_SET);
        throw Error(Failure::failed, fmt::format("{} failed: {}", words.front(),
                                                 printable(read_all(complaints.get()) + text)));
    }
    return text;
}

} // namespace umacct
