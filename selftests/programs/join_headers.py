#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""join_headers.py COMMANDS TO HEADER...: writes them as one, TO/joined.h, each after those of them that
it includes, for tools that look at one file at a time and spend their time on what it includes.
Beside it, TO/compile_commands.json says how it is compiled: as a source that is near the first of
them, by COMMANDS, a file of that kind."""
import json
import os
import re
import sys

ROOT = "userspace/"

commands, to, *headers = sys.argv[1:]
texts = {path: open(path, encoding="utf-8").read() for path in headers}
ordered = []
included = set()


def ours(line):
    """The header of these that the line includes, if it does."""
    match = re.match(r'#include "([^"]+)"', line)
    return match and ROOT + match[1] in texts and ROOT + match[1]


def visit(path):
    if path in ordered:
        return
    for line in texts[path].splitlines():
        if ours(line):
            visit(ours(line))
    ordered.append(path)


for header in texts:
    visit(header)
with open(to + "/joined.h", "w", encoding="utf-8") as joined:
    print("#pragma once", file=joined)
    for header in ordered:
        for line in texts[header].splitlines():
            if line.startswith("#pragma once") or ours(line) or line in included:
                continue
            if line.startswith("#include"):
                included.add(line)
            print(line, file=joined)


def near(entry):
    """How many folders a source shares with the first header; then, how much defines what it is."""
    shared = os.path.commonpath([entry["file"], os.path.abspath(headers[0])])
    return len(shared), entry["command"].count(" -D")


with open(commands, encoding="utf-8") as file:
    nearest = max(json.load(file), key=near)
command = nearest["command"].replace(nearest["file"], os.path.abspath(to + "/joined.h"))
with open(to + "/compile_commands.json", "w", encoding="utf-8") as file:
    json.dump([{**nearest, "command": command, "file": os.path.abspath(to + "/joined.h")}], file)
