// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/containers/containerd.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <glob.h>
#include <nlohmann/json.hpp>

#include "lib/containers/inject.h"
#include "lib/error.h"
#include "lib/host/program.h"
#include "lib/json.h"
#include "lib/policy/toml.h"

namespace umacct::containers {

namespace fs = std::filesystem;

namespace {

using Path = std::vector<std::string>;

/// The tables that have CRI's runtimes: of containerd 1, and of 2 where the file is of version 3.
const Path cri_of_1{"plugins", "io.containerd.grpc.v1.cri"};
const Path cri_of_2{"plugins", "io.containerd.cri.v1.runtime"};

constexpr const char *settings_file = "etc/containerd/config.toml";
constexpr const char *runc = "runc";
constexpr const char *type_of_runc = "io.containerd.runc.v2";
constexpr const char *runtime_type = "runtime_type";
constexpr const char *base_spec = "base_runtime_spec";
constexpr const char *base_prefix = "/etc/containerd/umacct-base";
constexpr const char *by_whom = "# By 'umacct setup containerd'.";
constexpr const char *usual_socket = "/run/containerd/containerd.sock";
constexpr const char *socket_of_distributions = "/run/k3s/containerd/containerd.sock";

/// umacct's file in the folder that distributions import, beside their own settings.
constexpr const char *imported_name = "config-v3.toml.d/99-umacct.toml";

/// Lists of patterns: the annotations of a pod, and of a container, that its specification gets.
/// The second kind no tenant can write.
struct Passed {
    const char *key;
    std::vector<const char *> patterns;
};

const std::array passed{Passed{"pod_annotations", {"org.umacct.*"}},
                        Passed{"container_annotations", {"org.umacct.*", "umacct.io/*"}}};

// --- TOML --------------------------------------------------------------------------

toml::table parse(const fs::path &file, const std::string &text) {
    try {
        return toml::parse(text, file.string());
    } catch (const toml::parse_error &error) {
        throw Error(
            Failure::failed,
            fmt::format("{}:{}: {}", file.string(), error.source().begin.line, error.description()),
            "containerd would not start with it: mend it first");
    }
}

/// Null where there is none.
template <class Table>
auto *find(Table &settings, const Path &path) {
    auto *at = &settings;

    for (const std::string &key : path) {
        auto *const node = at->get(key);
        at = node == nullptr ? nullptr : node->as_table();
        if (at == nullptr)
            break;
    }
    return at;
}

Path operator+(Path path, std::string key) {
    path.push_back(std::move(key));
    return path;
}

std::string written(const toml::table &table) {
    std::ostringstream text;

    text << toml::toml_formatter(table, toml::format_flags::none);
    return text.str();
}

std::string key_of(const std::string &key) {
    const bool bare = !key.empty() && std::ranges::all_of(key, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '-';
    });

    return bare ? key : Json(key).dump();
}

/// Converts a position of the library's, which counts characters, into bytes.
std::size_t offset_of(const std::string &text, const toml::source_position &position) {
    std::size_t at = 0;

    for (toml::source_index line = 1; line < position.line && at < text.size(); ++line)
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    for (toml::source_index column = 1; column < position.column && at < text.size();) {
        ++at;
        if (at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0U) != 0x80U)
            ++column;
    }
    return at;
}

std::size_t end_of_line(const std::string &text, std::size_t at) {
    const auto newline = text.find('\n', at);

    return newline == std::string::npos ? text.size() : newline + 1;
}

std::size_t start_of_line(const std::string &text, std::size_t at) {
    const auto newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);

    return newline == std::string::npos ? 0 : newline + 1;
}

struct Patch {
    std::size_t from;
    std::size_t to;
    std::string text;
};

std::string patched(std::string text, std::vector<Patch> patches) {
    std::ranges::sort(patches, std::greater(), &Patch::from);
    for (const Patch &patch : patches)
        text.replace(patch.from, patch.to - patch.from, patch.text);
    return text;
}

