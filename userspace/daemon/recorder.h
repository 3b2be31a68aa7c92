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
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/failure_log.h"
#include "lib/history/sample.h"
#include "lib/history/writer.h"
#include "lib/module/module.h"

namespace umacct {

class Recorder {
public:
    /// Takes a line about what it does; from its threads. failed: it can't.
    using Tell = std::function<void(const std::string &line, bool failed)>;

    /// Records where the folder of umacctd's state is, below root; else says that it doesn't.
    /// tell_failure: takes what the journal is to have of requests that the driver failed.
    /// observe: who counts where the module isn't loaded; may be empty.
    Recorder(Connection::Connect connect, std::filesystem::path proc, std::filesystem::path root,
             Tell tell, FailureLog::Tell tell_failure, Connection::Connect observe = {});
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

    /// A step of the guard's, in words.
    void add_step(std::string_view path, const std::string &line, bool failed);

private:
    void add(history::Happening happening);
    void listen();
    const std::vector<Account> &largest(Module &module);
    void take_events(Module &module, const std::vector<Event> &events);
    void look();
    void write();
    bool write_some(history::Writer &writer);
    void tell_once(const std::string &line);

    Connection::Connect connect_;
    Connection::Connect observe_;
    Connection listener_; ///< to the module's events; the looker's alone, as is the next
    bool listens_ = false;
    std::filesystem::path proc_;
    std::filesystem::path root_;
    Tell tell_;
    FailureLog failures_; ///< the looker's alone, as are the next two
    std::vector<Account> largest_;
    std::chrono::steady_clock::time_point largest_until_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<history::Sample> ring_;          ///< slots; by mutex_, but for the two in use
    std::size_t next_ = 0;                       ///< that is written into
    std::size_t full_ = 0;                       ///< so many before it are to be written
    std::uint64_t dropped_ = 0;                  ///< samples that found no slot
    std::vector<history::Happening> happenings_; ///< by mutex_
    bool ends_ = false;                          ///< by mutex_, as the next one
    bool told_to_end_ = false;
    std::string told_; ///< what went wrong last; the writer's alone
    std::thread looker_;
    std::thread writer_;
};

} // namespace umacct
