// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/process.h"

#include <cerrno>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace umacct {
namespace {

using namespace std::chrono_literals;

std::string yes_or_no(bool answer) {
    return answer ? "yes" : "no";
}

// A change of user takes the signal away, and the child outlived a tool that was killed.
TEST(Process, WithoutPrivilegesStillDiesWithItsParent) {
    const auto signal = answer_of_child(
        [] {
            int number = 0;

            drop_privileges(nobodys_uid);
            prctl(PR_GET_PDEATHSIG, &number);
            return std::to_string(number);
        },
        5s, 100);

    EXPECT_EQ(signal, std::to_string(SIGKILL));
}

TEST(Process, DropsAllThatMakesItSomebody) {
    if (getuid() != 0)
        GTEST_SKIP() << "not run as root";

    const auto who = answer_of_child(
        [] {
            const std::string dropped = yes_or_no(drop_privileges(1000));
            const std::string back = yes_or_no(setuid(0) == 0);

            return dropped + " " + std::to_string(getuid()) + " " + std::to_string(getgid()) + " " +
                   std::to_string(getgroups(0, nullptr)) + " " + back;
        },
        5s, 100);
    EXPECT_EQ(who, "yes 1000 65534 0 no");
}

// A command of another user's could type into the terminal of whoever started it.
TEST(Process, TypesIntoNoTerminalWhereThatIsForbidden) {
    const auto errors = answer_of_child(
        [] {
            const auto error_of = [](unsigned long request) {
                return ioctl(-1, request, "x") < 0 ? std::to_string(errno) + " " : "0 ";
            };
            const std::string before = error_of(TIOCSTI);

            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            const std::string done = yes_or_no(forbid_typing()) + " ";
            return before + done + error_of(TIOCSTI) + error_of(TIOCLINUX) + error_of(TIOCGWINSZ);
        },
        5s, 100);

    EXPECT_EQ(errors, fmt::format("{} yes {} {} {} ", EBADF, EPERM, EPERM, EBADF));
}

TEST(Process, AnswersWholeOrNotAtAll) {
    EXPECT_EQ(answer_of_child([] { return std::string("x"); }, 5s, 100), "x");
    EXPECT_EQ(answer_of_child([] { return std::string(100, 'x'); }, 5s, 100),
              std::string(100, 'x'));
    EXPECT_FALSE(answer_of_child([] { return std::string(1U << 20, 'x'); }, 5s, 100));
    EXPECT_FALSE(answer_of_child([]() -> std::string { _exit(0); }, 5s, 100));
}

// umacctd asks children when memory is short, too, and would end where this throws.
TEST(Process, WithoutAFileForTheAnswerThereIsNone) {
    rlimit before{};

    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest = dup(STDERR_FILENO);
    close(lowest);
    const rlimit full{.rlim_cur = static_cast<rlim_t>(lowest), .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
    const auto answer = answer_of_child([] { return std::string("x"); }, 5s, 100);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_FALSE(answer);
}

TEST(Process, TellsHowItEnded) {
    Process ends([] { _exit(7); });
    Process dies([] { raise(SIGTERM); });
    const auto code_of = [](Process &process) {
        std::optional<int> code;

        while (!code) {
            code = process.exit_code();
            usleep(1000);
        }
        return *code;
    };

    EXPECT_EQ(code_of(ends), 7);
    EXPECT_EQ(code_of(dies), 128 + SIGTERM);
}

} // namespace
} // namespace umacct