/// Chooses the first text that parses to the wanted table: a file that was written by hand is
/// edited in place as far as the library reads the wanted settings from the result.
std::string first_that_means(const toml::table &wanted, const std::vector<std::string> &texts) {
    for (const std::string &text : texts) {
        try {
            if (toml::parse(text) == wanted)
                return text;
        } catch (const toml::parse_error &) {
            continue;
        }
    }
    return written(wanted) + "\n";
}

/// A table of a file, and what it is to have.
class Change {
public:
    /// Throws Error where something on the way to it is no table.
    Change(const fs::path &file, const std::string &text, const Path &path,
           const toml::table &values)
        : text_(text), path_(path), before_(parse(file, text)), wanted_(before_) {
        const toml::table *const table = find(before_, path);
        toml::table *to = &wanted_;

        for (const std::string &key : path) {
            to->insert(key, toml::table());
            to = to->get(key)->as_table();
            if (to == nullptr)
                throw Error(Failure::failed,
                            fmt::format("{}: {} is not a table", file.string(), key),
                            "containerd would not start with it: mend it first");
        }
        for (const auto &[key, value] : values) {
            to->insert_or_assign(key, value);
            add(table == nullptr ? nullptr : table->get(key), toml::table{{key, value}});
        }
    }

    /// Replaces values in place if there are some; else adds lines.
    std::string text() const {
        if (wanted_ == before_)
            return text_;
        if (lines_.empty())
            return first_that_means(wanted_, {patched(text_, patches_)});
        return first_that_means(wanted_, {below_header(), with_header()});
    }

private:
    /// pair: the key and its value alone.
    void add(const toml::node *known, const toml::table &pair) {
        const auto only = pair.begin(); // it owns what it points to
        const auto &[key, value] = *only;
        const std::string line = written(pair);

        if (known == nullptr)
            lines_.push_back(line);
        else if (toml::table{{key, *known}} != pair)
            patches_.push_back({offset_of(text_, known->source().begin),
                                offset_of(text_, known->source().end),
                                line.substr(line.find('=') + 2)});
    }

    /// The library names the header where the table has one, and else what made it.
    std::string below_header() const {
        const toml::table *const table = find(before_, path_);

        if (table == nullptr)
            return text_;
        const std::size_t start = offset_of(text_, table->source().begin);
        const std::size_t end = end_of_line(text_, start);
        const std::string indent(start - start_of_line(text_, start), ' ');
        std::string lines = text_.substr(0, end).ends_with('\n') ? "" : "\n";
        for (const std::string &line : lines_)
            lines += fmt::format("{}  {}\n", indent, line);

        auto patches = patches_;
        patches.push_back({end, end, lines});
        return patched(text_, patches);
    }

    std::string with_header() const {
        std::string header;

        for (const std::string &key : path_)
            header += (header.empty() ? "" : ".") + key_of(key);
        std::string lines =
            fmt::format("{}{}{}\n[{}]\n", text_.empty() || text_.ends_with('\n') ? "" : "\n",
                        text_.empty() ? "" : "\n", by_whom, header);
        for (const std::string &line : lines_)
            lines += fmt::format("  {}\n", line);

        auto patches = patches_;
        patches.push_back({text_.size(), text_.size(), lines});
        return patched(text_, patches);
    }

    const std::string &text_;
    const Path &path_;
    toml::table before_;
    toml::table wanted_;
    std::vector<Patch> patches_;     ///< edits of existing values
    std::vector<std::string> lines_; ///< edits that add values
};

// --- which runtimes ----------------------------------------------------------------

bool is_runc(const toml::table &runtime) {
    const auto type = runtime[runtime_type].value<std::string>();

    return !type || *type == type_of_runc;
}

