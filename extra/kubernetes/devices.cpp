// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/devices.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lib/containers/asking.h"
#include "lib/error.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct::kubernetes {

namespace {

constexpr std::size_t shown = 40; ///< bound on a quoted input

/// Parses a device's name; empty if list_of() never makes it.
std::optional<std::uint64_t> index_of(std::string_view id) {
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), index);

    if (error != std::errc() || end != id.data() + id.size() || id != std::to_string(index))
        return std::nullopt;
    return index;
}

void take(const std::string &id, std::vector<bool> &taken) {
    const auto index = index_of(id);
    const std::string text = printable(id.substr(0, shown));

    if (!index || *index >= taken.size())
        throw Error(Failure::usage, fmt::format("there is no device '{}'", text));
    if (taken[*index])
        throw Error(Failure::usage, fmt::format("the device '{}' is asked for twice", text));
    taken[*index] = true;
}

} // namespace

void check_size(const Offer &offer) {
    // The plugin's own message has at most 21 bytes for each, so that this is the tighter bound.
    constexpr std::uint64_t most = largest_message / listed_device;
    if (offer.devices() <= most)
        return;

    Offer larger = offer;
    do {
        larger.unit *= 2;
    } while (larger.devices() > most);
    throw Error(
        Failure::usage,
        fmt::format("{} devices of {} are more than kubelet's clients accept in one message",
                    offer.devices(), format_size(offer.unit)),
        fmt::format("--unit {} is enough, on all nodes alike", larger.unit / mib));
}

v1beta1::ListAndWatchResponse list_of(const Offer &offer) {
    v1beta1::ListAndWatchResponse list;
    const std::uint64_t devices = offer.devices();

    list.mutable_devices()->Reserve(static_cast<int>(devices));
    for (std::uint64_t i = 0; i < devices; ++i) {
        v1beta1::Device &device = *list.add_devices();

        device.set_id(std::to_string(i));
        device.set_health(offer.healthy() ? "Healthy" : "Unhealthy");
    }
    return list;
}

v1beta1::AllocateResponse allocate(const Offer &offer, const v1beta1::AllocateRequest &request) {
    v1beta1::AllocateResponse response;
    std::vector<bool> taken(offer.devices());

    if (!offer.healthy())
        throw Error(Failure::failed, fmt::format("cannot limit a container: {}", offer.why_not));
    for (const auto &container : request.container_requests()) {
        auto &has = *response.add_container_responses();

        if (container.devices_ids().empty())
            throw Error(Failure::usage, "a container asks for no device");
        for (const std::string &id : container.devices_ids())
            take(id, taken);
        const auto units = static_cast<std::uint64_t>(container.devices_ids_size());
        (*has.mutable_annotations())[allocated_annotation] =
            fmt::format("{}m", units * (offer.unit / mib));
        // Has umacct-hook refuse the container if the runtime keeps the annotation from it.
        has.add_cdi_devices()->set_name(fmt::format("{}={}", resource_name, cdi_allocated));
    }
    return response;
}

} // namespace umacct::kubernetes
