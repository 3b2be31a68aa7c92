// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/verbs.h"

#include <array>

namespace umacct::tool {

std::span<const Verb> verbs() {
    static constexpr const char *see = "See";
    static constexpr const char *limit = "Limit";
    static constexpr const char *explain = "Explain";
    static constexpr std::array table{
        Verb{"ls", see, "list the accounts: memory per cgroup", add_ls},
        Verb{"ps", see, "list the clients: memory per process", add_ps},
        Verb{"show", see, "everything about one cgroup or process, or the guard", add_show},
        Verb{"top", see, "live view of cgroups and processes", add_top},
        Verb{"watch", see, "print events as they happen", add_watch},
        Verb{"web", see, "show the dashboard in a browser", add_web},
        Verb{"set", limit, "change settings of a cgroup or of the machine", add_set},
        Verb{"limit", limit, "set limits alone, or list them", add_limit},
        Verb{"reserve", limit, "set memory that the driver must leave available", add_reserve},
        Verb{"headroom", limit, "set memory to keep free for the driver", add_headroom},
        Verb{"view", limit, "set whether programs see what is available to them", add_view},
        Verb{"charge", limit, "set charging to the kernel's memory controller", add_charge},
        Verb{"run", limit, "run a command in a cgroup of its own", add_run},
        Verb{"config", limit, "check, explain or apply the policy; save and load what is set",
             add_config},
        Verb{"history", explain, "who held memory in the past, and why the machine froze",
             add_history},
        Verb{"audit", explain, "where the memory went, to the last byte", add_audit},
        Verb{"preflight", explain, "check whether an allocation would succeed now", add_preflight},
        Verb{"verify", explain, "prove the blind spot on this machine, or its absence", add_verify},
        Verb{"doctor", explain, "what is wrong on this machine, and how to fix it", add_doctor},
        Verb{"setup", "Set up", "a Spark, NVML, Secure Boot, container runtimes and the observer",
             add_setup},
        Verb{"complete", "", "", [](CLI::App &verb) { return add_complete(verb, verbs()); }},
    };

    return table;
}

} // namespace umacct::tool
