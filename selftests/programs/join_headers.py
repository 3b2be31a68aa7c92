#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""join_headers.py HEADER...: prints them as one, each after those of them that it includes,
for tools that look at one file at a time and spend their time on what it includes."""
import re
import sys

ROOT = "userspace/"

texts = {path: open(path, encoding="utf-8").read() for path in sys.argv[1:]}
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
print("#pragma once")
for header in ordered:
    for line in texts[header].splitlines():
        if line.startswith("#pragma once") or ours(line) or line in included:
            continue
        if line.startswith("#include"):
            included.add(line)
        print(line)
