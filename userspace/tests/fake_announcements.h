// SPDX-License-Identifier: GPL-2.0-or-later
/// The kernel's announcements of the module, from any thread of the test.
#pragma once

#include <memory>

#include "lib/module/announcements.h"

namespace umacct::test {

class FakeAnnouncements {
public:
    FakeAnnouncements();

    void announce(const Announcements::News &news);

    /// How often what was announced was taken.
    int taken() const;

    std::unique_ptr<Announcements> listen();

    struct State;

private:
    std::shared_ptr<State> state_;
};

} // namespace umacct::test
