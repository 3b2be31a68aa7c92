// SPDX-License-Identifier: GPL-2.0-or-later
/// Lines on standard error; the journal learns from each how much it matters.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "lib/error.h"
#include "lib/json.h"

namespace umacct {

/// The kernel's numbers.
enum class Level { error = 3, warning = 4, notice = 5, info = 6 };

void log_line(Level level, const std::string &text);

/// Writes log lines in a thread of its own while it exists: a stopped terminal or a full journal
/// delays no other thread. Lines that don't fit are counted, and the log has their number. There is
/// one at a time.
class LogThread {
public:
    LogThread();
    LogThread(const LogThread &) = delete;
    LogThread &operator=(const LogThread &) = delete;
    LogThread(LogThread &&) = delete;
    LogThread &operator=(LogThread &&) = delete;
    /// Writes what is left, if that takes no more than a second.
    ~LogThread();

    /// Has the thread do that. False where there is no such thread.
    static bool enqueue(std::function<void()> write);

private:
    struct Queue;

    static void run(Queue &queue);

    static std::atomic<Queue *> current;
    std::shared_ptr<Queue> own_; ///< the thread has it, too: it may still be writing at the end
    std::thread thread_;
};

/// A line that programs are to find, too: in the journal, by the id of its kind, with a field
/// UMACCT_KEY for each member of the event.
void log_event(Level level, const std::string &text, const char *message_id, const Json &event);

/// Logs an error with its hint; for a policy, all of its errors.
void log_error(const Error &error, const std::string &before = "", Level level = Level::error);

} // namespace umacct
