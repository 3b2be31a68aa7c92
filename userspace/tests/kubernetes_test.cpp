// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-device-plugin, spoken to as kubelet speaks: over gRPC, by what deviceplugin.proto says.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deviceplugin.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kubernetes/devices.h"
#include "kubernetes/node.h"
#include "kubernetes/service.h"
#include "lib/containers/runtimes.h"
#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct::kubernetes {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::chrono::seconds patience{60}; ///< a machine that is busy

/// Kubelet's side of the folder.
class Kubelet final : public v1beta1::Registration::Service {
public:
    explicit Kubelet(fs::path folder) : folder_(std::move(folder)) { start(); }

    ~Kubelet() override { stop(); }

    Kubelet(const Kubelet &) = delete;
    Kubelet &operator=(const Kubelet &) = delete;
    Kubelet(Kubelet &&) = delete;
    Kubelet &operator=(Kubelet &&) = delete;

    /// It removes what others left there, as the real one does.
    void start() {
        grpc::ServerBuilder builder;

        for (const auto &each : fs::directory_iterator(folder_))
            fs::remove(each.path());
        builder.AddListeningPort("unix:" + (folder_ / kubelet_socket).string(),
                                 grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        server_ = builder.BuildAndStart();
    }

    void stop() {
        if (server_)
            server_->Shutdown(std::chrono::system_clock::now());
        server_.reset();
    }

    void refuse(bool refuses) { refuses_ = refuses; }

    grpc::Status Register(grpc::ServerContext * /*context*/,
                          const v1beta1::RegisterRequest *request,
                          v1beta1::Empty * /*response*/) override {
        const std::lock_guard lock(mutex_);

        if (refuses_)
            return {grpc::StatusCode::UNKNOWN, "version\x1b[2J not supported"};
        requests_.push_back(*request);
        came_.notify_all();
        return grpc::Status::OK;
    }

    std::vector<v1beta1::RegisterRequest> requests() {
        const std::lock_guard lock(mutex_);

        return requests_;
    }

    bool wait_for(std::size_t registrations) {
        std::unique_lock lock(mutex_);

        return came_.wait_for(lock, patience, [&] { return requests_.size() >= registrations; });
    }

    /// Asks the plugin that registered last.
    std::unique_ptr<v1beta1::DevicePlugin::Stub> plugin() {
        grpc::ChannelArguments arguments;

        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        return v1beta1::DevicePlugin::NewStub(
            grpc::CreateCustomChannel("unix:" + (folder_ / requests().back().endpoint()).string(),
                                      grpc::InsecureChannelCredentials(), arguments));
    }

private:
    fs::path folder_;
    std::unique_ptr<grpc::Server> server_;
    std::mutex mutex_;
    std::condition_variable came_;
    bool refuses_ = false;
    std::vector<v1beta1::RegisterRequest> requests_;
};

std::string text_of(const fs::path &file) {
    return containers::read_text(file).value_or("");
}

/// A call's context, which ends in any case.
class Context : public grpc::ClientContext {
public:
    Context() { set_deadline(std::chrono::system_clock::now() + patience); }
};

class Watch {
public:
    explicit Watch(v1beta1::DevicePlugin::Stub &plugin)
        : reader_(plugin.ListAndWatch(&context_, v1beta1::Empty())) {}

    ~Watch() {
        context_.TryCancel();
        reader_->Finish();
    }

    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;
    Watch(Watch &&) = delete;
    Watch &operator=(Watch &&) = delete;

