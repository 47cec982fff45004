#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""protocol.py BASELINE NOW: whether a client of the baseline understands a daemon of now, and a daemon
of the baseline a client of now. A member that exists keeps its type. What is new must be optional in
types and parameters; methods, errors, and the values of an enum may be added."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts"))
from parts.interface import Parser  # noqa: E402


def differences(where, before, now):
    """Returns what is incompatible between two types as Parser has them."""
    if before[0] != now[0]:
        return [f"{where}: {before[0]} became {now[0]}"]
    kind = before[0]
    if kind in ("array", "map", "maybe"):
        return differences(where, before[1], now[1])
    if kind == "name":
        return [] if before[1] == now[1] else [f"{where}: {before[1]} became {now[1]}"]
    if kind == "enum":
        return [f"{where}: the value {name} is gone" for name in before[1] if name not in now[1]]
    if kind != "struct":
        return []
    found = []
    for name, field in before[1].items():
        if name not in now[1]:
            found.append(f"{where}.{name} is gone")
        else:
            found += differences(f"{where}.{name}", field, now[1][name])
    return found + [f"{where}.{name} is new and not optional" for name, field in now[1].items()
                    if name not in before[1] and field[0] != "maybe"]


def compare(before, now):
    found = []
    for kind, members in before.items():
        for name, member in members.items():
            if name not in now[kind]:
                found.append(f"{kind} {name} is gone")
            elif kind == "method":
                for part, a, b in zip(("parameters", "reply"), member, now[kind][name]):
                    found += differences(f"{name}, {part}", a, b)
            else:
                found += differences(f"{kind} {name}", member, now[kind][name])
    return found


def main():
    texts = []
    for path in sys.argv[1:3]:
        with open(path) as file:
            texts.append(Parser(file.read()).interface())
    (name, before), (name_now, now) = texts
    found = compare(before, now) if name == name_now else [f"interface {name} became {name_now}"]
    print("\n".join(found) or f"{name}: compatible")
    return bool(found)


sys.exit(main())
