// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/audit/statement.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <memory>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/memory/zones.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/holders.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

constexpr std::uint64_t least_slack = 4ULL << 20;
constexpr std::uint64_t stock_pages = 64; ///< largest amount that one CPU holds back from
                                          ///< memory.stat
constexpr int bar_width = 72;             ///< used on a wide terminal, and without one

struct AuditOptions {
    std::optional<std::string> target;
    bool machine = false; ///< alone
    std::optional<std::string> diff;
};

struct Audit {
    Statement machine;
    std::uint64_t pinned = 0;
    std::uint64_t huge_free = 0; ///< free ones of the reserved huge pages
    std::uint64_t cma_total = 0;
    std::uint64_t cma_free = 0;
    bool cma_known = true;                 ///< false: the kernel does not count the devices' part
    std::uint64_t kept = 0;                ///< guaranteed part of the available memory
    std::optional<std::uint64_t> since_ns; ///< set for the observer: time at which its counting
                                           ///< began
    SlabBookkeeping in_slab;
    std::optional<std::uint64_t> in_vmalloc; ///< bytes of the driver's bookkeeping
    bool page_pools = false;
    std::vector<CgroupStatement> cgroups;                 ///< sorted by path
    std::vector<std::optional<HoldingProcess>> processes; ///< one for each of them
    std::vector<SharedFile> files;
};

std::optional<std::uint64_t> in_bytes(std::optional<std::uint64_t> pages) {
    return pages ? std::optional(*pages * page_size()) : std::nullopt;
}

std::uint64_t counter_slack() {
    return std::max(least_slack,
                    stock_pages * page_size() * std::max(1U, std::thread::hardware_concurrency()));
}

/// Every account that holds something, and every container and pod.
std::vector<Account> audited_accounts(Module &module, const Machine &machine) {
    std::map<std::string, Account> by_path;

    for (const Account &account : module.accounts()) {
        if (account.usage > 0)
            by_path[account.path] = account;
    }
    machine.cgroups().for_each([&](const std::string &path) {
        const auto owner = machine.owners().of(path);

        if (owner && owner->kind != OwnerKind::unit && !by_path.contains(path))
            by_path[path].path = path;
    });

    std::vector<Account> accounts;
    accounts.reserve(by_path.size());
    for (auto &[path, account] : by_path)
        accounts.push_back(std::move(account));
    return accounts;
}

/// Every cgroup of the target's subtree that there is an account for, and itself.
std::vector<Account> audited_accounts(Module &module, const Machine &machine,
                                      const std::string &target) {
    const Account account = read_account(module, machine.cgroups(), machine.resolve(target));
    std::vector<Account> accounts = module.accounts(account.id);

    std::erase_if(accounts, [&](const Account &each) { return each.id == account.id; });
    accounts.insert(accounts.begin(), account);
    return accounts;
}

