// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/state.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/json_scan.h"
#include "lib/owners/state_file.h"
#include "lib/text.h"

namespace umacct::oci_hook {

namespace {

constexpr std::size_t largest_config = 8U << 20;
constexpr std::size_t longest_id = 1024; ///< the kernel takes no file name of half of it

[[noreturn]] void throw_state(const std::string &what) {
    throw Error(Failure::failed,
                fmt::format("cannot read the container's state on standard input: it {}", what),
                "umacct-hook is an OCI createRuntime hook: a container runtime runs it");
}

} // namespace

ContainerState read_state(const std::string &json) {
    std::optional<std::string> id;
    std::optional<std::string> bundle;
    std::optional<std::int64_t> pid;
    const auto text = [](const JsonScalar &value) {
        return value.text != nullptr ? std::optional(*value.text) : std::nullopt;
    };

    if (json.size() > largest_state)
        throw_state("is too large");
    const bool is_json = for_each_json_scalar(json, [&](JsonKeys keys, const JsonScalar &value) {
        if (keys.size() != 1)
            return;
        if (keys[0] == "id")
            id = text(value);
        else if (keys[0] == "bundle")
            bundle = text(value);
        else if (keys[0] == "pid")
            pid = value.number;
    });

    if (!is_json)
        throw_state("is not JSON");
    if (!id || id->empty() || id->size() > longest_id)
        throw_state("has no id");
    if (!pid || *pid <= 0 || *pid > std::numeric_limits<std::int32_t>::max())
        throw_state("has no pid");
    if (!bundle || !bundle->starts_with('/'))
        throw_state("has no bundle with an absolute path");
    return {.id = std::move(*id),
            .pid = static_cast<std::uint32_t>(*pid),
            .bundle = std::move(*bundle)};
}

std::string read_config(const std::filesystem::path &bundle) {
    const std::filesystem::path file = bundle / "config.json";
    auto text = read_state_file(file);

    if (!text || text->size() > largest_config)
        throw Error(
            Failure::failed,
            fmt::format("cannot read {}: it is missing, or no regular file of at most 8 MiB",
                        printable(file.string())));
    return std::move(*text);
}

} // namespace umacct::oci_hook
