// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/slice.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kubernetes/claims.h"
#include "kubernetes/devices.h"
#include "lib/error.h"

namespace umacct::kubernetes {

namespace {

constexpr const char *slices = "/apis/resource.k8s.io/v1/resourceslices";

std::string path_of(const std::string &node) {
    return fmt::format("{}/{}", slices, slice_name(node));
}

/// Writes whole MiB as the API server does: in the largest unit of which they are a whole number.
std::string quantity(std::uint64_t bytes) {
    std::uint64_t count = bytes / mib;
    const char *unit = "Mi";

    for (const char *larger : {"Gi", "Ti"}) {
        if (count == 0 || count % 1024 != 0)
            break;
        count /= 1024;
        unit = larger;
    }
    return fmt::format("{}{}", count, unit);
}

/// Whether it has all that wanted has. What the API server adds doesn't matter, nor the order.
bool has(const Json &there, const Json &wanted) {
    if (wanted.is_object()) {
        for (auto at = wanted.begin(); at != wanted.end(); ++at) {
            if (!there.is_object() || !there.contains(at.key()) ||
                !has(there.at(at.key()), at.value()))
                return false;
        }
        return true;
    }
    if (!wanted.is_array())
        return there == wanted;
    return there.is_array() &&
           std::equal(there.begin(), there.end(), wanted.begin(), wanted.end(), has);
}

/// Parses what the API server answers. Throws Error where that is no object.
Json object_in(const ApiReply &reply) {
    Json object = Json::parse(reply.body, nullptr, false);

    if (!object.is_object())
        throw Error(Failure::failed, "the API server's answer is no JSON object");
    return object;
}

} // namespace

std::string slice_name(const std::string &node) {
    return fmt::format("{}-{}", node, driver_name);
}

Json slice_of(const std::string &node, const std::string &node_uid, std::uint64_t memory,
              std::int64_t generation) {
    const std::string all = quantity(memory);

    return {
        {"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceSlice"},
        {"metadata",
         {{"name", slice_name(node)},
          {"ownerReferences",
           {{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}}}}}},
        {"spec",
         {{"driver", driver_name},
          {"nodeName", node},
          {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", 1}}},
          {"devices",
           {{{"name", device_name},
             {"allowMultipleAllocations", true},
             {"capacity",
              {{capacity_name,
                {{"value", all},
                 // A claim that names no amount has all.
                 {"requestPolicy",
                  {{"default", all}, {"validRange", {{"min", "1Mi"}, {"step", "1Mi"}}}}}}}}}}}}}}};
}

void Publisher::publish(std::optional<std::uint64_t> memory, Clock::time_point now) {
    if (memory && *memory / mib < 2)
        memory.reset();
    if (looked_ && published_ == memory && now - *looked_ < look_again)
        return;
    looked_.reset();
    if (memory)
        put(*memory);
    else
        withdraw();
    published_ = memory;
    looked_ = now;
}

void Publisher::withdraw() const {
    const ApiReply reply = server_.ask("DELETE", path_of(node_));

    if (!reply.is_missing())
        ApiServer::check(reply, "cannot withdraw the ResourceSlice");
}

void Publisher::put(std::uint64_t memory) {
    const ApiReply known = server_.ask("GET", path_of(node_));

    if (!known.is_missing())
        ApiServer::check(known, "cannot read the ResourceSlice");
    const ApiReply node = server_.ask("GET", "/api/v1/nodes/" + node_);
    ApiServer::check(node, fmt::format("cannot read the node {}", node_));

    try {
        const std::string uid = object_in(node).at("metadata").at("uid").get<std::string>();

        if (known.is_missing()) {
            ApiServer::check(server_.ask("POST", slices, slice_of(node_, uid, memory, 1).dump()),
                             "cannot publish the ResourceSlice");
            return;
        }
        const Json there = object_in(known);
        const auto generation = there.at("spec").at("pool").at("generation").get<std::int64_t>();
        if (has(there, slice_of(node_, uid, memory, generation)))
            return;
        Json next = slice_of(node_, uid, memory, generation + 1);
        next["metadata"]["resourceVersion"] = there.at("metadata").at("resourceVersion");
        ApiServer::check(server_.ask("PUT", path_of(node_), next.dump()),
                         "cannot change the ResourceSlice");
    } catch (const Json::exception &error) {
        throw Error(Failure::failed,
                    fmt::format("cannot understand the API server: {}", error.what()));
    }
}

} // namespace umacct::kubernetes