/// The names of those that runc's shim runs, and runc's own: containerd has that by itself.
std::vector<std::string> runtimes_in(const toml::table &settings, const Path &cri) {
    std::vector<std::string> names{runc};

    if (const toml::table *all = find(settings, cri + "containerd" + "runtimes")) {
        for (const auto &[name, node] : *all) {
            const toml::table *const runtime = node.as_table();

            if (name.str() != runc && runtime != nullptr && is_runc(*runtime))
                names.emplace_back(name.str());
        }
    }
    return names;
}

/// The table of CRI's settings, whether or not the file has it.
Path cri_of(const fs::path &file, const toml::table &settings) {
    const auto version = settings["version"].value<std::int64_t>();

    if (find(settings, cri_of_2) != nullptr || version.value_or(1) >= 3)
        return cri_of_2;
    if (find(settings, cri_of_1) != nullptr || version.value_or(1) == 2)
        return cri_of_1;
    throw Error(Failure::failed, fmt::format("{} is of version 1", file.string()),
                "put 'version = 2' and the names of plugins that belong to it there: 'containerd "
                "config migrate', of containerd 1.7 and later, prints them");
}

void refuse_disabled(const fs::path &file, const toml::table &settings) {
    const toml::array *const disabled = settings["disabled_plugins"].as_array();

    for (std::size_t i = 0; disabled != nullptr && i < disabled->size(); ++i) {
        const auto name = disabled->get(i)->value<std::string>();

        if (name == "cri" || name == cri_of_1.back() || name == cri_of_2.back())
            throw Error(Failure::failed, fmt::format("{} disables the CRI plugin", file.string()),
                        "Kubernetes talks to that one; for Docker's containerd, there is 'umacct "
                        "setup docker'");
    }
}

/// The files that this one has containerd read besides.
std::vector<fs::path> imports_of(const fs::path &root, const fs::path &file,
                                 const toml::table &settings) {
    std::vector<fs::path> files;
    const toml::array *const imports = settings["imports"].as_array();

    for (std::size_t i = 0; imports != nullptr && i < imports->size(); ++i) {
        const fs::path each = imports->get(i)->value_or(std::string());
        const fs::path pattern =
            each.is_absolute() ? root / each.relative_path() : file.parent_path() / each;
        glob_t found{};
        const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, globfree);

        if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
            for (std::size_t j = 0; j < found.gl_pathc; ++j)
                files.emplace_back(found.gl_pathv[j]);
    }
    return files;
}

// --- the specification -------------------------------------------------------------

std::string with_hook_in(const std::string &spec, const std::string &hook) {
    return Json::parse(with_hook(spec, hook, false).value_or(spec)).dump(2) + "\n";
}

/// Returns the first of these that is installed, or else its name, to be looked up as a shell does.
std::string program_at(const fs::path &root, std::initializer_list<const char *> places) {
    for (const char *each : places) {
        std::error_code ignored;

        if (fs::exists(root / each, ignored))
            return root / each;
    }
    return fs::path(*places.begin()).filename();
}

/// Prints containerd's default specification, which it uses if none is configured. It then removes
/// these three parts, but not from a configured one.
std::string own_spec(std::vector<std::string> ctr, const std::string &hook) {
    ctr.insert(ctr.end(), {"oci", "spec"});
    try {
        Json spec = Json::parse(run_program(ctr, "containerd"));

        spec.at("process").erase("rlimits");
        spec.at("process").erase("apparmorProfile");
        spec.at("linux").erase("seccomp");
        return with_hook_in(spec.dump(), hook);
    } catch (const Json::exception &error) {
        throw Error(Failure::failed, fmt::format("'{}' prints no specification: {}",
                                                 fmt::join(ctr, " "), error.what()));
    }
}

std::string text_of(const fs::path &file) {
    auto text = read_text(file);

    if (!text)
        throw Error(Failure::failed, fmt::format("{} is missing", file.string()),
                    "containerd would not start without it");
    return std::move(*text);
}

