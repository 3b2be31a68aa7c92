// SPDX-License-Identifier: GPL-2.0-or-later
/// Scopes of a systemd that a child of the test plays, on a D-Bus of the test's own.
#include "lib/host/scope.h"

#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/process.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr const char *config = R"(<busconfig><listen>unix:path=SOCKET</listen>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/>
<allow own="*"/><allow user="*"/></policy></busconfig>)";

constexpr std::uint32_t member = 4711;

/// Does what systemd does when it is asked for a scope.
enum class Manner { starts, refuses, fails, forgets };

struct Systemd {
    const test::Sandbox &sandbox;
    Manner manner;

    static int answer(sd_bus_message *call, void *self, sd_bus_error * /*error*/) {
        const Systemd &systemd = *static_cast<Systemd *>(self);
        const char *unit = nullptr;
        const char *mode = nullptr;

        if (sd_bus_message_is_method_call(call, nullptr, "StartTransientUnit") <= 0)
            return 0;
        if (systemd.manner == Manner::refuses)
            return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                              "Not yours.");
        sd_bus_message_read(call, "ss", &unit, &mode);
        systemd.note_description(call);
        for (const char *job : {"/job/other", "/job/1"})
            systemd.end(call, job, unit);
        return sd_bus_reply_method_return(call, "o", "/job/1");
    }

    /// Writes down the first of the properties.
    void note_description(sd_bus_message *call) const {
        const char *key = nullptr;
        const char *value = nullptr;

        sd_bus_message_enter_container(call, 'a', "(sv)");
        sd_bus_message_enter_container(call, 'r', "sv");
        sd_bus_message_read(call, "s", &key);
        sd_bus_message_read(call, "v", "s", &value);
        if (key == std::string("Description"))
            sandbox.write("description", value);
    }

    /// Ends a job before its answer is read, which a listener may not miss.
    void end(sd_bus_message *call, const char *job, const char *unit) const {
        const bool ours = std::string(job) == "/job/1";

        if (ours && manner == Manner::starts)
            sandbox.add_process(member, std::string("/system.slice/") + unit);
        sd_bus_emit_signal(sd_bus_message_get_bus(call), "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", 1U, job, unit,
                           ours && manner == Manner::fails ? "failed" : "done");
    }

    void serve() {
        sd_bus *bus = nullptr;

        if (sd_bus_open_system(&bus) < 0 || sd_bus_add_filter(bus, nullptr, answer, this) < 0 ||
            sd_bus_request_name(bus, "org.freedesktop.systemd1", 0) < 0)
            _exit(1);
        while (sd_bus_process(bus, nullptr) > 0 || sd_bus_wait(bus, UINT64_MAX) >= 0) {
        }
    }
};

class ScopeTest : public testing::Test {
protected:
    void SetUp() override {
        std::string text = config;
        const std::string socket = (sandbox_.proc() / "bus").string();

        sandbox_.write("bus.conf", text.replace(text.find("SOCKET"), 6, socket));
        setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + socket).c_str(), 1);
        sandbox_.add_process(member, "/before");
        daemon_ = std::make_unique<Process>([this] {
            die_with_parent();
            const auto conf =
                "--config-file=" + (sandbox_.proc().parent_path() / "bus.conf").string();
            execlp("dbus-daemon", "dbus-daemon", conf.c_str(), "--nofork", nullptr);
        });
        // The socket exists before the service listens.
        sd_bus *bus = nullptr;
        for (int i = 0; i < 500 && sd_bus_open_system(&bus) < 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ASSERT_NE(bus, nullptr);
        sd_bus_flush_close_unref(bus);
    }

    void TearDown() override { unsetenv("DBUS_SYSTEM_BUS_ADDRESS"); }

    void start_systemd(Manner manner) {
        systemd_ = std::make_unique<Process>([this, manner] {
            die_with_parent();
            Systemd{sandbox_, manner}.serve();
        });
        // Its name is taken once it answers.
        sd_bus *bus = nullptr;
        ASSERT_GE(sd_bus_open_system(&bus), 0);
        for (int i = 0;
             i < 500 && sd_bus_get_name_creds(bus, "org.freedesktop.systemd1", 0, nullptr) < 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        sd_bus_flush_close_unref(bus);
    }

    std::string error(Failure failure) {
        const auto start = std::chrono::steady_clock::now();

        try {
            return "made " + Scope(cgroups_, "x", "What it is", {member}, true).path();
        } catch (const Error &error) {
            EXPECT_EQ(error.failure(), failure);
            EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
            return error.what();
        }
    }

    test::Sandbox sandbox_;
    Cgroups cgroups_{sandbox_.proc()};
    std::unique_ptr<Process> daemon_;
    std::unique_ptr<Process> systemd_;
};

TEST_F(ScopeTest, IsWhereSystemdMovedTheCommandTo) {
    start_systemd(Manner::starts);
    EXPECT_EQ(Scope(cgroups_, "trial", "A trial", {member}, true).path(),
              "/system.slice/trial.scope");

    std::string description;
    std::getline(std::ifstream(sandbox_.root() / "description"), description);
    EXPECT_EQ(description, "A trial");
}

TEST_F(ScopeTest, WhoMayNotIsToldSoAtOnce) {
    start_systemd(Manner::refuses);
    EXPECT_EQ(error(Failure::permission), "cannot start the scope x.scope: Not yours.");
}

TEST_F(ScopeTest, AJobThatFailsIsAnError) {
    start_systemd(Manner::fails);
    EXPECT_EQ(error(Failure::failed), "cannot start the scope x.scope: the job is failed");
}

TEST_F(ScopeTest, ACommandThatWasNotMovedIsAnError) {
    start_systemd(Manner::forgets);
    EXPECT_EQ(error(Failure::failed),
              "cannot move the command to x.scope: systemd left it where it was");
}

TEST_F(ScopeTest, WithoutSystemdOnTheBusIsAnError) {
    const std::string text = error(Failure::failed);

    EXPECT_TRUE(text.starts_with("cannot start the scope x.scope: ")) << text;
}

} // namespace
} // namespace umacct
