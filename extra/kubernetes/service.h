// SPDX-License-Identifier: GPL-2.0-or-later
/// The device plugin's side of the conversation with kubelet: a server that lists and allocates,
/// and a client that registers it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <deviceplugin.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "kubernetes/devices.h"

namespace umacct::kubernetes {

/// Sockets of kubelet and of its plugins.
constexpr const char *kubelet_folder = "/var/lib/kubelet/device-plugins";
constexpr const char *kubelet_socket = "kubelet.sock";
constexpr const char *own_socket = "umacct-memory.sock";

/// Holds what is on offer, and reports each change to the watchers. Any thread may call it.
class DevicePlugin final : public v1beta1::DevicePlugin::Service {
public:
    explicit DevicePlugin(Offer offer) : offer_(std::move(offer)) {}

    void offer(Offer offer);
    /// Reports changes to watchers if on; ends their watching if off.
    void serve(bool on);

    grpc::Status GetDevicePluginOptions(grpc::ServerContext *context, const v1beta1::Empty *request,
                                        v1beta1::DevicePluginOptions *response) override;
    grpc::Status ListAndWatch(grpc::ServerContext *context, const v1beta1::Empty *request,
                              grpc::ServerWriter<v1beta1::ListAndWatchResponse> *writer) override;
    grpc::Status Allocate(grpc::ServerContext *context, const v1beta1::AllocateRequest *request,
                          v1beta1::AllocateResponse *response) override;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    Offer offer_;
    bool on_ = false;
};

/// Identity of the file at a path; inode numbers are soon reused.
struct FileIdentity {
    std::uint64_t inode = 0; ///< 0: there is none
    std::int64_t changed_ns = 0;

    static FileIdentity of(const std::filesystem::path &file);

    bool operator==(const FileIdentity &other) const = default;
};

/// Serves it at a socket in the folder, for root alone, until it goes out of scope.
class Server {
public:
    /// Removes the socket of an earlier one. Throws Error.
    Server(DevicePlugin &plugin, const std::filesystem::path &folder);
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;
    Server(Server &&) = delete;
    Server &operator=(Server &&) = delete;
    ~Server();

    /// Its socket is still where it was made: kubelet empties the folder when it starts.
    bool is_reachable() const;

private:
    std::filesystem::path socket_;
    FileIdentity identity_;
    DevicePlugin &plugin_;
    std::unique_ptr<grpc::Server> server_;
};

/// Keeps the plugin served and registered, whatever becomes of kubelet and its folder.
class Registered {
public:
    Registered(DevicePlugin &plugin, std::filesystem::path folder)
        : plugin_(plugin), folder_(std::move(folder)) {}

    /// Does what is to be done for it. Throws Error where that failed: it is to be tried again.
    void keep(std::chrono::milliseconds timeout);

    bool is_registered() const { return kubelet_.inode != 0; }

private:
    DevicePlugin &plugin_;
    std::filesystem::path folder_;
    std::optional<Server> server_;
    FileIdentity kubelet_; ///< the socket that it is registered at
};

} // namespace umacct::kubernetes
