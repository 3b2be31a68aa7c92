// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fake_announcements.h"

#include <atomic>
#include <mutex>
#include <utility>

#include <sys/eventfd.h>

#include "lib/host/file_descriptor.h"

namespace umacct::test {

struct FakeAnnouncements::State {
    FileDescriptor event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex;
    Announcements::News news; ///< guarded by mutex
    std::atomic<int> taken = 0;
};

namespace {

class Listener : public Announcements {
public:
    explicit Listener(std::shared_ptr<FakeAnnouncements::State> state) : state_(std::move(state)) {}

    int fd() const override { return state_->event.get(); }

    News take() override {
        const std::lock_guard lock(state_->mutex);
        eventfd_t count = 0;

        eventfd_read(state_->event.get(), &count);
        ++state_->taken;
        return std::exchange(state_->news, {});
    }

private:
    std::shared_ptr<FakeAnnouncements::State> state_;
};

} // namespace

FakeAnnouncements::FakeAnnouncements() : state_(std::make_shared<State>()) {}

void FakeAnnouncements::announce(const Announcements::News &news) {
    const std::lock_guard lock(state_->mutex);

    state_->news = news;
    eventfd_write(state_->event.get(), 1);
}

int FakeAnnouncements::taken() const {
    return state_->taken;
}

std::unique_ptr<Announcements> FakeAnnouncements::listen() {
    return std::make_unique<Listener>(state_);
}

} // namespace umacct::test
