// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-dra, between a stand-in for kubelet, which speaks what dra.proto and
/// pluginregistration.proto say, and one for the API server, which has objects at paths.
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kubernetes/api_server.h"
#include "kubernetes/claims.h"
#include "kubernetes/dra.h"
#include "kubernetes/slice.h"
#include "lib/error.h"
#include "tests/sandbox.h"

namespace umacct::kubernetes {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::uint64_t gib = 1ULL << 30;
constexpr const char *claim_uid = "0a1b2c3d-0000-4000-8000-123456789abc";
constexpr const char *claim_path = "/apis/resource.k8s.io/v1/namespaces/prod/resourceclaims/llm";
constexpr const char *slice_path = "/apis/resource.k8s.io/v1/resourceslices/spark-umacct.io";

/// Objects at paths; each change gives an object another resourceVersion.
class Api {
public:
    Api()
        : daemon_(MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, answer,
                                   this, MHD_OPTION_SOCK_ADDR, loopback(), MHD_OPTION_END)) {}

    ~Api() { MHD_stop_daemon(daemon_); }

    Api(const Api &) = delete;
    Api &operator=(const Api &) = delete;
    Api(Api &&) = delete;
    Api &operator=(Api &&) = delete;

    std::string url() const {
        return "http://127.0.0.1:" +
               std::to_string(MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port);
    }

    void put(const std::string &path, const json &object) {
        const std::lock_guard lock(mutex_);

        objects_[path] = object;
    }

    json get(const std::string &path) {
        const std::lock_guard lock(mutex_);

        return objects_.contains(path) ? objects_[path] : json();
    }

    void remove(const std::string &path) {
        const std::lock_guard lock(mutex_);

        objects_.erase(path);
    }

    /// The requests that changed something since the last time, and what each had as its token.
    std::vector<std::string> changes() {
        const std::lock_guard lock(mutex_);

        return std::exchange(changes_, {});
    }

    std::string token() {
        const std::lock_guard lock(mutex_);

        return token_;
    }

    void refuse(int status) { refuses_ = status; }

private:
    static const sockaddr *loopback() {
        static sockaddr_in address{};

        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return reinterpret_cast<const sockaddr *>(&address);
    }

    static MHD_Result answer(void *self, MHD_Connection *connection, const char *url,
                             const char *method, const char * /*version*/, const char *data,
                             std::size_t *size, void **state) {
        auto *body = static_cast<std::string *>(*state);

        if (body == nullptr) {
            *state = new std::string();
            return MHD_YES;
        }
        if (*size != 0) {
            body->append(data, *size);
            *size = 0;
            return MHD_YES;
        }
        const std::unique_ptr<std::string> owner(body);
        const char *token =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
        *state = nullptr;
        const auto [status, text] =
            static_cast<Api *>(self)->handle(method, url, *body, token == nullptr ? "" : token);
        MHD_Response *response = MHD_create_response_from_buffer(
            text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);
        const MHD_Result result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return result;
    }

    std::pair<unsigned, std::string> handle(const std::string &method, std::string path,
                                            const std::string &body, const std::string &token) {
        const std::lock_guard lock(mutex_);
        const auto failure = [](unsigned status, const char *why) {
            return std::pair(status, json{{"kind", "Status"}, {"message", why}}.dump());
        };

        token_ = token;
        if (refuses_ != 0)
            return failure(refuses_, "not \x1b[2Jallowed");
        if (method == "POST")
            path += "/" + json::parse(body)["metadata"]["name"].get<std::string>();
        if (method != "GET")
            changes_.push_back(method + " " + path);
        const bool is_there = objects_.contains(path);
        if (method == "POST" ? is_there : !is_there)
            return failure(is_there ? 409 : 404, "not there, or there");
        if (method == "PUT" && json::parse(body)["metadata"]["resourceVersion"] !=
                                   objects_[path]["metadata"]["resourceVersion"])
            return failure(409, "another version");
        if (method == "DELETE") {
            objects_.erase(path);
            return {200, "{}"};
        }
        if (method == "POST" || method == "PUT") {
            objects_[path] = json::parse(body);
            objects_[path]["metadata"]["resourceVersion"] = std::to_string(++version_);
            objects_[path]["spec"]["added"] = "by the server";
        }
        return {200, objects_[path].dump()};
    }

