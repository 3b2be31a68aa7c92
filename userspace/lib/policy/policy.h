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

#include "lib/contract.h"
#include "lib/error.h"
#include "lib/module/model.h"
#include "lib/owners/owner.h"
#include "lib/settings.h"
#include "lib/units.h"

namespace umacct {

/// Where something is written; line and column count from 1.
struct Place {
    std::string file;
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    /// "/etc/umacct.toml:5:8"; the file alone where there is no line.
    std::string text() const;
};

/// Where the value of each key is written.
using Places = std::map<std::string, Place, std::less<>>;

struct Rule {
    Place place;
    Places places;    ///< of its keys
    std::string name; ///< for people; "rule 2" where none was given
    std::int64_t priority = 0;

    // Patterns; the rule is for a cgroup that fits all that are there, and one is.
    std::optional<std::string> cgroup;
    std::optional<std::string> unit;
    std::optional<std::string> container;
    std::optional<std::string> image;
    std::optional<std::string> pod;
    std::optional<std::string> name_space;
    std::optional<std::string> label; ///< "KEY=VALUE"

    /// What such a cgroup gets.
    WrittenSettings settings;

    /// On a machine with so much memory. Where soft is above hard there, it is as hard.
    AccountChange change(std::uint64_t total) const;

    /// The folder of drop-ins that systemd reads for the services that the rule is for, and
    /// for no more than those of their prefix or template: "ollama.service.d", "llm-.service.d"
    /// for "llm-*", "llm@.service.d" for "llm@*". Empty where there is none such.
    std::optional<std::string> drop_ins() const;

    /// It asks for what a container's runtime tells.
    bool needs_name() const { return container || image || pod || name_space || label; }
};

/// What the guard may do where memory runs short.
enum class GuardStep : std::uint8_t {
    reclaim, ///< have the kernel take back memory of the one whom it is about
    reserve, ///< grant nobody anything more
    freeze,
    signal, ///< SIGTERM
    kill,
};

/// The word that the policy and the log have for it.
std::string_view name_of(GuardStep step);

/// When the guard acts, and what it does then; see guard.h.
struct GuardPolicy {
    std::optional<Amount> floor;    ///< less than this is available
    std::optional<double> pressure; ///< tasks waited for memory: per cent of the time
    std::uint64_t for_ns = 500'000'000;
    std::vector<GuardStep> steps;
    std::uint64_t wait_ns = 2'000'000'000;     ///< from a step to the next
    std::uint64_t release_ns = 10'000'000'000; ///< for so long all is well before it is undone
    std::vector<std::string> protect;          ///< patterns of cgroups that it never touches
    bool dry_run = false;

    /// Also what no policy has to name: without it nobody can log in, or see what is wrong.
    bool protects(std::string_view path) const;

    /// Whether it may protect a cgroup below that path; true where the cgroups' names decide that.
    bool may_protect_below(std::string_view path) const;

    bool operator==(const GuardPolicy &other) const = default;
};

/// Whether umacct-exporter serves the page, and to whom; see page.h.
struct PagePolicy {
    std::optional<bool> on;
    std::optional<std::string> token;                ///< the file that has it
    std::optional<std::vector<std::string>> origins; ///< whose scripts may read the figures
    std::optional<std::vector<std::string>> hosts;   ///< it is called by, beside localhost

    bool operator==(const PagePolicy &other) const = default;
};

/// What umacct-hook goes by when a container starts.
struct ContainerPolicy {
    /// A container that is to have limits starts without them where they can't be had: the module
    /// isn't loaded, or the driver isn't hooked.
    std::optional<bool> start_unlimited;
    std::optional<bool> from_memory_limit; ///< the runtime's limit is a hard one, too
    std::optional<Amount> keep;            ///< what a container may ask for where no rule says it

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
    /// BPF programs count where the module isn't loaded; true unless told
    std::optional<bool> observer;
    ContainerPolicy containers;
    std::optional<std::size_t> exporter_top; ///< how many accounts it tells one by one
    PagePolicy page;
    Places places; ///< of what is in force of the tables: "machine.reserve", "guard.floor"
    std::vector<Rule> rules; ///< as they are tried: by priority, then as they were read

    /// The first rule that is for it; null for none.
    const Rule *match(const Subject &subject) const;

    /// What that cgroup gets, by what match() found for it.
    AccountChange change(std::string_view path, const Rule *rule, std::uint64_t total) const;

    /// The same of a container that asked for something when it was started.
    AccountChange change(std::string_view path, const Rule *rule, std::uint64_t total,
                         const Contract &contract) const;

    bool needs_names() const;
    bool needs_labels() const;
};

/// Whether the rule is for that cgroup; if not, which of its patterns isn't.
struct Fit {
    bool fits = false;
    std::string why;
};

Fit fit(const Rule &rule, const Subject &subject);

/// As in a shell, '?' is one character and '*' any number, but for '/'; '**' is any number of
/// any.
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
/// there are.
std::vector<std::filesystem::path> policy_files(const std::filesystem::path &root);

/// Of several files, the first that says something wins. Throws PolicyError.
Policy read_policy(const std::vector<std::filesystem::path> &files);

/// The same of one file that was read already. name: what places in it are called by.
Policy read_policy(const std::string &text, const std::string &name);

} // namespace umacct