Audit make_audit(Module &module, const Machine &machine, const Output &output,
                 const AuditOptions &options) {
    const std::vector<Account> accounts = options.machine ? std::vector<Account>()
                                          : options.target
                                              ? audited_accounts(module, machine, *options.target)
                                              : audited_accounts(module, machine);
    const std::uint64_t slack = counter_slack();
    Audit audit;

    for (const Account &account : accounts) {
        audit.cgroups.push_back(
            cgroup_statement(account, machine.cgroups().number(account.path, "memory.current"),
                             machine.cgroups().keyed(account.path, "memory.stat"), slack));
    }

    if (!accounts.empty()) {
        const std::vector<Client> clients = module.clients();

        for (const Account &account : accounts)
            audit.processes.push_back(first_process(machine, account.path, clients));
    }
    // They are of no cgroup's subtree alone.
    if (!options.target && !options.machine)
        audit.files = holding_files(machine);
    const Status status = module.status();
    output.warn_if_degraded(status);
    if (!status.tells_all())
        output.note("what the driver took for others is not visible to you: it is unexplained");
    // Reading it makes the kernel fold its per-CPU counters into the ones read next.
    std::ifstream(machine.proc() / "sys/vm/stat_refresh").peek();
    const Meminfo memory = machine.meminfo(status);
    std::ifstream zoneinfo(machine.proc() / "zoneinfo");
    std::ifstream vmstat(machine.proc() / "vmstat");
    std::ifstream slabinfo(machine.proc() / "slabinfo");
    std::ifstream vmallocinfo(machine.proc() / "vmallocinfo");
    const Watermarks watermarks = Watermarks::read(zoneinfo, page_size());
    const VmCounters counters = VmCounters::read(vmstat);
    const auto devices = pages_of_devices(machine.root() / "sys/kernel/mm/cma");
    audit.machine = machine_statement(memory, watermarks,
                                      {.free_lists = watermarks.free_lists,
                                       .zspages = counters.zspages * page_size(),
                                       .cma = devices.value_or(0) * page_size()},
                                      status);
    audit.pinned = counters.pinned * page_size();
    audit.huge_free = memory.bytes("HugePages_Free") * memory.bytes("Hugepagesize");
    audit.cma_total = memory.bytes("CmaTotal");
    audit.cma_free = memory.bytes("CmaFree");
    audit.cma_known = devices || audit.cma_total == 0;
    audit.kept = status.kept;
    if (status.has(UMACCT_STATUS_OBSERVER))
        audit.since_ns = status.since_ns;
    audit.in_slab = bookkeeping_in_slab(slabinfo, machine.root() / "sys/kernel/slab");
    audit.in_vmalloc = in_bytes(bookkeeping_in_vmalloc(vmallocinfo));
    audit.page_pools = status.has(UMACCT_STATUS_PAGE_POOLS);
    return audit;
}

// --- JSON ---------------------------------------------------------------------

Json number_or_null(const std::optional<std::uint64_t> &number) {
    return number ? Json(*number) : Json(nullptr);
}

/// Same form as key_of().
constexpr const char *pools_key = "driver_pools_bytes";

std::string key_of(const PartForm &form) {
    return std::string(form.name) + "_bytes";
}

Json machine_json(const Statement &machine) {
    Json json = {{"total_bytes", machine.total}};

    for (const PartForm &form : part_forms())
        json[key_of(form)] = machine[form.part];
    if (!machine.pools_known)
        json[pools_key] = nullptr;
    return json;
}

/// Its members but the first and the last two are what MemAvailable is the sum of.
Json available_json(const AvailableStatement &it) {
    return {{"memory_available_bytes", it.available},
            {"free_bytes", it.free},
            {"reserve_bytes", it.reserve},
            {"file_bytes", it.file},
            {"file_kept_bytes", it.file_kept},
            {"slab_bytes", it.slab},
            {"slab_kept_bytes", it.slab_kept},
            {"other_bytes", it.other},
            {"rest_bytes", it.rest},
            {"locked_file_bytes", it.locked_file}};
}

/// Returns each part's share of the memory that isn't available.
Json taken_json(const Statement &machine) {
    Json json = {{"total_bytes", static_cast<std::int64_t>(machine.total) -
                                     static_cast<std::int64_t>(machine.available.available)}};

    for (const PartForm &form : part_forms())
        json[key_of(form)] = machine.taken(form.part);
    return json;
}

Json figures_json(const CgroupStatement &statement) {
    return {{"memory_current_bytes", number_or_null(statement.current)},
            {"anonymous_bytes", statement.anonymous},
            {"file_bytes", statement.file},
            {"kernel_bytes", statement.kernel},
            {"kernel_objects_bytes", statement.kernel_objects},
            {"kernel_pages_bytes", statement.kernel_pages},
            {"other_bytes", statement.other},
            {"usage_bytes", statement.account.usage},
            {"charged_bytes", statement.account.charged},
            {"managed_bytes", statement.account.managed},
            {"metadata_bytes", statement.account.metadata},
            {"once_bytes", statement.once},
            {"twice_bytes", statement.twice},
            {"unseen_bytes", statement.unseen}};
}

