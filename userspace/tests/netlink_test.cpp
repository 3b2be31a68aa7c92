// SPDX-License-Identifier: GPL-2.0-or-later
/// The real connection, as far as it goes without a module.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/error.h"
#include "lib/host/process.h"
#include "lib/module/transport.h"

namespace umacct {
namespace {

/// Makes socket(AF_NETLINK) fail with that errno; with EAFNOSUPPORT, as below systemd's
/// RestrictAddressFamilies.
bool refuse_netlink(int code) {
    constexpr auto load = BPF_LD | BPF_W | BPF_ABS;
    constexpr auto equal = BPF_JMP | BPF_JEQ | BPF_K;
    std::array<sock_filter, 6> filter{
        {BPF_STMT(load, offsetof(seccomp_data, nr)), BPF_JUMP(equal, SYS_socket, 0, 3),
         BPF_STMT(load, offsetof(seccomp_data, args[0])), BPF_JUMP(equal, AF_NETLINK, 0, 1),
         BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
         BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW)}};
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// The error for a missing netlink socket.
std::string told_of(int code) {
    return answer_of_child(
               [code]() -> std::string {
                   if (!refuse_netlink(code))
                       return "no seccomp";
                   try {
                       connect_netlink();
                   } catch (const Error &error) {
                       return fmt::format("{}: {}; {}", static_cast<int>(error.failure()),
                                          error.what(), error.hint());
                   }
                   return "it connects";
               },
               std::chrono::seconds(30), 1000)
        .value_or("nothing");
}

TEST(Netlink, WhereASandboxRefusesItThatIsAnErrorWithAHint) {
    for (const int code : {EAFNOSUPPORT, EPROTONOSUPPORT, EPERM, EACCES}) {
        const std::string told = told_of(code);

        EXPECT_EQ(told.find("4: cannot open a netlink socket: "), 0U) << told;
        EXPECT_NE(told.find("RestrictAddressFamilies"), std::string::npos) << told;
    }
}

TEST(Netlink, WhatIsNoRefusalIsNotToldAsOne) {
    EXPECT_EQ(told_of(EMFILE), "1: cannot open a netlink socket: Too many open files; ");
    EXPECT_EQ(told_of(ENOMEM), "1: cannot open a netlink socket: Cannot allocate memory; ");
}

} // namespace
} // namespace umacct