    /// Empty once there are no more.
    std::optional<v1beta1::ListAndWatchResponse> next() {
        v1beta1::ListAndWatchResponse list;

        return reader_->Read(&list) ? std::optional(list) : std::nullopt;
    }

private:
    Context context_;
    std::unique_ptr<grpc::ClientReader<v1beta1::ListAndWatchResponse>> reader_;
};

v1beta1::AllocateRequest request_for(const std::vector<std::vector<std::string>> &containers) {
    v1beta1::AllocateRequest request;

    for (const auto &ids : containers) {
        auto &container = *request.add_container_requests();
        for (const std::string &id : ids)
            container.add_devices_ids(id);
    }
    return request;
}

std::string refusal_of(const Offer &offer,
                       const std::vector<std::vector<std::string>> &containers) {
    try {
        allocate(offer, request_for(containers));
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

TEST(Devices, AsManyAsTheMachineHasOfAUnit) {
    const auto list = list_of({.memory = 10 * mib + 5, .unit = 2 * mib});

    ASSERT_EQ(list.devices_size(), 5);
    EXPECT_EQ(list.devices(0).id(), "0");
    EXPECT_EQ(list.devices(4).id(), "4");
    EXPECT_EQ(list.devices(4).health(), "Healthy");
    EXPECT_EQ(list_of({.memory = mib, .why_not = "x"}).devices(0).health(), "Unhealthy");
}

TEST(Devices, OfASparkTheyFitIntoAMessage) {
    const Offer spark{.memory = 128 * gib};
    Offer ill = spark;
    ill.why_not = "x";

    EXPECT_EQ(spark.devices(), 131072U);
    EXPECT_NO_THROW(check_size(spark));
    EXPECT_EQ(list_of(spark).ByteSizeLong(), 2'379'258U);
    EXPECT_EQ(list_of(ill).ByteSizeLong(), 2'641'402U);
    EXPECT_NO_THROW(check_size({.memory = 146 * gib})) << "as the manual says";
    EXPECT_THROW(check_size({.memory = 147 * gib}), Error);
    ill.memory = 146 * gib;
    EXPECT_LE(list_of(ill).ByteSizeLong(), largest_message) << "the plugin's own list is shorter";
}

TEST(Devices, MoreThanAMessageHoldsAreRefused) {
    for (const std::uint64_t memory : {256 * gib, 1024 * gib, std::uint64_t{1} << 62}) {
        try {
            check_size({.memory = memory});
            FAIL() << memory;
        } catch (const Error &error) {
            EXPECT_EQ(error.failure(), Failure::usage);
            const std::string &hint = error.hint();
            const std::uint64_t unit = std::stoull(hint.substr(hint.find(' ')));
            EXPECT_NO_THROW(check_size({.memory = memory, .unit = unit * mib})) << hint;
            EXPECT_THROW(check_size({.memory = memory, .unit = unit / 2 * mib}), Error) << hint;
        }
    }
}

TEST(Devices, TheirSumIsTheLimit) {
    const Offer offer{.memory = gib, .unit = 4 * mib};
    const auto response = allocate(offer, request_for({{"0", "7", "255"}, {"1"}}));

    ASSERT_EQ(response.container_responses_size(), 2);
    EXPECT_EQ(response.container_responses(0).annotations().at("umacct.io/allocated"), "12m");
    EXPECT_EQ(response.container_responses(1).annotations().at("umacct.io/allocated"), "4m");
    ASSERT_EQ(response.container_responses(0).cdi_devices_size(), 1);
    EXPECT_EQ(response.container_responses(0).cdi_devices(0).name(), "umacct.io/memory=allocated");
    EXPECT_EQ(allocate(offer, {}).container_responses_size(), 0);
}

/// The published description of the interface gives the same ones: see selftests/kubernetes.
TEST(Devices, EachMessageIsTheseBytes) {
    v1beta1::DevicePluginOptions options;
    v1beta1::RegisterRequest request;

    options.set_pre_start_required(true);
    options.set_get_preferred_allocation_available(true);
    EXPECT_EQ(options.SerializeAsString(), "\x08\x01\x10\x01");
    request.set_version("v");
    request.set_endpoint("e");
    request.set_resource_name("r");
    request.mutable_options()->set_pre_start_required(true);
    EXPECT_EQ(request.SerializeAsString(), "\x0a\x01v\x12\x01"
                                           "e\x1a\x01r\"\x02\x08\x01");
    EXPECT_EQ(list_of({.memory = mib}).SerializeAsString(), "\x0a\x0c\x0a\x01"
                                                            "0\x12\x07Healthy");
    EXPECT_EQ(request_for({{"0", "1"}}).SerializeAsString(), "\x0a\x06\x0a\x01"
                                                             "0\x0a\x01"
                                                             "1");
    EXPECT_EQ(allocate({.memory = mib}, request_for({{"0"}})).SerializeAsString(),
              "\x0a\x39\"\x19\x0a\x13umacct.io/allocated\x12\x02"
              "1m*\x1c\x0a\x1aumacct.io/memory=allocated");
}

TEST(Devices, WhatNobodyOfferedIsRefused) {
    const Offer offer{.memory = 256 * mib};

    for (const std::string id :
         {"", "256", "-1", "+1", "01", " 1", "1 ", "1.0", "0x1", "1e2", "18446744073709551616",
          "99999999999999999999", "a", "\x1b[2J", "\xff\xfe"}) {
        const std::string refusal = refusal_of(offer, {{"0", id}});
        EXPECT_NE(refusal.find("there is no device"), std::string::npos) << id;
        EXPECT_EQ(refusal.find('\x1b'), std::string::npos);
    }
    EXPECT_NE(refusal_of(offer, {{std::string("1\0", 2)}}), "");
    EXPECT_LT(refusal_of(offer, {{std::string(1 << 20, '1')}}).size(), 100U);
    EXPECT_NE(refusal_of(offer, {{"1", "1"}}).find("twice"), std::string::npos);
    EXPECT_NE(refusal_of(offer, {{"1"}, {"1"}}).find("twice"), std::string::npos)
        << "by two containers";
    EXPECT_NE(refusal_of(offer, {{"1"}, {}}), "") << "a limit of nothing would be none";
    EXPECT_NE(refusal_of({.memory = 256 * mib, .why_not = "reasons"}, {{"1"}}).find("reasons"),
              std::string::npos);
}

class KubernetesTest : public testing::Test {
protected:
    KubernetesTest() { fs::create_directories(folder_); }

    fs::path own() const { return folder_ / own_socket; }

    fs::path settings() const { return sandbox_.root() / "etc/containerd/config.toml"; }

    fs::path record() const { return sandbox_.root() / "var/lib/umacct/setup/containerd.json"; }

    fs::path containerd_socket() const {
        return sandbox_.root() / "run/containerd/containerd.sock";
    }

    /// Does what "umacct setup containerd" does.
    void set_up() const {
        const auto &containerd = *containers::find_runtime("containerd");

        containers::set_up(
            containerd, sandbox_.root(),
            containers::to_set_up(containerd, {.root = sandbox_.root(), .memory = gib}));
    }

    void install() const {
        sandbox_.write("usr/lib/umacct/umacct-hook", "");
        sandbox_.write("usr/bin/ctr", "#!/bin/sh\necho '{\"process\": {}, \"linux\": {}}'\n");
        fs::permissions(sandbox_.root() / "usr/bin/ctr", fs::perms(0755));
    }

    /// Sets its socket's age: it started that long after the last change of its files.
    void start_containerd(std::chrono::seconds after) const {
        auto changed = std::max(fs::last_write_time(record()), fs::last_write_time(settings()));

        sandbox_.write(containerd_socket(), "");
        fs::last_write_time(containerd_socket(), changed + after);
    }

    static void keep(Registered &registered) {
        registered.keep(std::chrono::duration_cast<std::chrono::milliseconds>(patience));
    }

    test::Sandbox sandbox_;
    fs::path folder_ = sandbox_.root() / "device-plugins";
};

TEST_F(KubernetesTest, RegistersAtKubelet) {
    DevicePlugin plugin({.memory = gib});
    Registered registered(plugin, folder_);

    struct stat found {};

    keep(registered);
    EXPECT_FALSE(registered.is_registered()) << "there is no kubelet yet";
    Kubelet kubelet(folder_);
    keep(registered);
    EXPECT_TRUE(registered.is_registered());
    keep(registered);
    ASSERT_EQ(kubelet.requests().size(), 1U) << "once is enough";
    EXPECT_EQ(kubelet.requests()[0].version(), "v1beta1");
    EXPECT_EQ(kubelet.requests()[0].resource_name(), "umacct.io/memory");
    EXPECT_EQ(kubelet.requests()[0].endpoint(), own_socket);
    EXPECT_FALSE(kubelet.requests()[0].options().pre_start_required());
    ASSERT_EQ(stat(own().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << "it is root's alone";

    Context context;
    v1beta1::DevicePluginOptions options;
    ASSERT_TRUE(kubelet.plugin()->GetDevicePluginOptions(&context, {}, &options).ok());
    EXPECT_FALSE(options.get_preferred_allocation_available());
}

TEST_F(KubernetesTest, AThingThatKubeletRefusesIsTriedAgain) {
    Kubelet kubelet(folder_);
    DevicePlugin plugin({.memory = gib});
    Registered registered(plugin, folder_);

    kubelet.refuse(true);
    try {
        keep(registered);
        FAIL();
    } catch (const Error &error) {
        EXPECT_NE(std::string(error.what()).find("not supported"), std::string::npos);
        EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
    }
    kubelet.refuse(false);
    keep(registered);
    EXPECT_EQ(kubelet.requests().size(), 1U);
}

TEST_F(KubernetesTest, SurvivesKubeletsRestarts) {
    Kubelet kubelet(folder_);
    DevicePlugin plugin({.memory = 2 * mib});
    Registered registered(plugin, folder_);

    keep(registered);
    for (std::size_t restarts = 1; restarts <= 3; ++restarts) {
        kubelet.stop();
        keep(registered);
        EXPECT_FALSE(registered.is_registered());
        kubelet.start();
        EXPECT_FALSE(fs::exists(own())) << "kubelet removes what others left";
        keep(registered);
        ASSERT_EQ(kubelet.requests().size(), restarts + 1);
        EXPECT_TRUE(fs::exists(own()));
        const auto stub = kubelet.plugin();
        EXPECT_EQ(Watch(*stub).next()->devices_size(), 2);
    }
    // Faster than the interval of looks.
    kubelet.stop();
    kubelet.start();
    keep(registered);
    EXPECT_EQ(kubelet.requests().size(), 5U);
}

TEST_F(KubernetesTest, AllOfASparkGoesThroughKubeletsClient) {
    Kubelet kubelet(folder_);
    DevicePlugin plugin({.memory = 128 * gib});
    Registered registered(plugin, folder_);

    keep(registered);
    const auto stub = kubelet.plugin();
    EXPECT_EQ(Watch(*stub).next()->devices_size(), 131072);

    // A container that asks for all of it.
    v1beta1::AllocateRequest request;
    auto &container = *request.add_container_requests();
    for (int i = 0; i < 131072; ++i)
        container.add_devices_ids(std::to_string(i));
    Context context;
    v1beta1::AllocateResponse response;
    ASSERT_TRUE(stub->Allocate(&context, request, &response).ok());
    EXPECT_EQ(response.container_responses(0).annotations().at("umacct.io/allocated"), "131072m");
}

TEST_F(KubernetesTest, WhoWatchesIsToldOfEveryChange) {
    Kubelet kubelet(folder_);
    const Offer well{.memory = 3 * mib};
    DevicePlugin plugin(well);
    Registered registered(plugin, folder_);

    keep(registered);
    const auto stub = kubelet.plugin();
    Watch watch(*stub);
    EXPECT_EQ(watch.next()->devices(0).health(), "Healthy");
    plugin.offer({.memory = 3 * mib, .why_not = "the module is gone"});
    EXPECT_EQ(watch.next()->devices(2).health(), "Unhealthy");

    Context context;
    v1beta1::AllocateResponse response;
    const grpc::Status status = stub->Allocate(&context, request_for({{"1"}}), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_NE(status.error_message().find("the module is gone"), std::string::npos);

    plugin.offer({.memory = 2 * mib});
    EXPECT_EQ(watch.next()->devices_size(), 2);
    Watch second(*stub);
    EXPECT_EQ(second.next()->devices_size(), 2) << "another that watches has it, too";
}

TEST_F(KubernetesTest, HostileInputStopsNothing) {
    Kubelet kubelet(folder_);
    DevicePlugin plugin({.memory = gib});
    Registered registered(plugin, folder_);

    keep(registered);
    const auto raw = [&](const std::string &bytes) {
        const FileDescriptor file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};

        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, own().c_str(), sizeof(address.sun_path) - 1);
        ASSERT_EQ(connect(file.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
        EXPECT_GE(send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    };
    raw("GET / HTTP/1.1\r\n\r\n");
    raw(std::string(100'000, '\xff'));
    raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(1000, '\0'));

    const auto stub = kubelet.plugin();
    for (const auto &containers : std::vector<std::vector<std::vector<std::string>>>{
             {{"1024"}}, {{"1", "1"}}, {{}}, {{std::string(1 << 20, '9')}}}) {
        Context context;
        v1beta1::AllocateResponse response;
        EXPECT_EQ(stub->Allocate(&context, request_for(containers), &response).error_code(),
                  grpc::StatusCode::INVALID_ARGUMENT);
    }
    {
        Context context;
        v1beta1::AllocateResponse response;
        const auto request = request_for({{std::string(largest_message + 1, '1')}});
        EXPECT_EQ(stub->Allocate(&context, request, &response).error_code(),
                  grpc::StatusCode::RESOURCE_EXHAUSTED)
            << "no message is larger than kubelet's";
    }
    Context context;
    v1beta1::AllocateResponse response;
    EXPECT_TRUE(stub->Allocate(&context, request_for({{"1"}}), &response).ok());
}

TEST_F(KubernetesTest, ItsEndEndsWatchingAndLeavesNoSocket) {
    Kubelet kubelet(folder_);
    DevicePlugin plugin({.memory = gib});
    std::optional<Registered> registered(std::in_place, plugin, folder_);

    keep(*registered);
    const auto stub = kubelet.plugin();
    Watch watch(*stub);
    EXPECT_TRUE(watch.next());
    registered.reset();
    EXPECT_FALSE(watch.next());
    EXPECT_FALSE(fs::exists(own()));

    // One that was killed left its own.
    sandbox_.write(own(), "");
    registered.emplace(plugin, folder_);
    keep(*registered);
    EXPECT_TRUE(fs::is_socket(own()));
    // A file that another put there since is left alone.
    fs::remove(own());
    sandbox_.write(own(), "another's");
    registered.reset();
    EXPECT_TRUE(fs::exists(own()));
}

TEST_F(KubernetesTest, ANodeOffersItsMemoryWhereLimitsHold) {
    test::FakeModule module;
    bool loaded = false;
    Connection connection([&] {
        if (!loaded)
            throw Error(Failure::missing, "the module is not loaded");
        return module.connect();
    });
    sandbox_.write(sandbox_.proc() / "meminfo", "MemTotal: 131072 kB\n");
    const Machine machine(sandbox_.proc(), sandbox_.root());
    Node node(connection, machine, mib);

    EXPECT_EQ(node.look().why_not, "the module is not loaded");
    EXPECT_EQ(node.look().devices(), 128U);
    loaded = true;
    EXPECT_NE(node.look().why_not.find("umacct setup containerd"), std::string::npos);
    install();
    set_up();
    start_containerd(1s);
    EXPECT_EQ(node.look().why_not, "");
    module.status.reserve = 28 * mib;
    EXPECT_EQ(node.look().devices(), 100U) << "the reserve is the machine's";
    const auto records = std::exchange(module.status.records, {});
    module.status.reserve = 0;
    EXPECT_NE(node.look().why_not.find("CAP_DAC_READ_SEARCH"), std::string::npos)
        << "where the module keeps the reserve from it, it offers none of it";
    module.status.records = records;
    module.status.reserve = 28 * mib;
    module.status.untracked_count = 1;
    EXPECT_TRUE(node.look().healthy()) << "figures that are off are no limit that is";
    module.status.driver_state = UMACCT_DRIVER_UNKNOWN;
    EXPECT_NE(node.look().why_not.find("nothing is accounted"), std::string::npos);
    module.fail_with = ENODEV;
    EXPECT_FALSE(node.look().healthy());
    module.fail_with.reset();
    module.status.driver_state = UMACCT_DRIVER_HOOKED;
    EXPECT_TRUE(node.look().healthy()) << "it is asked anew";
}

/// Containerd reads its files at its start alone.
TEST_F(KubernetesTest, ANodeOffersNothingBeforeContainerdHasTheHook) {
    const std::string root = sandbox_.root().string();
    const auto why = [&] { return why_no_hook(sandbox_.root()); };
    const auto says = [&](const std::string &what) {
        const std::string said = why();

        EXPECT_EQ(said.find(root), std::string::npos) << "the node has other paths: " << said;
        return said.find(what) != std::string::npos ? testing::AssertionSuccess()
                                                    : testing::AssertionFailure() << said;
    };

    install();
    set_up();
    EXPECT_TRUE(says("containerd does not run: its socket /run/containerd/containerd.sock"));
    start_containerd(-1s);
    EXPECT_TRUE(says("restart it: 'systemctl restart containerd'"));
    start_containerd(1s);
    EXPECT_EQ(why(), "");

    set_up();
    EXPECT_EQ(why(), "") << "a second setup that changes nothing takes no restart";
    const std::string text = text_of(settings());
    sandbox_.write(settings(), "oom_score = 5\n" + text);
    fs::last_write_time(settings(), fs::last_write_time(containerd_socket()) + 1s);
    EXPECT_TRUE(says("restart it")) << "what it has read is not known";
    start_containerd(1s);
    EXPECT_EQ(why(), "") << "what an administrator adds is no harm";

    // The clock was a day ahead when it was set up.
    for (const fs::path &file : {record(), settings()})
        fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::hours(24));
    sandbox_.write(containerd_socket(), "");
    EXPECT_TRUE(says("dated later than now"));
    set_up();
    start_containerd(1s);
    EXPECT_EQ(why(), "");

    // The file that containerd reads from then on lacks the hook, though it is there now.
    sandbox_.write(settings(), "version = 2\n");
    start_containerd(1s);
    EXPECT_TRUE(says("/etc/containerd/config.toml is not as umacct-hook needs it"));
    set_up();
    fs::last_write_time(containerd_socket(), fs::last_write_time(record()) - 1s);
    EXPECT_TRUE(says("restart it"));
    start_containerd(1s);
    EXPECT_EQ(why(), "");

    // A file as nvidia-ctk writes it.
    sandbox_.write(settings(), "imports = ['/etc/containerd/conf.d/*.toml']\n" + text);
    start_containerd(1s);
    EXPECT_EQ(why(), "");
    sandbox_.write("etc/containerd/conf.d/99-nvidia.toml",
                   "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia]\n"
                   "runtime_type = 'io.containerd.runc.v2'\n");
    EXPECT_TRUE(says("/etc/containerd/conf.d/99-nvidia.toml is not"));
    fs::remove_all(sandbox_.root() / "etc/containerd/conf.d");

    for (const char *file : {"etc/containerd/umacct-base.json", "etc/cdi/umacct-memory.json",
                             "etc/cdi/umacct-allocated.json"}) {
        const std::string whole = text_of(sandbox_.root() / file);
        const auto time = fs::last_write_time(sandbox_.root() / file);

        sandbox_.write(file, "{}");
        EXPECT_TRUE(says(std::string("/") + file + " is not as umacct-hook needs it"));
        fs::remove(sandbox_.root() / file);
        EXPECT_TRUE(says(std::string("/") + file + " is not as umacct-hook needs it"));
        sandbox_.write(file, whole);
        fs::last_write_time(sandbox_.root() / file, time);
        EXPECT_EQ(why(), "");
    }
    sandbox_.write(settings(), "version = ");
    EXPECT_NE(why().find("config.toml:1"), std::string::npos);
    sandbox_.write(settings(), text + "[grpc]\naddress = '/run/other/own.sock'\n");
    EXPECT_TRUE(says("its socket /run/other/own.sock"));
}

/// The toolkit's runtime is removed, with what it has containerd read.
TEST_F(KubernetesTest, ANodeOffersItsMemoryThoughOneOfItsRuntimesIsGone) {
    const auto why = [&] { return why_no_hook(sandbox_.root()); };
    const fs::path base = "etc/containerd/umacct-base-nvidia.json";

    install();
    sandbox_.write(settings(), "version = 2\nimports = ['/etc/containerd/conf.d/*.toml']\n");
    sandbox_.write("etc/containerd/own.json", "{}");
    sandbox_.write("etc/containerd/conf.d/99-nvidia.toml",
                   "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia]\n"
                   "base_runtime_spec = '/etc/containerd/own.json'\n");
    set_up();
    start_containerd(1s);
    EXPECT_EQ(why(), "");
    fs::remove_all(sandbox_.root() / "etc/containerd/conf.d");
    EXPECT_EQ(why(), "") << "the settings that are left have the hook";

    for (const bool is_gone : {false, true}) {
        sandbox_.write(base, "{}");
        if (is_gone)
            fs::remove(sandbox_.root() / base);
        EXPECT_NE(why().find("umacct-base-nvidia.json is not as umacct-hook needs it"),
                  std::string::npos)
            << why();
        set_up();
        start_containerd(1s);
        EXPECT_EQ(why(), "") << "no container is made of it any more";
    }
}

/// The node's files are below another folder in the plugin's container.
TEST_F(KubernetesTest, TheNodesFilesAreReadBelowItsRoot) {
    install();
    set_up();
    start_containerd(1s);
    std::string text = text_of(record());
    const std::string root = sandbox_.root().string();
    for (auto at = text.find(root); at != std::string::npos; at = text.find(root))
        text.erase(at, root.size());
    sandbox_.write(record(), text);
    start_containerd(1s);
    EXPECT_EQ(why_no_hook(sandbox_.root()), "");
    sandbox_.write("etc/cdi/umacct-memory.json", "{}");
    EXPECT_NE(why_no_hook(sandbox_.root()).find("/etc/cdi/umacct-memory.json"), std::string::npos);
}

TEST_F(KubernetesTest, CrioReadsItsFilesAtItsStartToo) {
    const auto &crio = *containers::find_runtime("crio");
    const fs::path at = sandbox_.root() / "run/crio/crio.sock";
    const fs::path made = sandbox_.root() / "var/lib/umacct/setup/crio.json";

    install();
    containers::set_up(crio, sandbox_.root(),
                       containers::to_set_up(crio, {.root = sandbox_.root(), .memory = gib}));
    sandbox_.write(at, "");
    fs::last_write_time(at, fs::last_write_time(made) - 1s);
    EXPECT_NE(why_no_hook(sandbox_.root()).find("systemctl restart crio"), std::string::npos);
    fs::last_write_time(at, fs::last_write_time(made) + 1s);
    EXPECT_EQ(why_no_hook(sandbox_.root()), "");
    sandbox_.write("etc/crio/crio.conf.d/90-umacct.conf", "");
    EXPECT_NE(why_no_hook(sandbox_.root()).find("90-umacct.conf is not"), std::string::npos);
}

TEST_F(KubernetesTest, TheContainerdOfK3sHasASocketElsewhere) {
    const auto &k3s = *containers::find_runtime("k3s");
    const std::string folder = "var/lib/rancher/k3s/agent/etc/containerd/";
    const fs::path at = sandbox_.root() / "run/k3s/containerd/containerd.sock";
    const fs::path made = sandbox_.root() / folder / "config-v3.toml.d/99-umacct.toml";

    install();
    sandbox_.write(folder + "config.toml",
                   "version = 3\nimports = ['/" + folder + "config-v3.toml.d/*.toml']\n");
    fs::create_directories(sandbox_.root() / "usr/local/bin");
    sandbox_.write("usr/local/bin/k3s", "#!/bin/sh\necho '{\"process\": {}, \"linux\": {}}'\n");
    fs::permissions(sandbox_.root() / "usr/local/bin/k3s", fs::perms(0755));
    containers::set_up(k3s, sandbox_.root(),
                       containers::to_set_up(k3s, {.root = sandbox_.root(), .memory = gib}));
    EXPECT_NE(why_no_hook(sandbox_.root()).find("k3s does not run"), std::string::npos);
    sandbox_.write(at, "");
    fs::last_write_time(at, fs::last_write_time(made) - 1s);
    EXPECT_NE(why_no_hook(sandbox_.root()).find("systemctl try-restart 'k3s*'"), std::string::npos);
    fs::last_write_time(at, fs::last_write_time(made) + 1s);
    EXPECT_EQ(why_no_hook(sandbox_.root()), "");
}

TEST_F(KubernetesTest, TheProgramRegistersAndEndsBySigterm) {
    Kubelet kubelet(folder_);
    // selftests/run kubernetes has one that was built by another description of the interface.
    const char *other = std::getenv("UMACCT_DEVICE_PLUGIN");
    std::string program = other != nullptr ? other : UMACCT_DEVICE_PLUGIN;
    std::string folder = "--folder=" + folder_.string();
    std::string root = "--root=" + sandbox_.root().string();
    std::array<char *, 4> argv{program.data(), folder.data(), root.data(), nullptr};
    pid_t pid = -1;
    int status = 0;

    ASSERT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ), 0);
    EXPECT_TRUE(kubelet.wait_for(1));
    const auto stub = kubelet.plugin();
    Watch watch(*stub);
    const auto list = watch.next();
    EXPECT_TRUE(list && list->devices_size() > 0 && list->devices(0).health() == "Unhealthy")
        << "nothing is set up in that folder";
    Context context;
    v1beta1::DevicePluginOptions options;
    EXPECT_TRUE(stub->GetDevicePluginOptions(&context, {}, &options).ok());
    Context second;
    v1beta1::AllocateResponse response;
    EXPECT_EQ(stub->Allocate(&second, request_for({{"0"}}), &response).error_code(),
              grpc::StatusCode::FAILED_PRECONDITION);
    kubelet.stop();
    kubelet.start();
    EXPECT_TRUE(kubelet.wait_for(2)) << "the folder told it of the new kubelet";
    EXPECT_EQ(kill(pid, SIGTERM), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_FALSE(fs::exists(own()));
}

} // namespace
} // namespace umacct::kubernetes
