// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/found.h"

#include <utility>

#include "lib/owners/no_such_target.h"
#include "lib/owners/owner.h"
#include "tool/settings.h"

namespace umacct::tool {

namespace {

Who at(std::string path, std::optional<Owner> owner) {
    Who who;

    who.target.path = std::move(path);
    who.owner = std::move(owner);
    return who;
}

/// A service, a container or a pod that does not run, by what is known of it before; empty for a
/// word that can't be one.
std::optional<Who> expected(const std::string &word) {
    constexpr std::string_view of_pod = "pod:";
    const auto colon = word.find(':');
    const std::string prefix = word.substr(0, colon == std::string::npos ? 0 : colon + 1);
    const std::string name = word.substr(prefix.size());
    const auto slash = name.find('/');

    // A process can't be one that will be.
    if (prefix == "pid:" || name.find_first_not_of("0123456789") == std::string::npos ||
        (prefix != of_pod && slash != std::string::npos && slash != 0))
        return std::nullopt;
    if (prefix == of_pod) {
        Owner owner;

        owner.kind = OwnerKind::pod;
        owner.runtime = "kubernetes";
        owner.kube_namespace = slash == std::string::npos ? "" : name.substr(0, slash);
        owner.pod = slash == std::string::npos ? name : name.substr(slash + 1);
        return at("", owner);
    }
    if (prefix == "container:") {
        Owner owner;

        owner.kind = OwnerKind::container;
        owner.runtime = "container";
        owner.id = owner.name = name;
        return at("", owner);
    }
    if (slash == 0)
        return at(name, owner_of(name));
    std::string path = "/system.slice/" + name;
    if (!owner_of(path))
        path += ".service";
    return at(path, owner_of(path));
}

Who who_is(const Machine &machine, const std::string &word) {
    Who who;

    who.target = machine.resolve(word);
    who.owner = owner_for_daemon(machine, who.target.path);
    return who;
}

} // namespace

Found::Found(const Machine &machine, const Policy &by, const std::string &word)
    : Found(machine, by, who_is(machine, word), true) {}

Found::Found(const Machine &machine, Policy by, Who who, bool is_there)
    : policy(std::move(by)),
      target(std::move(who.target)),
      owner(std::move(who.owner)),
      runs(is_there),
      inside(!target.path.empty() && is_made_inside(target.path, machine.owners())),
      rule(policy.match(subject())),
      orders(read(machine)),
      change(settle(orders).ordered()) {}

Found Found::of(const Machine &machine, const Policy &by, const std::string &word) {
    try {
        return {machine, by, word};
    } catch (const NoSuchTarget &) {
        auto one = expected(word);

        if (!one)
            throw;
        return {machine, by, std::move(*one), false};
    }
}

Orders Found::read(const Machine &machine) const {
    RuleOrder of_rule = policy.order(target.path, rule, machine.meminfo().total());

    return runs ? read_orders(machine, target.path, std::move(of_rule))
                : Orders{.rule = std::move(of_rule), .container = {}, .person = {}};
}

} // namespace umacct::tool