    std::mutex mutex_;
    std::map<std::string, json> objects_;
    std::vector<std::string> changes_;
    std::string token_;
    int refuses_ = 0;
    int version_ = 0;
    MHD_Daemon *daemon_;
};

json result_of(const std::string &amount, const std::string &pool = "spark") {
    return {{"request", "model"}, {"driver", "umacct.io"},
            {"pool", pool},       {"device", "memory"},
            {"shareID", "5a9c"},  {"consumedCapacity", {{"memory", amount}}}};
}

/// A claim that the scheduler allocated, for one pod.
json claim_of(const json &results) {
    return {{"metadata", {{"name", "llm"}, {"namespace", "prod"}, {"uid", claim_uid}}},
            {"status",
             {{"allocation", {{"devices", {{"results", results}}}}},
              {"reservedFor", {{{"resource", "pods"}, {"name", "vllm-0"}, {"uid", "1"}}}}}}};
}

json container_with(const std::string &claim) {
    return {{"name", "c"}, {"resources", {{"claims", {{{"name", claim}}}}}}};
}

json pod_of(const json &containers) {
    return {
        {"metadata", {{"name", "vllm-0"}}},
        {"spec",
         {{"containers", containers},
          {"resourceClaims", {{{"name", "gpu-memory"}, {"resourceClaimTemplateName", "t"}}}}}},
        {"status",
         {{"resourceClaimStatuses", {{{"name", "gpu-memory"}, {"resourceClaimName", "llm"}}}}}}};
}

Json ordered(const json &value) {
    return Json::parse(value.dump());
}

