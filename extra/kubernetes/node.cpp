// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/node.h"

#include <algorithm>
#include <array>
#include <string>

#include "lib/containers/runtimes.h"
#include "lib/error.h"
#include "lib/module/health.h"

namespace umacct::kubernetes {

namespace {

/// Those that kubelet has containers made by.
constexpr std::array runtimes{"containerd", "crio", "k3s", "rke2"};

std::string why_not(const Status &status) {
    if (!status.tells_all())
        return "cannot read the machine's reserve: this program lacks CAP_DAC_READ_SEARCH";
    for (const Problem &problem : problems(status)) {
        // An allocation in no account is a figure that is off, not a limit that is.
        if (problem.fatal && problem.check != "untracked")
            return problem.text;
    }
    return "";
}

} // namespace

std::string why_no_hook(const std::filesystem::path &root) {
    std::string all;

    // Kubelet has one of them.
    for (const char *name : runtimes) {
        const auto *runtime = containers::find_runtime(name);

        if (runtime == nullptr || !containers::was_set_up(*runtime, root))
            continue;
        const std::string why = containers::why_not_hooked(*runtime, root);
        if (why.empty())
            return "";
        all += (all.empty() ? "" : "; ") + why;
    }
    return !all.empty() ? all
                        : "no runtime of this node is set up to run umacct-hook; 'umacct setup "
                          "containerd', or crio, k3s or rke2, does that";
}

Offer Node::look() {
    Offer offer = look_at_module();

    if (offer.healthy())
        offer.why_not = why_no_hook(machine_.root());
    return offer;
}

Offer Node::look_at_module() {
    try {
        const Status status = connection_.loaded().status();
        const std::uint64_t total = machine_.meminfo(status).total();

        return {.memory = total - std::min(total, status.reserve),
                .unit = unit_,
                .why_not = why_not(status)};
    } catch (const Error &error) {
        // It may be loaded later, or be another then.
        connection_.reset();
        return {.memory = machine_.meminfo().total(), .unit = unit_, .why_not = error.what()};
    }
}

} // namespace umacct::kubernetes
