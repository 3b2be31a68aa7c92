// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/dra.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "lib/text.h"
#include "service/log.h"

namespace umacct::kubernetes {

namespace fs = std::filesystem;

namespace {

/// Kubelet has one call at a time for each pod that starts.
constexpr int most_threads = 16;

Json parsed(const ApiReply &reply) {
    Json object = Json::parse(reply.body, nullptr, false);

    if (!object.is_object())
        throw Error(Failure::failed, "the API server's answer is no JSON object");
    return object;
}

void check_names(const dra::Claim &claim) {
    for (const std::string &name : {claim.namespace_(), claim.name(), claim.uid()}) {
        if (!is_plain_name(name))
            throw Error(Failure::usage,
                        fmt::format("'{}' is no name of Kubernetes'", printable(name)));
    }
}

} // namespace

void ClaimService::set(std::string hook, std::string why_not) {
    const std::lock_guard lock(mutex_);

    hook_ = std::move(hook);
    why_not_ = std::move(why_not);
}

fs::path ClaimService::file_of(const std::string &uid) const {
    return place_.cdi / fmt::format("umacct-claim-{}.json", uid);
}

std::vector<Share> ClaimService::look_up(const dra::Claim &claim) const {
    const std::string what =
        fmt::format("cannot read the claim {}/{}", claim.namespace_(), claim.name());
    const ApiReply reply =
        server_.ask("GET", fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                                       claim.namespace_(), claim.name()));
    ApiServer::check(reply, what);
    const Json object = parsed(reply);
    if (object.at("metadata").at("uid") != claim.uid())
        throw Error(Failure::failed, fmt::format("{}: another one has that name now", what));
    auto shares = shares_of(object, place_.node);

    // One pod may use it; each of its containers would have all of it as its limit.
    for (const Json &user : object.at("status").value("reservedFor", Json::array())) {
        const std::string pod = user.at("name").get<std::string>();
        if (user.at("resource") != "pods" || !is_plain_name(pod))
            throw Error(Failure::usage,
                        fmt::format("{}: it is reserved for something that is no pod", what));
        const ApiReply found = server_.ask(
            "GET", fmt::format("/api/v1/namespaces/{}/pods/{}", claim.namespace_(), pod));
        ApiServer::check(found, fmt::format("cannot read the pod {}/{}", claim.namespace_(), pod));
        const std::size_t users = containers_with(parsed(found), claim.name());
        if (users > 1)
            throw Error(Failure::usage,
                        fmt::format("{} containers of the pod {} use the claim {}", users, pod,
                                    claim.name()),
                        "each would have all of it as its limit: make a claim for each");
    }
    return shares;
}

void ClaimService::prepare(const dra::Claim &claim, dra::NodePrepareResourceResponse &prepared) {
    std::string hook;

    {
        const std::lock_guard lock(mutex_);
        if (!why_not_.empty())
            throw Error(Failure::failed, fmt::format("cannot limit a container: {}", why_not_));
        hook = hook_;
    }
    check_names(claim);
    const auto shares = look_up(claim);
    const fs::path file = file_of(claim.uid());
    const std::string text = specification(claim.uid(), shares, hook).dump(2) + "\n";
    if (const int code = replace_file(file, text))
        throw Error(failure_of(code), fmt::format("cannot write {}: {}", file.string(),
                                                  std::generic_category().message(code)));
    for (std::size_t i = 0; i < shares.size(); ++i) {
        dra::Device &device = *prepared.add_devices();

        device.add_request_names(shares[i].request);
        device.set_pool_name(place_.node);
        device.set_device_name(device_name);
        device.add_cdi_device_ids(fmt::format("{}={}", claim_kind, device_of(claim.uid(), i)));
    }
}

