// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/verbs.h"

#include <array>

namespace umacct::tool {

std::span<const Verb> verbs() {
    static constexpr std::array table{
        Verb{"ls", "list the accounts: memory per cgroup", add_ls},
        Verb{"ps", "list the clients: memory per process", add_ps},
        Verb{"show", "everything about one cgroup, or one process", add_show},
        Verb{"top", "live view of cgroups and processes", add_top},
        Verb{"set", "set anything of a cgroup, or of the machine", add_set},
        Verb{"limit", "set an account's limits, or list all limits", add_limit},
        Verb{"reserve", "memory that the driver must leave available", add_reserve},
        Verb{"reclaim", "give back what the driver keeps in its pools", add_reclaim},
        Verb{"headroom", "memory that is kept free for the driver", add_headroom},
        Verb{"guard", "cgroups that umacctd's guard would act against", add_guard},
        Verb{"view", "let programs be told what memory they could have", add_view},
        Verb{"charge", "let the kernel's memory controller see the memory", add_charge},
        Verb{"save", "print what is set, as a file", add_save},
        Verb{"restore", "apply a saved file; change only what differs", add_restore},
        Verb{"preflight", "check whether an allocation would succeed now", add_preflight},
        Verb{"config", "check the policy, say what it is for a cgroup, or apply it", add_config},
        Verb{"run", "run a command in a cgroup of its own", add_run},
        Verb{"nvml", "run a command with NVML's answers from umacct", add_nvml},
        Verb{"setup", "set up NVML, Secure Boot and container runtimes", add_setup},
        Verb{"observer", "count without the kernel module, and go on counting", add_observer},
        Verb{"watch", "print events as they happen", add_watch},
        Verb{"history", "who held what then, and what became of the machine", add_history},
        Verb{"report", "the same as a file, for a message or a bug's thread", add_report},
        Verb{"audit", "where the memory went, to the last byte", add_audit},
        Verb{"verify", "prove the blind spot on this machine, or its absence", add_verify},
        Verb{"doctor", "what is wrong here, and how to fix it", add_doctor},
        Verb{"complete", "", [](CLI::App &verb) { return add_complete(verb, verbs()); }},
    };

    return table;
}

} // namespace umacct::tool
