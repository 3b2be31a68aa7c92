// SPDX-License-Identifier: GPL-2.0-or-later
/// Records the machine's history, in two threads of its own: one looks every second, and one
/// writes. Where the disk hangs, the first goes on into a ring of samples that was there before.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/failure_log.h"
#include "lib/history/sample.h"
#include "lib/history/steps.h"
#include "lib/history/writer.h"
#include "lib/host/kernel_log.h"
#include "lib/module/module.h"

namespace umacct {

class Recorder {
public:
    /// Takes a line about what it does; from its threads. failed: it can't.
    using Tell = std::function<void(const std::string &line, bool failed)>;

    /// Records where the folder of umacctd's state is, below root; else says that it doesn't.
    /// tell_failure: takes what the journal is to have of requests that the driver failed.
    /// observe: who counts where the module isn't loaded; may be empty. tell_step: takes the event
    /// that an account's largest step no longer fits; may be empty.
    Recorder(Connection::Connect connect, std::filesystem::path proc, std::filesystem::path root,
             Tell tell, FailureLog::Tell tell_failure, Connection::Connect observe = {},
             FailureLog::Tell tell_step = {});
    Recorder(const Recorder &) = delete;
    Recorder &operator=(const Recorder &) = delete;
    Recorder(Recorder &&) = delete;
    Recorder &operator=(Recorder &&) = delete;
    /// Writes what there is.
    ~Recorder();

    /// Starts. Signals go to whoever calls this.
    void start();
    /// The end that comes now is a clean one.
    void stop();

    /// Sets the guard's floor; 0 for none.
    void set_floor(std::uint64_t bytes);

    /// A step of the guard's, in words.
    void add_step(std::string_view path, const std::string &line, bool failed);

private:
    /// Bound on the happenings that wait for the writer.
    static constexpr std::size_t most_happenings = 512;

    /// most: the number of waiting happenings at which this one is left out.
    void add(history::Happening happening, std::size_t most = most_happenings);
    void listen();
    void take_kernel_log();
    void follow_steps(const history::Sample &sample);
    void keep_steps();
    const std::vector<Account> &largest(Module &module);
    void take_events(Module &module, const std::vector<Event> &events);
    void look();
    void write();
    bool write_some(history::Writer &writer);
    void tell_once(const std::string &line);

    Connection::Connect connect_;
    Connection::Connect observe_;
    Connection listener_; ///< connection for the module's events; the looker's alone, like the next
    bool listens_ = false;
    std::filesystem::path proc_;
    std::filesystem::path root_;
    Tell tell_;
    FailureLog::Tell tell_step_;
    FailureLog failures_; ///< the looker's alone, as are the next four
    std::optional<KernelLog> kernel_log_;
    std::uint64_t complaints_ = 0; ///< the driver's, in that log
    std::vector<Account> largest_;
    std::chrono::steady_clock::time_point largest_until_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<history::Sample> ring_; ///< slots; by mutex_, but for the two in use
    std::size_t next_ = 0;              ///< slot that is being filled
    std::size_t full_ = 0;              ///< number of slots before it that are to be written
    std::uint64_t dropped_ = 0;         ///< samples that found no slot
    std::vector<history::Happening> happenings_; ///< guarded by mutex_
    history::StepWatch steps_;                   ///< guarded by mutex_
    bool ends_ = false;                          ///< guarded by mutex_, like the next two
    bool is_started_ = false;
    bool asked_to_end_ = false;
    std::string reported_; ///< the last reported failure; the writer's alone
    std::thread looker_;
    std::thread writer_;
};

} // namespace umacct