std::string spec_of(const fs::path &theirs, const std::string &hook) {
    try {
        return with_hook_in(text_of(theirs), hook);
    } catch (const Json::exception &error) {
        throw Error(Failure::failed,
                    fmt::format("{} is no specification: {}", theirs.string(), error.what()));
    }
}

/// Makes the edits, of the files that name a specification for each runtime, and of those.
class Maker {
public:
    explicit Maker(fs::path root) : root_(std::move(root)) {}

    std::vector<Edit> files() {
        const fs::path file = root_ / settings_file;
        Edit main{.file = file, .before = read_text(file), .after = {}, .shared = true};
        const std::string text = main.before.value_or("version = 2\n");
        const toml::table settings = parse(file, text);
        std::vector<Edit> files;

        refuse_disabled(file, settings);
        main.after = with_hook(file, text, settings);
        files.push_back(std::move(main));
        // containerd 1 takes a plugin's settings whole from the last file that has some.
        for (const fs::path &each : imports_of(root_, file, settings)) {
            Edit edit{.file = each, .before = text_of(each), .after = {}, .shared = true};
            const toml::table more = parse(each, *edit.before);

            if (find(more, cri_of_1) == nullptr && find(more, cri_of_2) == nullptr)
                continue;
            edit.after = with_hook(each, *edit.before, more);
            files.push_back(std::move(edit));
        }

        return files;
    }

    /// The specifications that the files name.
    std::vector<Edit> specs(const std::string &hook) const {
        std::vector<Edit> specs;

        for (const auto &[name, made_of] : specs_) {
            const fs::path place = root_ / fs::path(name).relative_path();

            specs.push_back(
                {.file = place,
                 .before = read_text(place),
                 .after =
                     made_of.empty()
                         ? own_spec({program_at(root_, {"usr/bin/ctr", "usr/local/bin/ctr"})}, hook)
                         : spec_of(made_of, hook)});
        }
        return specs;
    }

private:
    std::string with_hook(const fs::path &file, std::string text, const toml::table &settings) {
        const Path cri = cri_of(file, settings);

        for (const std::string &name : runtimes_in(settings, cri)) {
            const Path path = cri + "containerd" + "runtimes" + name;
            const toml::table *const runtime = find(settings, path);
            toml::table values;

            if (runtime == nullptr || !runtime->contains(runtime_type))
                values.insert(runtime_type, type_of_runc);
            values.insert(base_spec, spec_for(name, runtime));
            for (const Passed &each : passed)
                values.insert(each.key, with_patterns(runtime, each));
            text = Change(file, text, path, values).text();
        }
        return text;
    }

    static toml::array with_patterns(const toml::table *runtime, const Passed &more) {
        const toml::node *const known = runtime == nullptr ? nullptr : runtime->get(more.key);
        toml::array all =
            known != nullptr && known->is_array() ? *known->as_array() : toml::array();

        for (const char *pattern : more.patterns) {
            if (std::ranges::none_of(all, [&](const toml::node &each) {
                    return each.value<std::string_view>() == pattern;
                }))
                all.push_back(pattern);
        }
        return all;
    }

    /// The file that its containers are to be made of.
    std::string spec_for(const std::string &name, const toml::table *runtime) {
        const std::string known =
            runtime == nullptr ? "" : (*runtime)[base_spec].value_or(std::string());

        if (known.empty() || known == fmt::format("{}.json", base_prefix)) {
            std::string ours = fmt::format("{}.json", base_prefix);

            specs_[ours] = "";
            return ours;
        }
        // The administrator's own, or the one made of it before.
        std::string ours =
            known.starts_with(base_prefix) ? known : fmt::format("{}-{}.json", base_prefix, name);
        specs_[ours] = root_ / fs::path(known).relative_path();
        return ours;
    }

    fs::path root_;
    /// Source of each specification, by its path as containerd sees it; empty for containerd's
    /// default.
    std::map<std::string, fs::path> specs_;
};

