// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/ostream.h>

#include "lib/error.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

constexpr std::size_t most_targets = 1000;

/// What a shell takes as one word, whatever cgroups are called: it ends up on a command
/// line.
bool is_plain(std::string_view text) {
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                   "0123456789_./@:,+-") == std::string_view::npos;
}

class Targets {
public:
    explicit Targets(std::string prefix) : prefix_(std::move(prefix)) {}

    void add(const std::string &target, const std::string &what) {
        if (target.starts_with(prefix_) && is_plain(target) && targets_.size() < most_targets)
            targets_.emplace(target, what);
    }

    /// Names come first to mind; a path is written by who begins with "/".
    void add_cgroup(const std::string &path, const std::optional<Owner> &owner) {
        if (prefix_.starts_with('/'))
            add(path, owner ? owner->label() : "cgroup");
        if (!owner)
            return;
        if (owner->kind == OwnerKind::unit) {
            add(owner->id, "unit");
            return;
        }
        const bool is_container = owner->kind == OwnerKind::container;
        const std::string name = owner->full_name();
        if (!name.empty() && (!is_container || owner->pod.empty() || !owner->container.empty()))
            add(name, is_container ? owner->runtime : "pod");
        if (!prefix_.empty() || name.empty())
            add(owner->id, owner->label());
    }

    void add_account(const std::string &path) {
        if (prefix_.empty())
            add(path, "cgroup");
    }

    void print(std::ostream &out) const {
        for (const auto &[target, what] : targets_)
            fmt::print(out, "{}\t{}\n", target, is_plain(what) ? what : "container");
    }

private:
    std::string prefix_;
    std::map<std::string, std::string> targets_;
};

/// Each source may be missing; the others will do.
template <class Source>
void without_complaint(Source source) {
    try {
        source();
    } catch (const std::exception &) {
        // A shell that is about to complete a word can't show it.
    }
}

void complete(Context &context, const std::string &prefix) {
    Targets targets(prefix);

    without_complaint([&] {
        for (const Account &account : context.module().accounts()) {
            if (account.usage > 0 || account.configured())
                targets.add_account(account.path);
        }
    });
    without_complaint([&] {
        context.cgroups().for_each(
            [&](const std::string &path) { targets.add_cgroup(path, context.owners().of(path)); });
    });
    targets.print(context.out());
}

} // namespace

void add_complete_targets(CLI::App &app, Context &context) {
    auto prefix = std::make_shared<std::string>();
    CLI::App *verb = app.add_subcommand("complete-targets", "print what TARGET may be");

    verb->group("");
    verb->add_option("PREFIX", *prefix, "what it begins with");
    verb->callback([prefix, &context] { complete(context, *prefix); });
}

} // namespace umacct::tool
