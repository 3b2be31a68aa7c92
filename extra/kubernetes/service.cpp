// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/service.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "lib/text.h"

namespace umacct::kubernetes {

namespace fs = std::filesystem;

namespace {

/// How soon who watched and went away is noticed.
constexpr std::chrono::seconds patience{1};

/// Kubelet watches once, and has one call at a time beside it; a second kubelet comes at a restart.
constexpr int most_threads = 16;

std::string address_of(const fs::path &socket) {
    return "unix:" + socket.string();
}

/// Throws Error where it doesn't answer in that time, or refuses.
void register_at_kubelet(const fs::path &folder, std::chrono::milliseconds timeout) {
    const fs::path socket = folder / kubelet_socket;
    grpc::ChannelArguments arguments;
    // A new pool: a channel to an earlier kubelet would be reused, with its long pauses.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
        address_of(socket), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    v1beta1::RegisterRequest request;
    v1beta1::Empty response;

    request.set_version("v1beta1");
    request.set_endpoint(own_socket);
    request.set_resource_name(resource_name);
    request.mutable_options();
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    const grpc::Status status = stub->Register(&context, request, &response);
    if (!status.ok())
        throw Error(Failure::failed,
                    fmt::format("cannot register at {}: {}", socket.string(),
                                printable(status.error_message())),
                    "is kubelet running?");
}

} // namespace

void DevicePlugin::offer(Offer offer) {
    const std::lock_guard lock(mutex_);

    if (offer == offer_)
        return;
    offer_ = std::move(offer);
    changed_.notify_all();
}

void DevicePlugin::serve(bool on) {
    const std::lock_guard lock(mutex_);

    on_ = on;
    changed_.notify_all();
}

grpc::Status DevicePlugin::GetDevicePluginOptions(grpc::ServerContext * /*context*/,
                                                  const v1beta1::Empty * /*request*/,
                                                  v1beta1::DevicePluginOptions * /*response*/) {
    return grpc::Status::OK;
}

grpc::Status DevicePlugin::ListAndWatch(grpc::ServerContext *context,
                                        const v1beta1::Empty * /*request*/,
                                        grpc::ServerWriter<v1beta1::ListAndWatchResponse> *writer) {
    std::unique_lock lock(mutex_);
    std::optional<Offer> told;

    while (on_ && !context->IsCancelled()) {
        if (told == offer_) {
            changed_.wait_for(lock, patience);
            continue;
        }
        told = offer_;
        lock.unlock();
        const bool sent = writer->Write(list_of(*told));
        lock.lock();
        if (!sent)
            break;
    }
    return grpc::Status::OK;
}

grpc::Status DevicePlugin::Allocate(grpc::ServerContext * /*context*/,
                                    const v1beta1::AllocateRequest *request,
                                    v1beta1::AllocateResponse *response) {
    Offer offer;

    {
        const std::lock_guard lock(mutex_);
        offer = offer_;
    }
    try {
        *response = allocate(offer, *request);
        return grpc::Status::OK;
    } catch (const Error &error) {
        return {error.failure() == Failure::usage ? grpc::StatusCode::INVALID_ARGUMENT
                                                  : grpc::StatusCode::FAILED_PRECONDITION,
                error.what()};
    }
}

FileIdentity FileIdentity::of(const fs::path &file) {
    struct stat found {};

    if (lstat(file.c_str(), &found) != 0)
        return {};
    return {.inode = found.st_ino,
            .changed_ns = found.st_ctim.tv_sec * 1'000'000'000LL + found.st_ctim.tv_nsec};
}

Server::Server(DevicePlugin &plugin, const fs::path &folder)
    : socket_(folder / own_socket), plugin_(plugin) {
    grpc::ServerBuilder builder;
    std::error_code error;
    grpc::ResourceQuota quota("umacct-device-plugin");

    fs::remove(socket_, error);
    builder.SetResourceQuota(quota.SetMaxThreads(most_threads));
    builder.SetMaxReceiveMessageSize(static_cast<int>(largest_message));
    builder.AddListeningPort(address_of(socket_), grpc::InsecureServerCredentials());
    builder.RegisterService(&plugin_);
    plugin_.serve(true);
    const mode_t before = umask(0177);
    server_ = builder.BuildAndStart();
    umask(before);
    identity_ = FileIdentity::of(socket_);
    if (!server_ || identity_.inode == 0)
        throw Error(Failure::failed, fmt::format("cannot listen at {}", socket_.string()),
                    "run as root, with kubelet's folder mounted");
}

Server::~Server() {
    std::error_code error;

    plugin_.serve(false);
    server_->Shutdown(std::chrono::system_clock::now());
    if (is_reachable())
        fs::remove(socket_, error);
}

bool Server::is_reachable() const {
    return FileIdentity::of(socket_) == identity_;
}

void Registered::keep(std::chrono::milliseconds timeout) {
    const FileIdentity now = FileIdentity::of(folder_ / kubelet_socket);

    // A kubelet that starts knows no plugin, and removes their sockets.
    if (now != kubelet_)
        kubelet_ = {};
    if (server_ && !server_->is_reachable()) {
        server_.reset();
        kubelet_ = {};
    }
    if (!server_)
        server_.emplace(plugin_, folder_);
    if (is_registered() || now.inode == 0)
        return;
    register_at_kubelet(folder_, timeout);
    kubelet_ = now;
}

} // namespace umacct::kubernetes
