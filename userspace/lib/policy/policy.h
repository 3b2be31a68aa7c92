// SPDX-License-Identifier: GPL-2.0-or-later
/// The policy: what the machine keeps for itself, and which limits a cgroup gets, by what
/// it is called. It is read and matched here; it knows nothing of the machine it is for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/error.h"
#include "lib/module/model.h"
#include "lib/orders/order.h"
#include "lib/owners/owner.h"
#include "lib/settings.h"
#include "lib/units.h"

namespace umacct {

/// A position in a file; line and column count from 1.
struct Place {
    std::string file;
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    /// "/etc/umacct.toml:5:8"; the file alone where there is no line.
    std::string text() const;

    /// "/etc/umacct.toml:5"
    std::string line_text() const;
};

/// The place of each key's value.
using Places = std::map<std::string, Place, std::less<>>;

struct Rule {
    Place place;
    Places places;    ///< the keys' positions
    std::string name; ///< name for people; "rule 2" by default
    std::int64_t priority = 0;

    // Patterns; the rule is for a cgroup that fits all that are there, and one is.
    std::optional<std::string> cgroup;
    std::optional<std::string> unit;
    std::optional<std::string> container;
    std::optional<std::string> image;
    std::optional<std::string> pod;
    std::optional<std::string> name_space;
    std::optional<std::string> label; ///< "KEY=VALUE"

    /// Settings of a matching cgroup.
    WrittenSettings settings;
    /// Limit over all memory of a service, which systemd sets: MemoryMax=.
    std::optional<Amount> total;

    /// Returns "rule "people"", or "rule 2" without a name.
    std::string title() const;

    /// Returns the settings on a machine with that much memory.
    AccountChange change(std::uint64_t memory) const { return settings.on(memory); }

    /// The folder of drop-ins that systemd reads for the services that the rule is for, and
    /// for no more than those of their prefix or template: "ollama.service.d", "llm-.service.d"
    /// for "llm-*", "llm@.service.d" for "llm@*". Empty where there is none such.
    std::optional<std::string> drop_ins() const;

    /// Returns whether it depends on a container's name, image or labels.
    bool needs_name() const { return container || image || pod || name_space || label; }
};

/// The guard's possible steps when memory runs short.
enum class GuardStep : std::uint8_t {
    reclaim, ///< make the kernel reclaim memory of the target
    reserve, ///< raise the reserve, so that the driver grants nothing more
    freeze,
    signal, ///< SIGTERM
    kill,
};

/// The word that the policy and the log have for it.
std::string_view name_of(GuardStep step);

/// The guard's conditions and steps; see guard.h.
struct GuardPolicy {
    std::optional<Amount> floor;    ///< less than this is available
    std::optional<double> pressure; ///< tasks waited for memory: per cent of the time
    bool failed = false;            ///< the driver had no memory for a request
    std::uint64_t for_ns = 500'000'000;
    std::vector<GuardStep> steps;
    std::uint64_t wait_ns = 2'000'000'000;     ///< pause between steps
    std::uint64_t release_ns = 10'000'000'000; ///< how long memory must be sufficient before the
                                               ///< steps are undone
    std::vector<std::string> protect;          ///< patterns of cgroups that it never touches
    bool dry_run = false;

    /// Returns whether a cgroup is protected: by the policy, or always, as logins need it.
    bool protects(std::string_view path) const;

    /// Whether it may protect a cgroup below that path; true where the cgroups' names decide that.
    bool may_protect_below(std::string_view path) const;

    bool operator==(const GuardPolicy &other) const = default;
};

/// Whether umacct-exporter serves the dashboard, and its access; see page.h.
struct PagePolicy {
    std::optional<bool> on;
    std::optional<std::string> token;                ///< the file that has it
    std::optional<std::vector<std::string>> origins; ///< origins whose scripts may read the figures
    std::optional<std::vector<std::string>> hosts;   ///< it is called by, beside localhost

    bool operator==(const PagePolicy &other) const = default;
};

/// umacct-hook's policy at the start of a container.
struct ContainerPolicy {
    /// A container that is to have limits starts without them where they can't be had: the module
    /// isn't loaded, or the driver isn't hooked.
    std::optional<bool> start_unlimited;
    std::optional<bool> from_memory_limit; ///< the runtime's limit is a hard one, too
    std::optional<Amount> keep;            ///< largest guarantee that a container may ask for,
                                           ///< without a rule

    bool operator==(const ContainerPolicy &other) const = default;
};

/// A cgroup, as rules see it.
struct Subject {
    std::string_view path;
    const Owner *owner = nullptr;
    /// Whoever runs in a container, a service or a session made it, and chose its name: only
    /// a pattern for its path, which begins with what they did not choose, is for it.
    bool inside = false;
};

struct Policy {
    std::optional<Amount> reserve; ///< 0: off
    std::optional<umacct_charge_mode> charge;
    std::optional<bool> view; ///< the root's, which all inherit
    std::optional<GuardPolicy> guard;
    std::optional<Amount> headroom; ///< 0: off
    std::optional<std::uint64_t> headroom_blocks;
    std::optional<bool> headroom_anonymous;
    /// BPF programs count where the module isn't loaded; true unless set
    std::optional<bool> observer;
    std::optional<std::string> notify; ///< command or address that gets each event as JSON
    ContainerPolicy containers;
    std::optional<std::size_t> exporter_top; ///< number of accounts with metrics of their own
    PagePolicy page;
    Places places;           ///< places of the tables' keys: "machine.reserve", "guard.floor"
    std::vector<Rule> rules; ///< matching order: by priority, then as in the files

    /// The first rule that is for it; null for none.
    const Rule *match(const Subject &subject) const;

    /// Returns the order for that cgroup, by the rule that match() found for it.
    RuleOrder order(std::string_view path, const Rule *rule, std::uint64_t total) const;

    /// The same of the machine.
    MachineOrder machine_order(std::uint64_t total) const;

    bool needs_names() const;
    bool needs_labels() const;
};

/// Whether the rule is for that cgroup; if not, which of its patterns isn't.
struct Fit {
    bool fits = false;
    std::string why;
};

Fit fit(const Rule &rule, const Subject &subject);

/// Matches as a shell does: '?' is one character and '*' any number, except '/'; '**' is any number
/// of any characters.
bool glob_matches(std::string_view pattern, std::string_view text);

struct Diagnostic {
    Place place;
    std::string text;

    std::string line() const;
};

/// All that is wrong with a policy; what() has the first of it.
class PolicyError : public Error {
public:
    explicit PolicyError(std::vector<Diagnostic> diagnostics);

    const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }

private:
    std::vector<Diagnostic> diagnostics_;
};

/// run/umacct.toml.d/*.toml, of what a person set until the next start, and
/// etc/umacct.toml.d/*.toml, each by their names, then etc/umacct.toml, below root; those that
/// there are, be it as links to nothing.
std::vector<std::filesystem::path> policy_files(const std::filesystem::path &root);

/// A file of a policy, as it was read.
struct PolicyText {
    std::filesystem::path file;
    std::optional<std::string> text; ///< empty where it can't be read
};

std::vector<PolicyText> read_texts(const std::vector<std::filesystem::path> &files);

/// Reads several files; the first to set a key wins. Throws PolicyError.
Policy read_policy(const std::vector<PolicyText> &texts);
Policy read_policy(const std::vector<std::filesystem::path> &files);

/// The same of one file that was read already. name: what places in it are called by.
Policy read_policy(const std::string &text, const std::string &name);

} // namespace umacct