// --- distributions -----------------------------------------------------------------

/// A runtime, from all files that have a part of its settings.
struct KnownRuntime {
    bool is_runc = true;
    std::string base; ///< the specification that its containers are made of; empty: containerd's
};

/// The file that a distribution's containerd imports.
class Imported {
public:
    Imported(fs::path root, const Distribution &of)
        : root_(std::move(root)),
          of_(of),
          main_(root_ / of.folder / "config.toml"),
          ours_(root_ / of.folder / imported_name),
          settings_(parse(main_, text_of_main())) {
        check();
        read(settings_);
        for (const fs::path &each : imports_of(root_, main_, settings_)) {
            if (each != ours_)
                read(parse(each, text_of(each)));
        }
    }

    Edit file() const {
        std::string text = fmt::format("# By 'umacct setup {0}'; 'umacct setup {0} --undo' removes "
                                       "it.\nversion = 3\n",
                                       of_.name);

        for (const auto &[name, runtime] : runtimes_) {
            if (!runtime.is_runc)
                continue;
            std::string header;
            for (const std::string &key : cri_of_2 + "containerd" + "runtimes" + name)
                header += (header.empty() ? "" : ".") + key_of(key);
            toml::table values{{runtime_type, type_of_runc}, {base_spec, spec_for(name, runtime)}};
            // containerd 2 adds them to those that another file has.
            for (const Passed &each : passed) {
                toml::array patterns;
                for (const char *pattern : each.patterns)
                    patterns.push_back(pattern);
                values.insert(each.key, patterns);
            }
            text += fmt::format("\n[{}]\n{}\n", header, written(values));
        }
        return {.file = ours_, .before = read_text(ours_), .after = text};
    }

    std::vector<Edit> specs(const std::string &hook) const {
        std::map<std::string, Edit> specs;

        for (const auto &[name, runtime] : runtimes_) {
            if (!runtime.is_runc)
                continue;
            const std::string at = spec_for(name, runtime);
            const fs::path place = root_ / fs::path(at).relative_path();
            if (specs.contains(at))
                continue;
            specs[at] = {.file = place,
                         .before = read_text(place),
                         .after =
                             runtime.base.empty()
                                 ? own_spec(ctr(), hook)
                                 : spec_of(root_ / fs::path(runtime.base).relative_path(), hook)};
        }
        std::vector<Edit> edits;
        edits.reserve(specs.size());
        for (auto &[at, edit] : specs)
            edits.push_back(std::move(edit));
        return edits;
    }

private:
    std::vector<std::string> ctr() const {
        auto words = of_.ctr;

        words.front() = program_at(root_, {of_.ctr.front().c_str()});
        return words;
    }

    std::string text_of_main() const {
        auto text = read_text(main_);

        if (!text)
            throw Error(Failure::missing, fmt::format("{} is missing", main_.string()),
                        fmt::format("{} writes it when it starts: start it first", of_.name));
        return std::move(*text);
    }

    /// Throws Error where containerd would not read the file. containerd 1 would read it as all of
    /// CRI's settings.
    void check() const {
        const toml::array *const imports = settings_["imports"].as_array();
        const std::string ours = (fs::path("/") / of_.folder / imported_name).string();
        bool imported = false;

        for (std::size_t i = 0; imports != nullptr && i < imports->size(); ++i) {
            const std::string pattern = imports->get(i)->value_or(std::string());
            imported |= fnmatch(pattern.c_str(), ours.c_str(), FNM_PATHNAME) == 0;
        }
        if (settings_["version"].value_or(1) >= 3 && imported)
            return;
        throw Error(Failure::failed,
                    fmt::format("{} does not have containerd 2 read {}", main_.string(), ours),
                    fmt::format("the {} releases from March 2026 on do; a config-v3.toml.tmpl of "
                                "your own has to have 'imports', as theirs does",
                                of_.name));
    }

