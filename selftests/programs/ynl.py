#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ynl.py YNL SPEC CGROUP-ID FIFO

Reads the live module with the kernel's own generic netlink client, which knows of it
what SPEC says, and holds that to what umacct says of the same. YNL is the kernel's
tools/net/ynl; the client has checked SPEC by the kernel's schema when it is loaded.
Prints lines of "ok|not_ok DESCRIPTION", with "# ..." lines for what is different. In the
cgroup runs a program that takes orders from FIFO.
"""

import json
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
from lib import NlError, YnlFamily  # noqa: E402

UNITS = ("", "_bytes", "_ns")
UNLIMITED = 2**64 - 1
ATTEMPTS = 30

# What "umacct --json" has from elsewhere, or in another form, and what it leaves out.
OF_THE_SUMMARY = (
    "schema", "time", "monotonic_us", "boot_id", "machine", "memory", "driver_memory_bytes", "warnings",
    "top_accounts", "top_clients", "unattributed_bytes", "uncharged_bytes", "system_bytes",
    "flags", "hook", "hooks",
    # These are in "memory", where that is not /proc/meminfo's own.
    "memory-total", "memory-free", "memory-available", "memory-buffers", "memory-cached",
    "memory-sreclaimable", "memory-kreclaimable")


def result(description, wrong):
    print("not_ok" if wrong else "ok", description)
    for line in wrong:
        print("#", line)


def umacct(*words):
    return json.loads(subprocess.run(("umacct", *words, "--json"), check=True,
                                     stdout=subprocess.PIPE).stdout)


def as_json(value):
    return None if value == UNLIMITED else value


def differences(what, attributes, sets, document, elsewhere=()):
    """What of sets, attributes' values by name, isn't in document. Attributes that
    aren't there are null, false or 0; keys that are in elsewhere come from no one
    attribute."""
    keys = set(document)
    wrong = []
    for name in attributes:
        if name in elsewhere:
            continue
        key = next((key for unit in UNITS
                    if (key := name.replace("-", "_") + unit) in keys), None)
        if key is None:
            wrong.append(f"{what}: {name} is not in the JSON")
            continue
        keys.remove(key)
        netlink = as_json(sets.get(name))
        if netlink != document[key] and (netlink or document[key]):
            wrong.append(f"{what}: {name} is {netlink}, {key} is {document[key]}")
    return wrong + [f"{what}: {key} is no attribute" for key in sorted(keys - set(elsewhere))]


class Comparison:
    def __init__(self, family):
        self.family = family

    def reply(self, operation, mode):
        return self.family.ops[operation].yaml[mode]["reply"]["attributes"]

    def settled(self, read_netlink, read_tool, compare):
        """Memory's numbers change at any time: what the client read before and after
        is what the tool read between."""
        for _ in range(ATTEMPTS):
            before, between, after = read_netlink(), read_tool(), read_netlink()
            if before == after:
                break
        return compare(before, between)

    def rows(self, operation, key, words, name_of, elsewhere):
        attributes = self.reply(operation, "dump")

        def compare(netlink, document):
            rows = document[key]
            wrong = []
            if len(netlink) != len(rows) or not rows:
                wrong.append(f"{len(netlink)} by netlink, {len(rows)} in the JSON")
            for one, row in zip(netlink, rows):
                wrong += differences(name_of(one), attributes, one, row, elsewhere)
            return wrong

        return self.settled(lambda: self.family.dump(operation, {}),
                            lambda: umacct(*words), compare)

    def accounts(self):
        return self.rows("account-get", "accounts", ("ls",), lambda one: one["path"],
                         ("owner", "total_bytes", "cache_bytes", "swap_bytes", "uncharged_bytes",
                          "system_bytes", "memory_pressure", "exiting"))

    def clients(self):
        return self.rows("client-get", "clients", ("ps",), lambda one: one["comm"],
                         ("owner", "total_bytes", "swap_bytes", "uncharged_bytes", "system_bytes",
                          "exiting", "start-time", "start_monotonic_us"))

    def status(self):
        attributes = self.reply("status-get", "do")
        hook = [str(name) for name in self.family.attr_sets["hook"] if name != "pad"]

        def compare(netlink, document):
            wrong = differences("status", attributes, netlink, document, OF_THE_SUMMARY)
            for name, value in document["flags"].items():
                if value != (name.replace("_", "-") in netlink["flags"]):
                    wrong.append(f"flags: {netlink['flags']}, {name} is {value}")
            if len(netlink["hook"]) != len(document["hooks"]):
                wrong.append("not as many hooks")
            for one, row in zip(netlink["hook"], document["hooks"]):
                wrong += differences(one["name"], hook, one, row)
            return wrong

        return self.settled(lambda: self.family.do("status-get", {}), umacct, compare)


def policies(family, nlctrl):
    """The module takes what is specified for each request, of that type, and no more."""
    used = {}
    accepted = {}
    for message in nlctrl.dump("getpolicy", {"family-name": "umacct"}):
        if one := message.get("op-policy"):
            used[one["op-id"]] = one
        if one := message.get("policy"):
            accepted.setdefault(one["policy-id"], {})[one["attr-id"]] = one["type"]
    wrong = []
    for name, operation in family.ops.items():
        for mode in operation.modes:
            specified = {operation.attr_set[attribute].value: operation.attr_set[attribute].type
                         for attribute in operation.yaml[mode].get("request", {}).get(
                             "attributes", [])}
            # The kernel calls what can only be dumped operation 0.
            policy = used.get(operation.req_value, used.get(0, {})).get(mode)
            if accepted.get(policy, {}) != specified:
                wrong.append(f"{name}, {mode}: {specified} is specified, "
                             f"{accepted.get(policy)} taken")
    return wrong


def settings(family, cgroup):
    """What the client sets by the specification is what the tool reads."""
    asked = {"soft": 30 << 20, "hard": 90 << 20, "throttle": 1000, "view": 1, "charge": "off"}
    family.do("account-set", {"id": cgroup, **asked})
    account = next(one for one in umacct("ls")["accounts"] if one["id"] == cgroup)
    wrong = differences("set", asked, asked, {key: account[key] for key in (
        "soft_bytes", "hard_bytes", "throttle_ns", "view", "charge")})
    family.do("account-set", {"id": cgroup, "soft": UNLIMITED, "hard": UNLIMITED,
                              "throttle": 0, "view": 0, "charge": "inherit"})
    return wrong


def refusal(family, cgroup):
    """What is refused is named by the specification's name."""
    try:
        family.do("account-set", {"id": cgroup, "view": 2})
    except NlError as error:
        named = error.nl_msg.extack.get("bad-attr")
        return [] if named == ".view" else [f"the bad attribute is {named}"]
    return ["view 2 was taken"]