Json cgroup_json(const Owners &owners, const CgroupStatement &statement) {
    const std::string &path = statement.account.path;
    Json json =
        merged({{"path", path}, {"owner", to_json(owners.nearest(path))}}, figures_json(statement));

    json["verdict"] = name_of(statement.verdict);
    return json;
}

Json audit_json(const Owners &owners, const Audit &audit) {
    Json cgroups = Json::array();

    for (std::size_t i = 0; i < audit.cgroups.size(); ++i) {
        cgroups.push_back(cgroup_json(owners, audit.cgroups[i]));
        cgroups.back()["process"] = holder_json(audit.processes[i]);
    }
    return {{"machine", machine_json(audit.machine)},
            {"available_bytes", audit.machine.available.available},
            {"available", available_json(audit.machine.available)},
            {"taken", taken_json(audit.machine)},
            {"huge_pages_free_bytes", audit.huge_free},
            {"cma_total_bytes", audit.cma_total},
            {"cma_free_bytes", audit.cma_free},
            {"pinned_bytes", audit.pinned},
            {"kept_bytes", audit.kept},
            {"bookkeeping_slab_bytes", number_or_null(in_bytes(audit.in_slab.pages))},
            {"bookkeeping_slab_partial", audit.in_slab.partial},
            {"bookkeeping_vmalloc_bytes", number_or_null(audit.in_vmalloc)},
            {"page_pools", audit.page_pools},
            {"cgroups", cgroups},
            {"shared_files", files_json(audit.files)}};
}

// --- the difference from an earlier audit ---------------------------------------

/// A number of an audit; empty where it isn't known, or an earlier version of this tool left
/// it out.
std::optional<std::int64_t> number_of(const Json &object, const std::string &key) {
    const auto found = object.find(key);

    return found != object.end() && found->is_number_integer()
               ? std::optional(found->get<std::int64_t>())
               : std::nullopt;
}

/// Subtracts with saturation: a file may contain any number.
std::int64_t difference(std::int64_t later, std::int64_t earlier) {
    std::int64_t result = 0;

    if (__builtin_sub_overflow(later, earlier, &result))
        return earlier < 0 ? INT64_MAX : INT64_MIN;
    return result;
}

Json read_earlier(const std::string &file) {
    std::ifstream text(file);

    if (!text)
        throw Error(Failure::failed,
                    fmt::format("--diff: cannot read '{}': {}", file,
                                std::generic_category().message(errno)),
                    "give a file that 'umacct audit --json' wrote");

    Json earlier = Json::parse(text, nullptr, false);
    const bool is_audit = earlier.is_object() && number_of(earlier, "schema") == json_schema &&
                          earlier.contains("machine") && earlier["machine"].is_object() &&
                          earlier.contains("cgroups") && earlier["cgroups"].is_array();
    if (!is_audit)
        throw Error(Failure::failed,
                    fmt::format("--diff: '{}' is no audit of schema {}", file, json_schema),
                    "give a file that 'umacct audit --json' wrote");
    return earlier;
}

std::map<std::string, Json> by_path(const Json &cgroups) {
    std::map<std::string, Json> result;

    for (const Json &cgroup : cgroups) {
        if (cgroup.is_object() && cgroup.contains("path") && cgroup["path"].is_string())
            result[cgroup["path"].get<std::string>()] = cgroup;
    }
    return result;
}

Json verdict_of(const Json &cgroup) {
    return cgroup.contains("verdict") ? cgroup["verdict"] : Json(nullptr);
}

/// Later minus earlier, for each of these keys.
Json difference(const Json &later, const Json &earlier, const Json &keys) {
    Json result = Json::object();

    for (const auto &[key, unused] : keys.items())
        result[key] =
            difference(number_of(later, key).value_or(0), number_of(earlier, key).value_or(0));
    return result;
}

