// SPDX-License-Identifier: GPL-2.0-or-later
/// The policy's file, and what its rules say of cgroups.
#include "lib/policy/policy.h"

#include "tests/fuzz/fuzz.h"

using namespace umacct;

namespace {

constexpr std::uint64_t total = 1ULL << 37;

void try_rule(const Policy &policy, const Rule &rule) {
    const Owner owner{.kind = OwnerKind::container, .runtime = "docker", .id = "4f5a9c"};

    for (const Owner *each : {static_cast<const Owner *>(nullptr), &owner}) {
        const Subject subject{.path = "/docker/4f5a9c", .owner = each};
        const Fit fitting = fit(rule, subject);

        fuzz::expect(fitting.fits == fitting.why.empty(), "what is not for it says why");
        fuzz::expect(!fitting.fits || policy.match(subject) != nullptr, "some rule is for it");
    }
    fuzz::expect(!rule.name.empty(), "a rule has a name");
    fuzz::expect(!rule.change(total).empty(), "a rule sets something");
    if (const auto folder = rule.drop_ins())
        fuzz::expect(folder->ends_with(".service.d") && folder->find('/') == std::string::npos,
                     "a folder of drop-ins is a service's, and stays where it is");
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const std::string text = fuzz::text_of(data, size);

    try {
        const Policy policy = read_policy(text, "policy");

        for (const Rule &rule : policy.rules)
            try_rule(policy, rule);
        if (policy.guard)
            policy.guard->protects("/docker/4f5a9c");
        for (const auto &amount : {policy.reserve, policy.headroom})
            fuzz::expect(!amount || !amount->percent || amount->of(total) <= total, "a share");
    } catch (const PolicyError &error) {
        fuzz::expect(!error.diagnostics().empty(), "what is wrong is said");
        for (const Diagnostic &each : error.diagnostics()) {
            fuzz::expect(each.place.file == "policy" && each.place.line > 0 && !each.text.empty(),
                         "and where");
        }
    }
    return 0;
}
