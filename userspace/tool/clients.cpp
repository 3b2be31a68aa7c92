// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/clients.h"

#include <algorithm>

#include "lib/text.h"
#include "lib/units.h"
#include "tool/print/text.h"

namespace umacct::tool {

void sort_by_usage(std::vector<Client> &clients) {
    std::stable_sort(clients.begin(), clients.end(),
                     [](const Client &a, const Client &b) { return a.usage > b.usage; });
}

std::string pid_cell(const Client &client) {
    return client.pid == 0 ? "-" : std::to_string(client.pid);
}

std::string command_cell(const Client &client) {
    return printable(client.comm) + (client.exited ? " (exited)" : "");
}

Table client_table(const Owners &owners, const std::vector<Client> &clients) {
    Table table({{"PID", Align::right},
                 {"USAGE", Align::right},
                 {"PEAK", Align::right},
                 {"CHARGED", Align::right},
                 {"UNCHARGED", Align::right},
                 {"MANAGED", Align::right},
                 {"COMMAND"},
                 {"ACCOUNT"}});

    for (const Client &client : clients)
        table.add({pid_cell(client), format_size(client.usage), format_size(client.peak),
                   format_size(client.charged), format_size(client.uncharged()),
                   format_size(client.managed), command_cell(client),
                   display_path(owners, client.path)});
    return table;
}

} // namespace umacct::tool