/// Returns the change of MemAvailable by parts: how much more each of them takes. Null if the
/// earlier audit lacks them.
Json available_difference(const Json &later, const Json &earlier) {
    const auto fell = [](const Json &audit) { return number_of(audit, "available_bytes"); };
    const auto rest = [](const Json &audit) {
        const auto found = audit.find("available");

        return found != audit.end() ? number_of(*found, "rest_bytes").value_or(0) : 0;
    };

    if (!earlier.contains("taken") || !earlier["taken"].is_object() || !fell(earlier))
        return nullptr;
    const Json taken = difference(later["taken"], earlier["taken"], later["taken"]);
    const std::int64_t change = difference(*fell(later), *fell(earlier));
    // The unaccounted part: no counter has it, or it was read at another moment.
    const auto magnitude = [](std::int64_t bytes) { return std::abs(static_cast<double>(bytes)); };
    const double unknown =
        magnitude(number_of(taken, key_of(form_of(Part::unexplained))).value_or(0)) +
        magnitude(difference(rest(later), rest(earlier)));
    const double accounted =
        change == 0 ? 100 : std::max(0.0, 100 - 100 * unknown / magnitude(change));

    return {{"change_bytes", change}, {"accounted_percent", accounted}, {"taken", taken}};
}

/// Returns the difference of whole audits; a cgroup that is in one of them only counts as nothing
/// in the other.
Json audit_difference(const Json &later, const Json &earlier) {
    const Json figures = figures_json({});
    Json machine = difference(later["machine"], earlier["machine"], later["machine"]);
    Json cgroups = Json::array();
    std::map<std::string, Json> before = by_path(earlier["cgroups"]);
    std::map<std::string, Json> now = by_path(later["cgroups"]);
    std::map<std::string, Json> both = before;

    if (!number_of(later["machine"], pools_key) || !number_of(earlier["machine"], pools_key))
        machine[pools_key] = nullptr;
    both.insert(now.begin(), now.end());
    for (const auto &[path, unused] : both)
        cgroups.push_back(merged({{"path", path},
                                  {"verdict_before", verdict_of(before[path])},
                                  {"verdict", verdict_of(now[path])}},
                                 difference(now[path], before[path], figures)));
    return {{"machine", machine},
            {"available", available_difference(later, earlier)},
            {"cgroups", cgroups}};
}

// --- text ---------------------------------------------------------------------

std::string format_signed(std::int64_t bytes) {
    return bytes < 0 ? "-" + format_size(-static_cast<std::uint64_t>(bytes))
                     : format_size(static_cast<std::uint64_t>(bytes));
}

/// Empty where it isn't known.
std::string format_change(std::optional<std::int64_t> bytes) {
    return bytes ? (*bytes > 0 ? "+" : "") + format_signed(*bytes) : "";
}

/// Each letter's share of the bar, rounded so that the bar is full.
std::string bar_of(const Statement &machine, std::size_t width) {
    std::string bar;
    std::uint64_t sum = 0;

    for (const PartForm &form : part_forms()) {
        sum += static_cast<std::uint64_t>(std::max<std::int64_t>(0, machine[form.part]));
        const std::size_t end = (sum * width + machine.total / 2) / machine.total;

        bar.resize(std::max(bar.size(), std::min(end, width)), form.letter);
    }
    return bar;
}

