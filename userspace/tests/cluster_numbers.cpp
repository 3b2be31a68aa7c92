// SPDX-License-Identifier: GPL-2.0-or-later
/// cluster_numbers NODES PODS SECONDS RECORDED: what a cluster brings its Prometheus, its API
/// server and its kubelets, counted in what umacct's own programs say of a node that is made up.
/// For selftests/cluster.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "exporter/metrics.h"
#include "kubernetes/devices.h"
#include "lib/machine.h"
#include "lib/module/module.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace {

using namespace umacct;

constexpr std::uint64_t gib = 1ULL << 30;

/// Bytes of a sample on disk: one to two, by Prometheus' documentation.
constexpr std::uint64_t bytes_of_sample = 2;
constexpr std::uint64_t days_kept = 15; ///< Prometheus' default
constexpr std::uint64_t seconds_of_rules = 30;

/// How often kube-rbac-proxy asks who a token is for, and what they may.
constexpr std::uint64_t seconds_of_token = 120;
constexpr std::uint64_t seconds_of_access = 300;

struct Numbers {
    std::uint64_t series = 0;
    std::uint64_t bytes = 0;
};

Numbers count(const std::string &text) {
    Numbers numbers{.bytes = text.size()};
    std::istringstream lines(text);

    for (std::string line; std::getline(lines, line);)
        numbers.series += !line.empty() && line[0] != '#' ? 1U : 0U;
    return numbers;
}

/// Each pod has one container that takes the driver's memory, and its pause container's account.
class NodeOfACluster {
public:
    explicit NodeOfACluster(unsigned pods) {
        add("/");
        add("/kubepods.slice");
        for (unsigned i = 0; i < pods; ++i) {
            const std::string uid =
                fmt::format("8d1e7b0c_3f5a_4c6e_9b2d_{:012x}", std::uint64_t{i} + 1);
            const std::string slice = fmt::format("/kubepods.slice/kubepods-pod{}.slice", uid);
            const std::string id = fmt::format("{:064x}", std::uint64_t{i} + 1);

            add(slice);
            add(fmt::format("{}/cri-containerd-{}.scope", slice, id));
            sandbox_.write(
                fmt::format("var/log/containers/llm-serving-{:010x}_inference_vllm-{}.log", i, id),
                "");
        }
        module_.status.usage = module_.accounts.front().usage;
    }

    std::string metrics() {
        Connection connection([this] { return module_.connect(); });
        Machine machine(sandbox_.proc(), sandbox_.root());

        return metrics_text(connection, machine, {});
    }

private:
    void add(const std::string &path) {
        Account account;

        account.id = module_.accounts.size() + 1;
        account.path = path;
        account.usage = account.local = 4 * gib + account.id;
        account.hard = account.effective = 40 * gib;
        module_.accounts.push_back(account);
    }

    test::Sandbox sandbox_;
    test::FakeModule module_;
};

/// recorded: the series that prometheus-fleet.yml makes of each node, beside one for each pod.
void print(std::uint64_t nodes, std::uint64_t pods, std::uint64_t seconds, std::uint64_t recorded) {
    const std::string text = NodeOfACluster(static_cast<unsigned>(pods)).metrics();
    const Numbers idle = count(NodeOfACluster(0).metrics());
    const Numbers node = count(text);
    const auto row = [](const std::string &what, const std::string &value) {
        std::cout << fmt::format("  {:<44}{:>14}\n", what, value);
    };
    const auto number = [&](const std::string &what, std::uint64_t value) {
        row(what, std::to_string(value));
    };

    if (pods > 0 && text.find(R"(namespace="inference",pod="llm-serving-)") == std::string::npos)
        throw std::runtime_error("the metrics name no pod");
    std::cout << fmt::format("A node with {} pods that take the driver's memory\n", pods);
    number("series", node.series);
    number("  of them without any pod", idle.series);
    number("bytes of a scrape", node.bytes);
    std::cout << fmt::format("Prometheus, {} nodes, every {} s\n", nodes, seconds);
    number("series", node.series * nodes);
    number("samples a second", node.series * nodes / seconds);
    row("scraped a second", fmt::format("{} KiB", node.bytes * nodes / seconds / 1024));
    const std::uint64_t kept = node.series * nodes * bytes_of_sample * days_kept * 86400 / seconds;
    row(fmt::format("on disk, {} bytes a sample, {} days", bytes_of_sample, days_kept),
        fmt::format("{:.1f} GiB", static_cast<double>(kept) / static_cast<double>(gib)));
    std::cout << fmt::format("Of it, for a Prometheus of several clusters, every {} s\n",
                             seconds_of_rules);
    number("series", (recorded + pods) * nodes);
    number("samples a second", (recorded + pods) * nodes / seconds_of_rules);
    std::cout << "The API server\n";
    row("calls a minute, of the proxies, at the most",
        fmt::format("{}", nodes * 60 / seconds_of_token + nodes * 60 / seconds_of_access));
    row("calls a minute of umacct-dra, where it runs", fmt::format("{}", nodes * 2 / 5));
    std::cout << "Kubelet, on a node of 128 GiB\n";
    const kubernetes::Offer offer{.memory = 128 * gib};
    number("devices", offer.devices());
    number("bytes of their list, when something changed",
           kubernetes::list_of(offer).ByteSizeLong());
}

} // namespace

int main(int argc, char **argv) {
    try {
        if (argc != 5)
            throw std::runtime_error("usage: cluster_numbers NODES PODS SECONDS RECORDED");
        print(std::stoull(argv[1]), std::stoull(argv[2]), std::stoull(argv[3]),
              std::stoull(argv[4]));
        return 0;
    } catch (const std::exception &error) {
        std::cerr << "cluster_numbers: " << error.what() << '\n';
        return 1;
    }
}
