// SPDX-License-Identifier: GPL-2.0-or-later
#include "exporter/metrics.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/history/steps.h"
#include "lib/host/cgroup.h"
#include "lib/owners/tenant.h"
#include "lib/text.h"

namespace umacct {

namespace {

constexpr double ns_in_s = 1e9;
constexpr double us_in_s = 1e6;

enum class Kind { gauge, counter, info };

using Labels = std::vector<std::pair<const char *, std::string>>;

std::string escaped(const std::string &text) {
    std::string result;

    for (const char c : printable(text)) {
        if (c == '\\' || c == '"')
            result += '\\';
        result += c;
    }
    return result;
}

/// Formats labels for a sample: made once for many of them.
std::string in_braces(const Labels &labels) {
    std::string list;

    for (const auto &[name, text] : labels)
        list += fmt::format("{}{}=\"{}\"", list.empty() ? "{" : ",", name, escaped(text));
    return list.empty() ? list : list + "}";
}

/// Families, and their samples below them.
class Writer {
public:
    explicit Writer(MetricsFormat format) : open_(format == MetricsFormat::openmetrics) {}

    /// name: without "umacct_" and what its kind adds to it.
    void family(std::string_view name, Kind kind, std::string_view unit, std::string_view help) {
        static constexpr std::array<std::string_view, 3> kinds{"gauge", "counter", "info"};
        static constexpr std::array<std::string_view, 3> suffixes{"", "_total", "_info"};
        const auto at = static_cast<std::size_t>(kind);
        const std::string base = fmt::format("umacct_{}{}{}", name, unit.empty() ? "" : "_", unit);

        sample_ = base + std::string(suffixes.at(at));
        const std::string &described = open_ ? base : sample_;
        text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", described, help, described,
                             kind == Kind::info && !open_ ? "gauge" : kinds.at(at));
        if (open_ && !unit.empty())
            text_ += fmt::format("# UNIT {} {}\n", described, unit);
    }

    /// labels: as in_braces() makes them.
    template <class Value>
    void sample(const std::string &labels, Value value) {
        fmt::format_to(std::back_inserter(text_), "{}{} {}\n", sample_, labels, value);
    }

    template <class Value>
    void sample(const Labels &labels, Value value) {
        sample(in_braces(labels), value);
    }

    template <class Value>
    void one(std::string_view name, Kind kind, std::string_view unit, std::string_view help,
             Value value) {
        family(name, kind, unit, help);
        sample(std::string(), value);
    }