grpc::Status ClaimService::NodePrepareResources(grpc::ServerContext * /*context*/,
                                                const dra::NodePrepareResourcesRequest *request,
                                                dra::NodePrepareResourcesResponse *response) {
    for (const dra::Claim &claim : request->claims()) {
        dra::NodePrepareResourceResponse prepared;
        const auto refuse = [&](const std::string &why) {
            log_line(Level::warning,
                     fmt::format("claim {}/{} is not prepared: {}", printable(claim.namespace_()),
                                 printable(claim.name()), why));
            prepared.Clear();
            prepared.set_error(why);
        };

        try {
            prepare(claim, prepared);
        } catch (const Error &error) {
            refuse(error.hint().empty() ? error.what()
                                        : fmt::format("{}; {}", error.what(), error.hint()));
        } catch (const std::exception &error) {
            refuse(error.what());
        }
        (*response->mutable_claims())[claim.uid()] = prepared;
    }
    return grpc::Status::OK;
}

grpc::Status ClaimService::NodeUnprepareResources(grpc::ServerContext * /*context*/,
                                                  const dra::NodeUnprepareResourcesRequest *request,
                                                  dra::NodeUnprepareResourcesResponse *response) {
    for (const dra::Claim &claim : request->claims()) {
        std::error_code error;
        std::string why;

        if (is_plain_name(claim.uid()) && !fs::remove(file_of(claim.uid()), error) && error)
            why =
                fmt::format("cannot remove {}: {}", file_of(claim.uid()).string(), error.message());
        (*response->mutable_claims())[claim.uid()].set_error(why);
    }
    return grpc::Status::OK;
}

grpc::Status DriverRegistration::GetInfo(grpc::ServerContext * /*context*/,
                                         const pluginregistration::InfoRequest * /*request*/,
                                         pluginregistration::PluginInfo *response) {
    response->set_type("DRAPlugin");
    response->set_name(driver_name);
    response->set_endpoint(endpoint_);
    response->add_supported_versions("v1.DRAPlugin");
    return grpc::Status::OK;
}

grpc::Status DriverRegistration::NotifyRegistrationStatus(
    grpc::ServerContext * /*context*/, const pluginregistration::RegistrationStatus *request,
    pluginregistration::RegistrationStatusResponse * /*response*/) {
    if (request->plugin_registered()) {
        ++registrations_;
        log_line(Level::notice, "registered at kubelet");
    } else {
        log_line(Level::error,
                 fmt::format("kubelet does not take the driver: {}", printable(request->error())));
    }
    return grpc::Status::OK;
}

fs::path DriverServer::claims_socket(const fs::path &kubelet) {
    return kubelet / "plugins" / driver_name / "dra.sock";
}

fs::path DriverServer::registration_socket(const fs::path &kubelet) {
    return kubelet / "plugins_registry" / fmt::format("{}-reg.sock", driver_name);
}

DriverServer::DriverServer(ClaimService &claims, const fs::path &kubelet)
    : sockets_{claims_socket(kubelet), registration_socket(kubelet)},
      registration_(claims_socket(kubelet)) {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("umacct-dra");

    builder.SetResourceQuota(quota.SetMaxThreads(most_threads));
    for (const fs::path &socket : sockets_) {
        std::error_code ignored;
        fs::create_directories(socket.parent_path(), ignored);
        fs::remove(socket, ignored);
        builder.AddListeningPort("unix:" + socket.string(), grpc::InsecureServerCredentials());
    }
    builder.RegisterService(&claims);
    builder.RegisterService(&registration_);
    const mode_t before = umask(0177);
    server_ = builder.BuildAndStart();
    umask(before);
    std::error_code error;
    for (const fs::path &socket : sockets_) {
        if (!server_ || !fs::exists(socket, error))
            throw Error(Failure::failed, fmt::format("cannot listen at {}", socket.string()),
                        "run as root, with kubelet's folder mounted");
    }
}

DriverServer::~DriverServer() {
    std::error_code ignored;

    // Kubelet takes the driver for gone once the socket of its registration is.
    fs::remove(sockets_.back(), ignored);
    server_->Shutdown(std::chrono::system_clock::now());
    fs::remove(sockets_.front(), ignored);
}

} // namespace umacct::kubernetes