def event(family, cgroup, fifo, size):
    """An event as it is specified: of a hard limit that was met by 8 MiB, which count as size."""
    family.do("account-set", {"id": cgroup, "hard": 1 << 20})
    with open(fifo, "w", encoding="ascii") as orders:
        orders.write("alloc 8M\n")
    for _ in range(ATTEMPTS):
        family.check_ntf()
        told = [one["msg"] for one in family.async_msg_queue]
        if told:
            break
        time.sleep(0.1)
    known = family.msgs["event-ntf"].yaml["event"]["attributes"]
    wanted = {"type": "hard-refused", "limit-id": cgroup, "limit": 1 << 20, "size": size}
    return [f"told {one}" for one in told or [{}]
            if not set(one) <= set(known) or not wanted.items() <= one.items()]


def main():
    try:
        family = YnlFamily(sys.argv[2])
    except Exception as error:  # the schema's, of whatever kind
        result("the specification is as the kernel's schema says", str(error).split("\n"))
        return
    result("the specification is as the kernel's schema says", [])
    # Its socket can't be bound later. Until an event is wanted, none may come: the client
    # doesn't expect one between a request and its answer.
    family.ntf_subscribe("events")
    cgroup = int(sys.argv[3])
    comparison = Comparison(family)
    result("umacct ls says the same of every account", comparison.accounts())
    result("umacct ps says the same of every process", comparison.clients())
    result("umacct says the same of the machine", comparison.status())
    result("the module takes what is specified, and no more",
           policies(family, YnlFamily(sys.argv[2].replace("umacct", "nlctrl"))))
    result("what it sets is what umacct reads", settings(family, cgroup))
    result("what is refused is named", refusal(family, cgroup))
    result("an event is as it is specified",
           event(family, cgroup, sys.argv[4], int(sys.argv[5])))


main()