    std::string finish() {
        if (open_)
            text_ += "# EOF\n";
        return std::move(text_);
    }

private:
    bool open_;
    std::string sample_; ///< start of a sample of the current family
    std::string text_;
};

using Number = std::optional<std::uint64_t>;

/// A figure, and what it is called; value: of a unit of seconds, nanoseconds.
template <class Of>
struct Figure {
    const char *name;
    Kind kind;
    const char *unit;
    const char *help;
    Number (*value)(const Of &of);
};

#include "exporter/figure_metrics.inc"

/// Writes a sample for each object that has the figure.
template <class Of>
void write_figure(Writer &to, const Figure<Of> &figure, std::span<const Of> of,
                  const std::vector<std::string> &labels) {
    const bool seconds = std::string_view(figure.unit) == "seconds";

    to.family(figure.name, figure.kind, figure.unit, figure.help);
    for (std::size_t i = 0; i < of.size(); ++i) {
        const Number value = figure.value(of[i]);

        if (value && seconds)
            to.sample(labels[i], static_cast<double>(*value) / ns_in_s);
        else if (value)
            to.sample(labels[i], *value);
    }
}

void write_status(Writer &to, const Status &status) {
    to.family("module", Kind::info, "", "The module that is loaded, and the driver.");
    to.sample({{"version", status.module_version},
               {"driver", std::string(name_of(status.driver_state))},
               {"driver_version", status.driver_version}},
              1);
    for (const Figure<Status> &figure : status_figures) {
        if (figure.value(status))
            write_figure(to, figure, std::span(&status, 1), {std::string()});
    }
}

void write_hooks(Writer &to, const std::vector<Hook> &hooks) {
    const auto each = [&](const auto &value) {
        for (const Hook &hook : hooks)
            to.sample({{"hook", hook.name}}, value(hook));
    };

    to.family("hook_armed", Kind::gauge, "", "Whether a function of the driver's is hooked.");
    each([](const Hook &hook) { return hook.state == UMACCT_HOOK_ARMED ? 1 : 0; });
    to.family("hook_calls", Kind::counter, "", "Calls that a hook saw.");
    each([](const Hook &hook) { return hook.calls; });
    to.family("hook_missed", Kind::counter, "", "Calls that a hook did not see.");
    each([](const Hook &hook) { return hook.missed; });
}

/// No label is longer: cgroups' names are for tenants to choose.
constexpr std::size_t longest_label = 200;

std::string bounded(std::string text) {
    if (text.size() > longest_label)
        text = text.substr(0, longest_label) + "...";
    return text;
}

/// A path that is too long, or has bytes that can't be printed, ends in the cgroup's id, so that no
/// two labels are the same. No path has "//" in it.
std::string cgroup_label(const Account &account) {
    if (account.path.size() > longest_label)
        return fmt::format("{}{}", bounded(account.path), account.id);
    return printable(account.path) == account.path
               ? account.path
               : fmt::format("{}//{}", account.path, account.id);
}

/// Returns the accounts to export. An overlong path is replaced by its label: those of many
/// thousands of cgroups that a tenant makes would be 60 MiB.
std::vector<Account> accounts_of(Module &module) {
    constexpr std::size_t longest_path = 512;
    std::vector<Account> accounts;

    module.for_each_account([&accounts] { accounts.clear(); },
                            [&accounts](Account account) {
                                if (account.path.size() > longest_path)
                                    account.path = cgroup_label(account);
                                accounts.push_back(std::move(account));
                            });
    return accounts;
}

/// Labels of a cgroup and of its owner.
Labels labels_of(const Account &account, const Owners &owners) {
    std::string named = account.path;
    while (named != "/" && !owners.of(named))
        named = parent_path(named);
    const auto owner = owners.of(named);
    Labels labels{{"cgroup", cgroup_label(account)}};
    const auto add = [&](const char *name, const std::string &text) {
        if (!text.empty())
            labels.emplace_back(name, bounded(text));
    };

    if (!owner)
        return labels;
    // A tenant chooses names within its service or container: "sshd.service", for example.
    if (owner->kind == OwnerKind::unit && !is_made_inside(named, owners))
        add("unit", owner->id);
    add("namespace", owner->kube_namespace);
    add("pod", owner->pod);
    if (owner->kind == OwnerKind::container)
        add("container", !owner->container.empty() ? owner->container
                         : !owner->name.empty()    ? owner->name
                                                   : owner->id.substr(0, 12));
    return labels;
}

using Memory = MemoryController;

/// Figures beside the module's; docs/metrics.md has them below its table.
constexpr std::array<Figure<Memory>, 3> memory_figures{{
    {"account_total", Kind::gauge, "bytes",
     "What would come back if all in the cgroup ended, driver and programs.",
     [](const Memory &of) -> Number { return of.total; }},
    {"account_cache", Kind::gauge, "bytes", "Page cache and slab beside total.",
     [](const Memory &of) -> Number { return of.cache; }},
    {"account_swap", Kind::gauge, "bytes", "What lies on swap beside total.",
     [](const Memory &of) -> Number { return of.swap; }},
}};

void write_account_figures(Writer &to, const Machine &machine, std::span<const Account> shown) {
    std::vector<std::string> labels;
    std::vector<Memory> memory;

    labels.reserve(shown.size());
    memory.reserve(shown.size());
    for (const Account &account : shown) {
        labels.push_back(in_braces(labels_of(account, machine.owners())));
        memory.push_back(memory_controller(machine.cgroups(), account, {.total = true}));
    }
    for (const Figure<Account> &figure : account_figures)
        write_figure(to, figure, shown, labels);
    for (const Figure<Memory> &figure : memory_figures)
        write_figure(to, figure, std::span<const Memory>(memory), labels);
}

/// Those that hold something or have a limit, the ones that hold most first.
std::vector<Account *> worth_telling(std::vector<Account> &accounts) {
    std::vector<Account *> some;

    for (Account &account : accounts) {
        if (account.usage > 0 || account.hard || account.soft)
            some.push_back(&account);
    }
    // The order is one for accounts that hold the same, too: a series is there or not.
    std::ranges::sort(some, [](const Account *a, const Account *b) {
        return a->usage != b->usage ? a->usage > b->usage : a->path < b->path;
    });
    return some;
}

/// The topmost cgroup of the tenant that a cgroup is of; empty for one of the machine's own. It may
/// make any number of them below that one.
std::string tenant_of(const Owners &owners, std::string path) {
    std::string topmost;

    for (; owners.cgroups() && path.size() > 1 && is_tenants(*owners.cgroups(), path);
         path = parent_path(path))
        topmost = path;
    return topmost;
}

void write_accounts(Writer &to, const Machine &machine, std::vector<Account> accounts,
                    const MetricsOptions &options) {
    const auto now = RecentAccounts::Clock::now();
    std::vector<Account> shown;
    std::uint64_t rest = 0;

    for (const Account &account : accounts)
        rest += account.local;
    if (options.recent != nullptr)
        options.recent->forget(now);
    for (Account *account : worth_telling(accounts)) {
        if (shown.size() == options.top)
            break;
        if (options.recent != nullptr &&
            !options.recent->take(cgroup_label(*account),
                                  tenant_of(machine.owners(), account->path),
                                  RecentAccounts::spare * options.top, now))
            continue;
        rest -= account->local;
        shown.push_back(std::move(*account));
    }
    write_account_figures(to, machine, shown);
    to.one("rest_accounts", Kind::gauge, "", "Accounts that are not exported individually.",
           accounts.size() - shown.size());
    to.one("rest_local", Kind::gauge, "bytes", "What those hold.", rest);
}

void write_machine(Writer &to, const Machine &machine) {
    const Meminfo memory = machine.meminfo();

    to.one("machine_memory", Kind::gauge, "bytes", "The machine's memory.", memory.total());
    to.one("machine_free", Kind::gauge, "bytes", "Free memory.", memory.free());
    to.one("machine_available", Kind::gauge, "bytes", "Memory that is available without swapping.",
           memory.available());

    const auto pressure = machine.pressure();
    if (!pressure)
        return;
    to.family("machine_pressure", Kind::counter, "seconds",
              "How long some tasks, or all, waited for memory.");
    to.sample({{"who", "some"}}, static_cast<double>(pressure->some.total_us) / us_in_s);
    to.sample({{"who", "full"}}, static_cast<double>(pressure->full.total_us) / us_in_s);
}

/// The largest step that is known of, of the accounts that there are, and what is left for it.
void write_next_step(Writer &to, const Machine &machine, const Status &status) {
    const auto next = history::next_step(machine, status);

    if (!next)
        return;
    Account account;
    account.path = next->steps.path;
    to.family("next_step", Kind::gauge, "bytes",
              "The largest growth of an account within ten seconds so far.");
    to.sample(labels_of(account, machine.owners()), next->longest());
    to.one("next_step_left", Kind::gauge, "bytes",
           "What is available for it above the reserve and the guard's floor.", next->left);
}

struct Answers {
    Status status;
    std::vector<Account> accounts;
};

/// Asks the module for everything; empty if there is none, or it is unloaded meanwhile.
std::optional<Answers> ask(Connection &connection) {
    try {
        Module &module = connection.module();

        return Answers{.status = module.status(), .accounts = accounts_of(module)};
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            throw;
        connection.reset();
        return std::nullopt;
    }
}

} // namespace

void RecentAccounts::forget(Clock::time_point now) {
    std::erase_if(told_, [&](const auto &each) { return now - each.second.at > lasts; });
}

bool RecentAccounts::take(const std::string &cgroup, const std::string &tenant, std::size_t most,
                          Clock::time_point now) {
    const auto is_same = [&](const auto &each) { return each.second.tenant == tenant; };

    if (!told_.contains(cgroup) &&
        (told_.size() >= most || (!tenant.empty() && static_cast<std::size_t>(std::ranges::count_if(
                                                         told_, is_same)) >= most / parts)))
        return false;
    told_[cgroup] = {now, tenant};
    return true;
}

std::string metrics_text(Connection &connection, Machine &machine, const MetricsOptions &options) {
    Writer to(options.format);
    auto answers = ask(connection);

    to.one("up", Kind::gauge, "", "Whether the module is loaded.", answers ? 1 : 0);
    write_machine(to, machine);
    if (answers) {
        machine.refresh_owners();
        write_status(to, answers->status);
        write_hooks(to, answers->status.hooks);
        write_next_step(to, machine, answers->status);
        write_accounts(to, machine, std::move(answers->accounts), options);
    }
    return to.finish();
}

} // namespace umacct