    void read(const toml::table &settings) {
        const toml::table *const all = find(settings, cri_of_2 + "containerd" + "runtimes");

        if (all == nullptr)
            return;
        for (const auto &[name, node] : *all) {
            const toml::table *const runtime = node.as_table();
            if (runtime == nullptr)
                continue;
            KnownRuntime &known = runtimes_[std::string(name.str())];
            if (runtime->contains(runtime_type))
                known.is_runc = is_runc(*runtime);
            if (const auto base = (*runtime)[base_spec].value<std::string>())
                known.base = *base;
        }
    }

    std::string spec_for(const std::string &name, const KnownRuntime &runtime) const {
        const std::string prefix = (fs::path("/") / of_.folder / "umacct-base").string();

        return runtime.base.empty() ? prefix + ".json" : fmt::format("{}-{}.json", prefix, name);
    }

    fs::path root_;
    const Distribution &of_;
    fs::path main_;
    fs::path ours_;
    toml::table settings_;
    std::map<std::string, KnownRuntime> runtimes_{{runc, {}}};
};

// --- taking it out again -----------------------------------------------------------

/// The lines of what was taken out, by the library's word for where that is.
class TakenOut {
public:
    TakenOut(const fs::path &file, const std::string &text, const toml::table &before)
        : text_(text), before_(before), now_(parse(file, text)), wanted_(now_) {}

    void from(const Path &cri) {
        const Path all = cri + "containerd" + "runtimes";
        const toml::table *const runtimes = find(now_, all);

        if (runtimes == nullptr)
            return;
        for (const auto &[name, node] : *runtimes) {
            if (node.is_table())
                from_runtime(all + std::string(name.str()));
        }
    }

    bool is_empty() const { return wanted_ == now_; }

    const toml::table &wanted() const { return wanted_; }

    std::string text() const { return first_that_means(wanted_, {patched(text_, patches_)}); }

private:
    void from_runtime(const Path &path) {
        const toml::table *const was = find(before_, path);
        const auto base = (*find(now_, path))[base_spec].value<std::string>();

        for (const Passed &each : passed)
            without_patterns(path, each, was == nullptr ? nullptr : was->get(each.key));
        // A runtime that was added since is the administrator's.
        if (!base || !base->starts_with(base_prefix))
            return;
        put_back(path, base_spec, was == nullptr ? nullptr : was->get(base_spec));
        // Removes a table that we made, unless more was put into it.
        const toml::table &left = *find(wanted_, path);
        if (left.contains(runtime_type) &&
            (was == nullptr ? left.size() == 1 : !was->contains(runtime_type)))
            erase(path, runtime_type);
        if (std::ranges::all_of(left, [](const auto &each) { return each.second.is_table(); }))
            erase_header(path);
        for (Path at = path; !at.empty(); at.pop_back()) {
            const toml::table *const table = find(wanted_, at);

            if (table == nullptr || !table->empty() || find(before_, at) != nullptr)
                break;
            find(wanted_, {at.begin(), at.end() - 1})->erase(at.back());
        }
    }

    /// Includes our comment before it, and the empty line before that.
    void erase_header(const Path &path) {
        const auto start = start_of_line(text_, offset_of(text_, find(now_, path)->source().begin));
        const std::string before = fmt::format("{}\n", by_whom);

        if (!std::string_view(text_).substr(0, start).ends_with(before))
            return;
        const auto comment = start - before.size();
        const bool is_empty = std::string_view(text_).substr(0, comment).ends_with("\n\n");
        patches_.push_back({comment - (is_empty ? 1 : 0), end_of_line(text_, start), ""});
    }