template <class Call>
std::string error_of(Call call) {
    try {
        call();
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

TEST(Quantity, IsInBytesWithBothKindsOfUnits) {
    EXPECT_EQ(parse_quantity("40Gi"), 40 * gib) << "and no 40 billion devices";
    EXPECT_EQ(parse_quantity("24Mi"), 24U << 20);
    EXPECT_EQ(parse_quantity("1.5Gi"), 3 * gib / 2);
    EXPECT_EQ(parse_quantity("40G"), 40'000'000'000U);
    EXPECT_EQ(parse_quantity("1e9"), 1'000'000'000U);
    EXPECT_EQ(parse_quantity("128974848"), 128'974'848U);
    EXPECT_EQ(parse_quantity("1500m"), 1U) << "thousandths";
    EXPECT_EQ(parse_quantity("0"), 0U);
    for (const char *wrong : {"", "-1", "+1", " 1", "1 Gi", "1gi", "Gi", "1GiB", "0x10", "nan",
                              "inf", "1e99", "9Ei", "1\x1b[2J"})
        EXPECT_NE(error_of([&] { parse_quantity(wrong); }).find("is no amount"), std::string::npos)
            << wrong;
}

TEST(Claims, HaveWhatTheSchedulerAllocatedOnThisNode) {
    json other = result_of("1Gi");
    other["driver"] = "gpu.nvidia.com";
    const auto shares = shares_of(
        ordered(claim_of(json::array({other, result_of("24Mi"), result_of("2Gi", "other")}))),
        "spark");

    EXPECT_EQ(shares, (std::vector<Share>{{.request = "model", .bytes = 24U << 20}}));
}

TEST(Claims, ThatCannotBeALimitAreRefused) {
    const auto refusal = [](const json &claim) {
        return error_of([&] { shares_of(ordered(claim), "spark"); });
    };
    json shared = claim_of(json::array({result_of("1Gi")}));
    json old = claim_of(json::array({result_of("1Gi")}));

    EXPECT_NE(
        refusal(claim_of(json::array({result_of("1Gi", "other")}))).find("no memory of this node"),
        std::string::npos);
    EXPECT_NE(refusal(json::object()), "");
    EXPECT_NE(refusal(claim_of(json::array({result_of("0")}))).find("would be none"),
              std::string::npos);
    shared["status"]["reservedFor"].push_back({{"resource", "pods"}, {"name", "b"}});
    EXPECT_NE(refusal(shared).find("2 pods"), std::string::npos);
    old["status"]["allocation"]["devices"]["results"][0].erase("consumedCapacity");
    EXPECT_NE(refusal(old).find("how much"), std::string::npos);
}

TEST(Claims, AreOneContainersAtATime) {
    EXPECT_EQ(containers_with(ordered(pod_of(json::array({container_with("gpu-memory")}))), "llm"),
              1U);
    EXPECT_EQ(containers_with(
                  ordered(pod_of(json::array({container_with("gpu-memory"), container_with("other"),
                                              container_with("gpu-memory")}))),
                  "llm"),
              2U);
    EXPECT_EQ(
        containers_with(ordered(pod_of(json::array({container_with("gpu-memory")}))), "other"), 0U);

    json pod = pod_of(json::array({container_with("gpu-memory")}));
    pod["spec"]["initContainers"] = json::array({container_with("gpu-memory")});
    EXPECT_EQ(containers_with(ordered(pod), "llm"), 1U) << "it has ended by then";
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always";
    EXPECT_EQ(containers_with(ordered(pod), "llm"), 2U) << "a sidecar";
    pod = pod_of(json::array({container_with("mine")}));
    pod["spec"]["resourceClaims"] = json::array({{{"name", "mine"}, {"resourceClaimName", "llm"}}});
    EXPECT_EQ(containers_with(ordered(pod), "llm"), 1U) << "by the claim's own name";
}

class DraTest : public testing::Test {
protected:
    DraTest() {
        api_.put("/api/v1/nodes/spark", {{"metadata", {{"name", "spark"}, {"uid", "n-1"}}}});
        api_.put(claim_path, claim_of(json::array({result_of("24Mi")})));
        api_.put("/api/v1/namespaces/prod/pods/vllm-0",
                 pod_of(json::array({container_with("gpu-memory")})));
        sandbox_.write("token", "secret\n");
        claims_.set("/usr/lib/umacct/umacct-hook", "");
    }

    static std::shared_ptr<grpc::Channel> channel(const fs::path &socket) {
        grpc::ChannelArguments arguments;

        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        return grpc::CreateCustomChannel("unix:" + socket.string(),
                                         grpc::InsecureChannelCredentials(), arguments);
    }

    /// Asks as kubelet does, for a claim of this uid.
    dra::NodePrepareResourceResponse prepare(const std::string &uid = claim_uid) {
        grpc::ClientContext context;
        dra::NodePrepareResourcesRequest request;
        dra::NodePrepareResourcesResponse response;
        const auto stub = dra::DRAPlugin::NewStub(channel(DriverServer::claims_socket(kubelet_)));

        add_claim(request, uid);
        EXPECT_TRUE(stub->NodePrepareResources(&context, request, &response).ok());
        EXPECT_EQ(response.claims().count(uid), 1U) << "none may be missing";
        return response.claims().at(uid);
    }

    std::string unprepare(const std::string &uid = claim_uid) {
        grpc::ClientContext context;
        dra::NodeUnprepareResourcesRequest request;
        dra::NodeUnprepareResourcesResponse response;
        const auto stub = dra::DRAPlugin::NewStub(channel(DriverServer::claims_socket(kubelet_)));

        add_claim(request, uid);
        EXPECT_TRUE(stub->NodeUnprepareResources(&context, request, &response).ok());
        EXPECT_EQ(response.claims().count(uid), 1U);
        return response.claims().at(uid).error();
    }

    template <class Request>
    static void add_claim(Request &request, const std::string &uid) {
        dra::Claim &claim = *request.add_claims();

        claim.set_namespace_("prod");
        claim.set_name("llm");
        claim.set_uid(uid);
    }

    json specification_file() const {
        std::ifstream in(cdi_ / (std::string("umacct-claim-") + claim_uid + ".json"));

        return json::parse(in, nullptr, false);
    }

    bool no_file_is_left() const { return !fs::exists(cdi_) || fs::is_empty(cdi_); }

    test::Sandbox sandbox_;
    fs::path kubelet_ = sandbox_.root() / "kubelet";
    fs::path cdi_ = sandbox_.root() / "cdi";
    Api api_;
    ApiServer server_{{.url = api_.url(), .token = sandbox_.root() / "token", .authority = {}}};
    ClaimService claims_{server_, {.node = "spark", .cdi = cdi_}};
};

TEST_F(DraTest, KubeletFindsTheDriverByItsSocket) {
    const DriverServer driver(claims_, kubelet_);
    const auto stub = pluginregistration::Registration::NewStub(
        channel(kubelet_ / "plugins_registry/umacct.io-reg.sock"));

    struct stat found {};

    grpc::ClientContext context;
    pluginregistration::PluginInfo info;
    ASSERT_TRUE(stub->GetInfo(&context, {}, &info).ok());
    EXPECT_EQ(info.type(), "DRAPlugin");
    EXPECT_EQ(info.name(), "umacct.io");
    EXPECT_EQ(info.endpoint(), (kubelet_ / "plugins/umacct.io/dra.sock").string());
    ASSERT_EQ(info.supported_versions_size(), 1);
    EXPECT_EQ(info.supported_versions(0), "v1.DRAPlugin");
    ASSERT_EQ(stat(info.endpoint().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << "it is root's alone";

    for (const bool taken : {false, true}) {
        grpc::ClientContext second;
        pluginregistration::RegistrationStatus status;
        pluginregistration::RegistrationStatusResponse response;
        status.set_plugin_registered(taken);
        ASSERT_TRUE(stub->NotifyRegistrationStatus(&second, status, &response).ok());
        EXPECT_EQ(driver.registrations(), taken ? 1U : 0U);
    }
}

/// The published description of the interface gives the same ones: the numbers of fields are facts.
TEST_F(DraTest, EachMessageIsTheseBytes) {
    dra::NodePrepareResourcesRequest request;
    dra::Device device;
    pluginregistration::PluginInfo info;

    add_claim(request, "u");
    EXPECT_EQ(request.SerializeAsString(), "\x0a\x0e\x0a\x04prod\x12\x01u\x1a\x03llm");
    device.add_request_names("r");
    device.set_pool_name("p");
    device.set_device_name("d");
    device.add_cdi_device_ids("c");
    EXPECT_EQ(device.SerializeAsString(), "\x0a\x01r\x12\x01p\x1a\x01"
                                          "d\"\x01"
                                          "c");
    info.set_type("t");
    info.set_name("n");
    info.set_endpoint("e");
    info.add_supported_versions("v");
    EXPECT_EQ(info.SerializeAsString(), "\x0a\x01t\x12\x01n\x1a\x01"
                                        "e\"\x01v");
}

TEST_F(DraTest, AClaimIsADeviceThatHasItsLimitAndTheHook) {
    const DriverServer driver(claims_, kubelet_);

    for (int times = 0; times < 2; ++times) {
        const auto prepared = prepare();
        EXPECT_EQ(prepared.error(), "");
        ASSERT_EQ(prepared.devices_size(), 1);
        EXPECT_EQ(prepared.devices(0).request_names(0), "model");
        EXPECT_EQ(prepared.devices(0).pool_name(), "spark");
        EXPECT_EQ(prepared.devices(0).device_name(), "memory");
        ASSERT_EQ(prepared.devices(0).cdi_device_ids_size(), 1);
        EXPECT_EQ(prepared.devices(0).cdi_device_ids(0),
                  std::string("umacct.io/claim=") + claim_uid + "-0");
        const json made = specification_file();
        EXPECT_EQ(made["kind"], "umacct.io/claim");
        EXPECT_EQ(made["devices"],
                  (json{{{"name", std::string(claim_uid) + "-0"},
                         {"containerEdits", {{"env", {"UMACCT_CDI_HARD=24m"}}}}}}));
        EXPECT_EQ(made["containerEdits"]["hooks"][0]["hookName"], "createRuntime");
        EXPECT_EQ(made["containerEdits"]["hooks"][0]["path"], "/usr/lib/umacct/umacct-hook");
    }
    EXPECT_EQ(api_.token(), "Bearer secret");
    EXPECT_EQ(unprepare(), "");
    EXPECT_TRUE(no_file_is_left());
    EXPECT_EQ(unprepare(), "") << "a second time is no error";
}

TEST_F(DraTest, AClaimThatNoLimitWouldHoldForIsNotPrepared) {
    const DriverServer driver(claims_, kubelet_);

    claims_.set("", "the module is not loaded");
    EXPECT_NE(prepare().error().find("the module is not loaded"), std::string::npos);
    EXPECT_EQ(prepare().devices_size(), 0);
    claims_.set("/usr/lib/umacct/umacct-hook", "");
    EXPECT_NE(prepare("0a1b2c3d-other").error().find("another one has that name"),
              std::string::npos);
    for (const std::string uid : {"../../etc/x", "a/b", "", ".", "x\n"})
        EXPECT_NE(prepare(uid).error().find("is no name"), std::string::npos) << uid;
    api_.put("/api/v1/namespaces/prod/pods/vllm-0",
             pod_of(json::array({container_with("gpu-memory"), container_with("gpu-memory")})));
    EXPECT_NE(prepare().error().find("2 containers of the pod vllm-0"), std::string::npos);
    api_.refuse(403);
    const std::string refusal = prepare().error();
    EXPECT_NE(refusal.find("answers 403"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\x1b'), std::string::npos);
    EXPECT_TRUE(no_file_is_left());
}

TEST_F(DraTest, WithoutAnApiServerAClaimIsNotPrepared) {
    const ApiServer nowhere({.url = "http://127.0.0.1:1", .token = {}, .authority = {}});
    ClaimService claims(nowhere, {.node = "spark", .cdi = cdi_});
    const DriverServer driver(claims, kubelet_);

    claims.set("/hook", "");
    EXPECT_NE(prepare().error().find("cannot ask the API server"), std::string::npos);
}

class SliceTest : public DraTest {
protected:
    std::vector<std::string> publish(std::optional<std::uint64_t> memory,
                                     std::chrono::seconds later = 0s) {
        publisher_.publish(memory, start_ + later);
        return api_.changes();
    }

    json memory() { return api_.get(slice_path)["spec"]["devices"][0]["capacity"]["memory"]; }

    json generation() { return api_.get(slice_path)["spec"]["pool"]["generation"]; }

    Publisher publisher_{server_, "spark"};
    Publisher::Clock::time_point start_ = Publisher::Clock::now();
};

TEST_F(SliceTest, IsOneDeviceThatAnyNumberOfClaimsShares) {
    EXPECT_EQ(publish(120 * gib + 5),
              (std::vector<std::string>{std::string("POST ") + slice_path}));
    const json slice = api_.get(slice_path);
    EXPECT_EQ(slice["spec"]["driver"], "umacct.io");
    EXPECT_EQ(slice["spec"]["nodeName"], "spark");
    EXPECT_EQ(slice["spec"]["pool"],
              (json{{"name", "spark"}, {"generation", 1}, {"resourceSliceCount", 1}}));
    EXPECT_EQ(slice["spec"]["devices"].size(), 1U);
    EXPECT_EQ(slice["spec"]["devices"][0]["allowMultipleAllocations"], true);
    EXPECT_EQ(memory(),
              (json{{"value", "120Gi"},
                    {"requestPolicy",
                     {{"default", "120Gi"}, {"validRange", {{"min", "1Mi"}, {"step", "1Mi"}}}}}}));
    EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["uid"], "n-1") << "it goes with the node";
}

TEST_F(SliceTest, FollowsTheReserveAndTheHealth) {
    publish(120 * gib);
    EXPECT_EQ(publish(120 * gib, 1s), std::vector<std::string>()) << "nothing has changed";
    EXPECT_EQ(publish(120 * gib, 301s), std::vector<std::string>()) << "nor in five minutes";
    EXPECT_EQ(publish(112 * gib, 302s),
              (std::vector<std::string>{std::string("PUT ") + slice_path}));
    EXPECT_EQ(memory()["value"], "112Gi");
    EXPECT_EQ(generation(), 2);
    EXPECT_EQ(publish(std::nullopt, 303s),
              (std::vector<std::string>{std::string("DELETE ") + slice_path}));
    EXPECT_EQ(publish(std::nullopt, 304s), std::vector<std::string>());
    EXPECT_EQ(publish(112 * gib, 305s),
              (std::vector<std::string>{std::string("POST ") + slice_path}));
}

TEST_F(SliceTest, ThatIsNotAsItShouldBeIsPutRight) {
    publish(120 * gib);
    api_.put(slice_path, [&] {
        json other = api_.get(slice_path);
        other["spec"]["devices"][0]["capacity"]["memory"]["value"] = "1Gi";
        return other;
    }());
    EXPECT_EQ(publish(120 * gib, 1s), std::vector<std::string>());
    EXPECT_EQ(publish(120 * gib, 301s),
              (std::vector<std::string>{std::string("PUT ") + slice_path}));
    EXPECT_EQ(memory()["value"], "120Gi");
    // Kubelet removes it when it knows no driver, and tells it that it does again.
    publisher_.forget();
    EXPECT_EQ(publish(120 * gib, 302s), std::vector<std::string>()) << "it is there still";
    api_.remove(slice_path);
    EXPECT_EQ(publish(120 * gib, 303s), std::vector<std::string>());
    publisher_.forget();
    EXPECT_EQ(publish(120 * gib, 304s),
              (std::vector<std::string>{std::string("POST ") + slice_path}));
}

TEST_F(SliceTest, ThatCannotBePublishedIsTriedAgain) {
    api_.refuse(403);
    EXPECT_NE(error_of([&] { publish(120 * gib); }).find("403"), std::string::npos);
    api_.refuse(0);
    EXPECT_EQ(publish(120 * gib), (std::vector<std::string>{std::string("POST ") + slice_path}));
    api_.refuse(500);
    EXPECT_NE(error_of([&] { publish(std::nullopt); }), "");
    api_.refuse(0);
    EXPECT_EQ(publish(std::nullopt),
              (std::vector<std::string>{std::string("DELETE ") + slice_path}))
        << "what is on offer no more is withdrawn";
}

TEST_F(DraTest, TheProgramOffersNothingWhereNoLimitWouldHold) {
    api_.put(slice_path, {{"spec", "an earlier one's"}});
    std::vector<std::string> words{UMACCT_DRA,
                                   "--node=spark",
                                   "--server=" + api_.url(),
                                   "--token=" + (sandbox_.root() / "token").string(),
                                   "--folder=" + kubelet_.string(),
                                   "--cdi=" + cdi_.string(),
                                   "--root=" + sandbox_.root().string()};
    std::vector<char *> argv;
    argv.reserve(words.size() + 1);
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    int status = 0;

    ASSERT_EQ(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    const auto stub = pluginregistration::Registration::NewStub(
        channel(DriverServer::registration_socket(kubelet_)));
    grpc::ClientContext context;
    pluginregistration::PluginInfo info;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    EXPECT_TRUE(stub->GetInfo(&context, {}, &info).ok());
    EXPECT_NE(prepare().error().find("cannot limit a container"), std::string::npos);
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!api_.get(slice_path).is_null() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(api_.get(slice_path).is_null()) << "the slice is withdrawn";
    EXPECT_EQ(kill(pid, SIGTERM), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_FALSE(fs::exists(DriverServer::registration_socket(kubelet_)));
}

} // namespace
} // namespace umacct::kubernetes
