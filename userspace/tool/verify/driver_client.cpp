// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/verify/driver_client.h"

#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "lib/error.h"

extern "C" {
#include "rmclient.h"
}

namespace umacct::tool {

namespace {

using namespace std::chrono_literals;

constexpr auto poll_interval = 100ms;
constexpr int poll_attempts = 100;
constexpr std::uint32_t first_handle = 0x1000;

/// A question to free everything, beside how many allocations to make.
constexpr int free_everything = -1;

} // namespace

DriverClient::DriverClient(std::uint64_t chunk) : chunk_(chunk), process_([this] { serve(); }) {
    questions_.close_read();
    answers_.close_write();
}

/// In the child. Each question has two answers: how many allocations there are
/// now, and the status of the one that was refused, or -errno.
void DriverClient::serve() {
    rm_client driver{};
    std::uint32_t held = 0;

    die_with_parent();
    questions_.close_write();
    answers_.close_read();

    int status = drop_privileges(nobody) ? 0 : -EPERM;
    bool open = false;
    while (const auto question = questions_.get()) {
        if (status == 0 && !open) {
            status = rm_open(&driver);
            open = status == 0;
        }
        int refusal = status;
        if (open && *question == free_everything) {
            for (; held > 0; --held)
                rm_free(&driver, first_handle + held - 1);
        } else if (open) {
            for (int i = 0; i < *question && refusal == 0; ++i) {
                refusal = rm_alloc(&driver, first_handle + held, chunk_);
                held += refusal == 0 ? 1 : 0;
            }
        }
        answers_.put(static_cast<int>(held));
        answers_.put(refusal);
    }
    if (open)
        rm_close(&driver);
}

Allocation DriverClient::allocate(std::uint64_t bytes) {
    const int held = ask(static_cast<int>(bytes / chunk_));
    const int status = answers_.get().value_or(-EPIPE);

    if (status < 0)
        throw Error(Failure::failed,
                    fmt::format("speaking to the driver as an unprivileged user: {}",
                                std::generic_category().message(-status)),
                    "is " RM_CONTROL_DEVICE " there, and readable and writable by everyone?");
    return {.bytes = static_cast<std::uint64_t>(held) * chunk_,
            .status = static_cast<std::uint32_t>(status)};
}

void DriverClient::free_all() {
    if (ask(free_everything) != 0 || answers_.get().value_or(-1) != 0)
        throw Error(Failure::failed, "the driver did not take the memory back");
}

int DriverClient::ask(int count) {
    questions_.put(count);
    for (int attempt = 0; attempt < poll_attempts; ++attempt) {
        if (SignalGuard::interrupted())
            throw Error(Failure::failed, "interrupted");
        if (answers_.wait(poll_interval)) {
            if (const auto answer = answers_.get())
                return *answer;
            throw Error(Failure::failed, "the allocating process was killed",
                        "the kernel log may say by whom");
        }
    }
    throw Error(Failure::failed, "the driver did not answer within 10 s",
                "the machine may be short of memory; the kernel log may say more");
}

} // namespace umacct::tool