/// Prints the composition of MemAvailable, and memory that looks available but isn't in it.
void print_available(const Output &output, const Audit &audit) {
    const AvailableStatement &it = audit.machine.available;
    const auto less = [](std::uint64_t bytes, const char *why) {
        return bytes == 0 ? "" : fmt::format(" less {} {}", format_size(bytes), why);
    };

    fmt::print(output.out, "  That is: of free memory {}{}; of page cache {}{}; of slab {}{}{}\n",
               format_size(it.free), less(it.reserve, "that the kernel keeps for itself"),
               format_size(it.file), less(it.file_kept, "that stays under the watermarks"),
               format_size(it.slab), less(it.slab_kept, "likewise"),
               it.other == 0 ? "" : "; of drivers " + format_size(it.other));
    if (it.locked_file > 0)
        fmt::print(output.out,
                   "  Not in it: {} of page cache that can't be given back: locked, of a file "
                   "system in memory, or secret\n",
                   format_size(it.locked_file));
    if (audit.machine[Part::hugetlb] > 0)
        fmt::print(output.out, "  Not in it: huge pages, {} of them unused\n",
                   format_size(audit.huge_free));
    if (audit.cma_total > 0)
        fmt::print(output.out, "  Free memory has {} of CMA areas, of {}: not for the driver{}\n",
                   format_size(audit.cma_free), format_size(audit.cma_total),
                   audit.cma_known ? ""
                                   : "; what devices have of the rest this kernel doesn't tell, it "
                                     "is in unexplained");
}

void print_machine(const Output &output, const Audit &audit, const std::optional<Json> &change) {
    Table table({{}, {}, {"", Align::right}, {"", Align::right}});
    const auto change_of = [&](const std::string &key) {
        return change ? number_of((*change)["machine"], key) : std::nullopt;
    };

    for (const PartForm &form : part_forms()) {
        const std::string letter(1, form.letter);
        const auto changed = change_of(key_of(form));

        if (form.part == Part::driver_pools && !audit.machine.pools_known)
            table.add({letter, form.label, "unknown", ""});
        else if (audit.machine[form.part] != 0 || changed.value_or(0) != 0)
            table.add({letter, form.label, format_signed(audit.machine[form.part]),
                       format_change(changed)});
    }
    table.add({"=", "MemTotal", format_size(audit.machine.total),
               format_change(change_of("total_bytes"))});
    table.print(output, 2);

    const int room = output.width == 0 ? bar_width : std::clamp(output.width - 4, 1, bar_width);

    fmt::print(output.out, "\n  [{}]\n\n  available {}{}, pinned for devices {}\n",
               bar_of(audit.machine, static_cast<std::size_t>(room)),
               format_size(audit.machine.available.available),
               audit.kept == 0
                   ? ""
                   : fmt::format(", of it kept by guarantees {}", format_size(audit.kept)),
               format_size(audit.pinned));
    print_available(output, audit);
    const bool is_least = audit.in_slab.pages && audit.in_slab.partial;
    fmt::print(output.out, "  driver's bookkeeping: {}{} of the slab, {} of vmalloc\n",
               is_least ? "at least " : "", size_or_unknown(in_bytes(audit.in_slab.pages)),
               size_or_unknown(audit.in_vmalloc));
    if (is_least)
        fmt::print(output.out, "  Its notes of each page have no slab cache of their own here: "
                               "they can't be separated.\n");
    if (!audit.machine.pools_known)
        fmt::print(output.out, "  What the driver keeps in its pools can't be asked: it is in "
                               "unexplained.\n");
    if (audit.since_ns)
        fmt::print(output.out,
                   "  What it had in use before {}, when counting began, is in "
                   "unexplained, too.\n",
                   format_clock(*audit.since_ns));
}

/// Prints an empty line and the table, unless it is empty.
void print_below(const Output &output, const Table &table) {
    if (table.empty())
        return;
    fmt::print(output.out, "\n");
    table.print(output);
}

void print_cgroups(const Machine &machine, const Output &output, const Audit &audit) {
    Table table({left("CGROUP"),
                 right("CURRENT"),
                 right("ANON"),
                 right("FILE"),
                 right("KERNEL"),
                 right("OTHER"),
                 right("DRIVER"),
                 right("ONCE"),
                 right("TWICE"),
                 right("UNSEEN"),
                 right("MANAGED"),
                 {"VERDICT", Align::left, true}});

    for (const CgroupStatement &statement : audit.cgroups) {
        const auto kernels = [&](const std::string &figure) {
            return statement.current ? figure : "-";
        };

        table.add({display_path(machine.owners(), statement.account.path),
                   format_known(statement.current), kernels(format_size(statement.anonymous)),
                   kernels(format_size(statement.file)), kernels(format_size(statement.kernel)),
                   kernels(format_signed(statement.other)), format_size(statement.account.usage),
                   format_size(statement.once), format_size(statement.twice),
                   format_size(statement.unseen), format_size(statement.account.managed),
                   std::string(name_of(statement.verdict))});
    }
    print_below(output, table);
    print_holders(machine, output, audit.processes, audit.files);
}

