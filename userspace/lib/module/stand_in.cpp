// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/stand_in.h"

#include <chrono>
#include <utility>

#include "lib/error.h"

namespace umacct {

namespace {

constexpr std::chrono::seconds ask_interval{1};

class StandIn : public Transport {
public:
    StandIn(std::unique_ptr<Transport> stand_in,
            std::function<std::unique_ptr<Transport>()> connect)
        : transport_(std::move(stand_in)), connect_(std::move(connect)) {}

    Payload request(umacct_cmd command, const Payload &attributes) override {
        look_for_module();
        return transport_->request(command, attributes);
    }

    bool dump(umacct_cmd command, const Payload &attributes, const Take &take) override {
        look_for_module();
        return transport_->dump(command, attributes, take);
    }

    void subscribe() override {
        look_for_module();
        transport_->subscribe();
    }

    /// The module's events are others, with numbers of their own.
    Received<Payload> receive(std::chrono::milliseconds timeout) override {
        if (look_for_module())
            return {.events = {}, .gone = true};
        return transport_->receive(timeout);
    }

private:
    using Clock = std::chrono::steady_clock;

    /// Whether it was found just now.
    bool look_for_module() {
        if (!connect_ || Clock::now() < ask_at_)
            return false;
        ask_at_ = Clock::now() + ask_interval;
        try {
            transport_ = connect_();
            connect_ = {};
        } catch (const Error &) {
            // It isn't there yet, and until then nothing is lost.
            return false;
        }
        return true;
    }

    std::unique_ptr<Transport> transport_;
    std::function<std::unique_ptr<Transport>()> connect_; ///< empty once it was found
    /// The caller that made this has just asked.
    Clock::time_point ask_at_ = Clock::now() + ask_interval;
};

} // namespace

std::unique_ptr<Transport> until_loaded(std::unique_ptr<Transport> stand_in,
                                        std::function<std::unique_ptr<Transport>()> connect) {
    return std::make_unique<StandIn>(std::move(stand_in), std::move(connect));
}

} // namespace umacct
