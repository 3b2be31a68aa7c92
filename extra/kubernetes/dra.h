// SPDX-License-Identifier: GPL-2.0-or-later
/// The side of a driver for dynamic resource allocation in its conversation with kubelet: how it is
/// registered, and what it does for a claim before containers use it, and after.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dra.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <pluginregistration.grpc.pb.h>

#include "kubernetes/api_server.h"
#include "kubernetes/claims.h"

namespace umacct::kubernetes {

namespace dra = ::k8s::io::kubelet::pkg::apis::dra::v1;

/// Names and folders that the driver works with.
struct DriverPlace {
    std::string node;          ///< name that the API server has for it
    std::filesystem::path cdi; ///< folder of CDI specifications that are gone at the next boot
};

/// Prepares claims. Any thread may call it.
class ClaimService final : public dra::DRAPlugin::Service {
public:
    ClaimService(const ApiServer &server, DriverPlace place)
        : server_(server), place_(std::move(place)) {}

    /// hook: umacct-hook's path on the node. why_not: why no limit would hold now, or empty; then
    /// no claim is prepared.
    void set(std::string hook, std::string why_not);

    grpc::Status NodePrepareResources(grpc::ServerContext *context,
                                      const dra::NodePrepareResourcesRequest *request,
                                      dra::NodePrepareResourcesResponse *response) override;
    grpc::Status NodeUnprepareResources(grpc::ServerContext *context,
                                        const dra::NodeUnprepareResourcesRequest *request,
                                        dra::NodeUnprepareResourcesResponse *response) override;

private:
    void prepare(const dra::Claim &claim, dra::NodePrepareResourceResponse &prepared);
    std::vector<Share> look_up(const dra::Claim &claim) const;
    std::filesystem::path file_of(const std::string &uid) const;

    const ApiServer &server_;
    DriverPlace place_;
    std::mutex mutex_;
    std::string hook_;
    std::string why_not_ = "it has not looked yet";
};

/// Answers kubelet, which finds the driver by its socket.
class DriverRegistration final : public pluginregistration::Registration::Service {
public:
    explicit DriverRegistration(std::string endpoint) : endpoint_(std::move(endpoint)) {}

    /// How often kubelet has taken the driver.
    unsigned registrations() const { return registrations_; }

    grpc::Status GetInfo(grpc::ServerContext *context,
                         const pluginregistration::InfoRequest *request,
                         pluginregistration::PluginInfo *response) override;
    grpc::Status
    NotifyRegistrationStatus(grpc::ServerContext *context,
                             const pluginregistration::RegistrationStatus *request,
                             pluginregistration::RegistrationStatusResponse *response) override;

private:
    std::string endpoint_;
    std::atomic<unsigned> registrations_ = 0;
};

/// Serves both at sockets in kubelet's folder, for root alone, until it goes out of scope.
class DriverServer {
public:
    /// Removes what an earlier one left. Throws Error.
    DriverServer(ClaimService &claims, const std::filesystem::path &kubelet);
    DriverServer(const DriverServer &) = delete;
    DriverServer &operator=(const DriverServer &) = delete;
    DriverServer(DriverServer &&) = delete;
    DriverServer &operator=(DriverServer &&) = delete;
    ~DriverServer();

    unsigned registrations() const { return registration_.registrations(); }

    static std::filesystem::path claims_socket(const std::filesystem::path &kubelet);
    static std::filesystem::path registration_socket(const std::filesystem::path &kubelet);

private:
    std::vector<std::filesystem::path> sockets_;
    DriverRegistration registration_;
    std::unique_ptr<grpc::Server> server_;
};

} // namespace umacct::kubernetes