    void without_patterns(const Path &path, const Passed &ours, const toml::node *was) {
        toml::node *const node = find(wanted_, path)->get(ours.key);
        toml::array *const list = node == nullptr ? nullptr : node->as_array();

        if (list == nullptr)
            return;
        toml::array left;
        for (const toml::node &each : *list) {
            const bool is_ours = std::ranges::any_of(ours.patterns, [&](const char *pattern) {
                return each.value<std::string_view>() == pattern;
            });
            const bool was_there =
                was != nullptr && was->is_array() &&
                std::ranges::any_of(*was->as_array(), [&](const toml::node &other) {
                    return other.value<std::string_view>() == each.value<std::string_view>();
                });

            if (!is_ours || was_there)
                left.push_back(each);
        }
        if (left.size() == list->size())
            return;
        if (left.empty() && was == nullptr)
            erase(path, ours.key);
        else
            set(path, ours.key, left);
    }

    void put_back(const Path &path, const char *key, const toml::node *was) {
        if (was == nullptr)
            erase(path, key);
        else
            set(path, key, *was);
    }

    void set(const Path &path, const char *key, const toml::node &value) {
        const toml::node &now = *find(now_, path)->get(key);

        find(wanted_, path)->insert_or_assign(key, value);
        toml::table alone;
        alone.insert(key, value);
        const std::string pair = written(alone);
        patches_.push_back({offset_of(text_, now.source().begin),
                            offset_of(text_, now.source().end), pair.substr(pair.find('=') + 2)});
    }

    void erase(const Path &path, const char *key) {
        const toml::source_region &region = find(now_, path)->get(key)->source();

        find(wanted_, path)->erase(key);
        patches_.push_back({start_of_line(text_, offset_of(text_, region.begin)),
                            end_of_line(text_, offset_of(text_, region.end) - 1), ""});
    }

    const std::string &text_;
    const toml::table &before_;
    toml::table now_;
    toml::table wanted_;
    std::vector<Patch> patches_;
};

fs::path socket_in(const fs::path &root, const fs::path &relative, const char *usual) {
    const fs::path file = root / relative;
    const toml::table settings = parse(file, read_text(file).value_or(""));
    const fs::path socket = settings["grpc"]["address"].value_or(std::string(usual));

    return root / socket.relative_path();
}

} // namespace

const Distribution k3s{.name = "k3s",
                       .folder = "var/lib/rancher/k3s/agent/etc/containerd",
                       .ctr = {"usr/local/bin/k3s", "ctr"}};
const Distribution rke2{.name = "rke2",
                        .folder = "var/lib/rancher/rke2/agent/etc/containerd",
                        .ctr = {"var/lib/rancher/rke2/bin/ctr"}};

std::vector<Edit> containerd_settings(const fs::path &root, const std::string &hook) {
    Maker maker(root);
    auto files = maker.files();
    auto edits = maker.specs(hook);

    std::ranges::move(files, std::back_inserter(edits));
    return edits;
}

std::vector<Edit> containerd_files(const fs::path &root) {
    return Maker(root).files();
}

fs::path containerd_socket(const fs::path &root) {
    return socket_in(root, settings_file, usual_socket);
}

std::vector<Edit> distribution_settings(const fs::path &root, const std::string &hook,
                                        const Distribution &of) {
    const Imported imported(root, of);
    auto edits = imported.specs(hook);

    edits.push_back(imported.file());
    return edits;
}

std::vector<Edit> distribution_files(const fs::path &root, const Distribution &of) {
    return {Imported(root, of).file()};
}

fs::path distribution_socket(const fs::path &root, const Distribution &of) {
    return socket_in(root, fs::path(of.folder) / "config.toml", socket_of_distributions);
}

std::optional<std::string> containerd_without_umacct(const std::string &now, const Edit &made) {
    const toml::table before = parse(made.file, made.before.value_or(""));
    TakenOut taken(made.file, now, before);

    taken.from(cri_of_1);
    taken.from(cri_of_2);
    if (taken.is_empty())
        return now;
    if (!made.before && (taken.wanted().empty() ||
                         (taken.wanted().size() == 1 && taken.wanted().contains("version"))))
        return std::nullopt;
    return taken.text();
}

} // namespace umacct::containers
