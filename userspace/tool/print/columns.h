// SPDX-License-Identifier: GPL-2.0-or-later
/// THE columns of accounts and processes: what lists and the screen of "top" show, what
/// --sort and -o take. Those of figures are made from docs/netlink/umacct.yaml; any other is a
/// row in columns.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/model.h"
#include "lib/module/module.h"

namespace CLI {
class App;
}

namespace umacct::tool {

struct Output;

/// An account or a process, as a row of a list.
struct Row {
    const Account *account = nullptr; ///< a process's account, if visible
    const Client *client = nullptr;   ///< null for an account's row
    std::string name = {};            ///< printable: of a cgroup in its place, or of a process
    std::string place = {};           ///< printable: the whole path of the cgroup
    int depth = 0;                    ///< depth in a tree
    bool parent = false;              ///< there are rows below it
    MemoryController memory = {};
    ProcessMemory process = {};            ///< figures of a process
    std::optional<std::int64_t> rate = {}; ///< bytes per second; empty where there was no time
    std::string bound_by = {};             ///< printable: the cgroup whose limit binds, or "itself"
    std::string command = {};              ///< printable: of a process, with its arguments
    std::string user = {};                 ///< printable: the user that it runs as
    /// Number of an account's exiting processes, whose memory is still being freed; without those
    /// of cgroups below.
    std::uint32_t exiting = {};

    const std::string &path() const { return client ? client->path : account->path; }

    bool over_soft() const;
};

/// The row of a process; account may be null.
Row row_of(const Owners &owners, const Client &client, const Account *account);

/// Appends members to a row in JSON, each after a comma.
using More = std::function<void(std::string &text, const Row &row)>;

/// Prints the members, then each row as "ls" or "ps" has it, in their order.
void print_json(const Output &output, const Owners &owners, const Json &members, const char *key,
                const std::vector<Row> &rows, const More &more = nullptr);

/// Kind of the rows.
enum class Of : std::uint8_t { accounts = 1, processes = 2, both = 3 };

/// How a number is written.
enum class Kind : std::uint8_t { text, bytes, limit, rate, time, elapsed, percent, count };

/// How a cell is written.
enum class Form : std::uint8_t {
    full,   ///< "1.50 GiB"
    narrow, ///< four digits at most: "117.0 GiB"
    bytes,  ///< sizes in bytes
    raw,    ///< machine-readable: times in nanoseconds, per cent without a sign, "" for unknown
};

struct Column {
    std::string_view name; ///< name for --sort and -o
    const char *title;
    Of of;
    Kind kind;
    const char *help;
    /// Value of all kinds but text; empty if not known, INT64_MAX for no limit.
    std::optional<std::int64_t> (*number)(const Row &row) = nullptr;
    std::string (*text)(const Row &row) = nullptr; ///< value of kind text
    char key = 0;                                  ///< key in top that sorts by it
    bool keep = false;                             ///< left out of a narrow table after all others

    bool right() const { return kind != Kind::text; }

    std::string cell(const Row &row, Form form) const;
    const char *title_of(Of rows) const;
};

std::span<const Column> columns();

/// Throws Error (usage) that names the argument when these rows have no such column.
const Column &column(std::string_view name, Of rows, const char *argument);

/// Whether the first comes before the second: the largest, the known and the first by
/// name come first.
bool comes_before(const Column &by, const Row &a, const Row &b);

/// Options that all lists have.
struct ListOptions {
    std::string columns = {}; ///< argument of -o
    std::string sort = {};
    bool no_header = false;
    bool bytes = false;
    bool csv = false;
};

/// -o, --sort, --no-header, --bytes and --csv, and what the columns are. bytes: what else it is
/// called.
void add_list_options(CLI::App &verb, ListOptions &options, Of rows,
                      const char *bytes = "-b,--bytes");

/// -o COLUMN,... or, with a plus, those and more. usual: those without -o.
std::vector<const Column *> chosen_columns(const ListOptions &options, Of rows,
                                           std::vector<std::string_view> usual);

/// Lists the files of each row that these columns need.
Files files_for(const std::vector<const Column *> &columns);

/// Cgroups whose limits bind accounts.
class Binders {
public:
    Binders() = default;

    /// Asks the module for the binding cgroups that are not among the accounts.
    Binders(Module &module, const Owners &owners, const std::vector<Account> &accounts);

    /// The path of the one that binds it; empty where there is none.
    std::string path(const Account &account) const;
    /// The same as a row has it.
    std::string shown(const Account &account) const;

private:
    struct Binder {
        std::string path;
        std::string shown;
    };

    std::unordered_map<std::uint64_t, Binder> others_; ///< the key is the id
};

/// "2 processes exiting"; empty for none.
std::string exiting_note(std::uint32_t processes);

/// The accounts by their whole paths, in that order. The rows point at them.
std::vector<Row> account_rows(const Machine &machine, const std::vector<Account> &accounts,
                              const Binders &binders, const Column &sort);

/// The processes as rows, in that order, with what /proc has of them where one of the columns is
/// of that. What they point into must outlive them.
std::vector<Row> process_rows(const Machine &machine, const std::vector<Client> &clients,
                              const std::vector<Account> &accounts, const Column &sort,
                              std::vector<const Column *> columns = {});

/// Fills in what of the columns /proc has of each process: its command, user and memory.
void describe_processes(const Machine &machine, std::vector<Row> &rows,
                        const std::vector<const Column *> &columns);

extern const std::vector<std::string_view> usual_of_processes;

/// Aligned, or as CSV. options: whether there are titles, and how sizes are written.
void print_rows(const Output &output, const std::vector<Row> &rows,
                const std::vector<const Column *> &columns, Of of, const ListOptions &options = {},
                int indent = 0);

} // namespace umacct::tool