/// "MemAvailable fell by 412.00 MiB, of which 99.8 % is accounted for:", and by what.
void print_where_it_went(const Output &output, const Json &available) {
    const std::int64_t change = available["change_bytes"].get<std::int64_t>();
    Table table({{}, {"", Align::right}});

    if (change == 0)
        return;
    for (const PartForm &form : part_forms()) {
        const std::int64_t taken = available["taken"][key_of(form)].get<std::int64_t>();

        if (taken != 0)
            table.add({form.label, format_change(taken)});
    }
    fmt::print(output.out,
               "\nMemAvailable {} by {}; {:.1f} % of that is accounted for. More was taken by:\n",
               change < 0 ? "fell" : "rose",
               format_size(static_cast<std::uint64_t>(std::abs(change))),
               available["accounted_percent"].get<double>());
    table.print(output, 2);
}

void print_changes(const Machine &machine, const Output &output, const Json &change) {
    Table table(
        {left("CHANGE OF"), right("CURRENT"), right("DRIVER"), right("UNSEEN"), left("VERDICT")});
    const auto word = [](const Json &verdict) {
        return verdict.is_string() ? verdict.get<std::string>() : "-";
    };

    for (const Json &row : change["cgroups"])
        table.add({display_path(machine.owners(), row["path"].get<std::string>()),
                   format_change(row["memory_current_bytes"].get<std::int64_t>()),
                   format_change(row["usage_bytes"].get<std::int64_t>()),
                   format_change(row["unseen_bytes"].get<std::int64_t>()),
                   fmt::format("{} -> {}", printable(word(row["verdict_before"])),
                               word(row["verdict"]))});
    print_below(output, table);
    if (!change["available"].is_null())
        print_where_it_went(output, change["available"]);
}

int make(Module &module, const Machine &machine, Output &output, const AuditOptions &options) {
    const std::optional<Json> earlier =
        options.diff ? std::optional(read_earlier(*options.diff)) : std::nullopt;
    const Audit made = make_audit(module, machine, output, options);
    Json json = audit_json(machine.owners(), made);
    const std::optional<Json> change =
        earlier ? std::optional(audit_difference(json, *earlier)) : std::nullopt;

    if (output.json) {
        if (change)
            json["diff"] = *change;
        output.document(json);
        return 0;
    }
    print_machine(output, made, change);
    print_cgroups(machine, output, made);
    if (change)
        print_changes(machine, output, *change);
    return 0;
}

} // namespace

Action add_audit(CLI::App &verb) {
    auto options = std::make_shared<AuditOptions>();

    CLI::Option *target = verb.add_option("TARGET", options->target, "this cgroup's subtree alone");
    CLI::Option *diff =
        verb.add_option("--diff", options->diff, "what changed since an earlier audit --json")
            ->type_name("FILE");
    verb.add_flag("--machine", options->machine,
                  "the machine alone, without its cgroups and files: that takes less time")
        ->excludes(target)
        ->excludes(diff);
    verb.footer("Verdicts: blind (memory.current doesn't see all of the driver's memory), charged\n"
                "(it sees all, once), doubled (some is counted twice), none (there is none).\n");
    add_examples(verb, "umacct audit\n"
                       "umacct audit --json > before.json    and later:\n"
                       "umacct audit --diff before.json\n"
                       "umacct audit ollama.service");
    return [options](Session &session) {
        return make(session.module(), session.machine, session.output, *options);
    };
}

} // namespace umacct::tool
