# SPDX-License-Identifier: Apache-2.0
"""Varlink's interface descriptions: reads one, and checks values against it."""

import re

TOKEN = re.compile(r"\s*(?:#[^\n]*\n\s*)*(->|\[string\]|\[\]|[()?:,]|[A-Za-z][A-Za-z0-9_.-]*)")


class Parser:
    """Reads one interface. A type is ("bool",), ("int",), ("float",), ("string",),
    ("object",), ("array", T), ("map", T), ("maybe", T), ("enum", names),
    ("struct", {name: T}) or ("name", name)."""

    def __init__(self, text):
        self.tokens = []
        at = 0
        text = text.rstrip() + "\n"
        while match := TOKEN.match(text, at):
            self.tokens.append(match[1])
            at = match.end()
        rest = re.sub(r"#[^\n]*\n", "", text[at:]).strip()
        assert not rest, f"not Varlink: {rest[:60]!r}"
        self.tokens.reverse()

    def take(self, *expected):
        token = self.tokens.pop()
        assert not expected or token in expected, f"{token!r} where {expected} was due"
        return token

    def interface(self):
        self.take("interface")
        name = self.take()
        members = {"type": {}, "method": {}, "error": {}}
        while self.tokens:
            kind = self.take("type", "method", "error")
            member = self.take()
            assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", member), member
            for others in members.values():
                assert member not in others, f"{member} is declared twice"
            value = self.braces()
            if kind == "method":
                self.take("->")
                value = (value, self.braces())
            members[kind][member] = value
        return name, members

    def braces(self):
        """Reads an enum or a struct. "()" is an empty struct."""
        self.take("(")
        fields = {}
        names = []
        while self.tokens[-1] != ")":
            name = self.take()
            if self.tokens[-1] == ":":
                self.take(":")
                assert name not in fields, f"field {name} is there twice"
                fields[name] = self.type()
            else:
                names.append(name)
            if self.tokens[-1] != ")":
                self.take(",")
        self.take(")")
        assert not (fields and names), "half a struct, half an enum"
        return ("enum", names) if names else ("struct", fields)

    def type(self):
        if self.tokens[-1] == "(":
            return self.braces()
        token = self.take()
        if token == "?":
            inner = self.type()
            assert inner[0] != "maybe", "??"
            return ("maybe", inner)
        if token == "[]":
            return ("array", self.type())
        if token == "[string]":
            return ("map", self.type())
        if token in ("bool", "int", "float", "string", "object"):
            return (token,)
        return ("name", token)


SIMPLE = {"bool": bool, "int": int, "float": (int, float), "string": str, "object": dict}


def check(value, wanted, types, where, lenient=False):
    """Asserts that value has the type."""
    kind = wanted[0]
    if kind == "name":
        check(value, types[wanted[1]], types, where)
    elif kind == "maybe":
        if value is not None:
            check(value, wanted[1], types, where)
    elif kind in SIMPLE:
        right = isinstance(value, SIMPLE[kind]) and (kind == "bool" or not isinstance(value, bool))
        assert right, f"{where}: {value!r} is no {kind}"
    elif kind == "enum":
        assert value in wanted[1], f"{where}: {value!r} is none of {wanted[1]}"
    elif kind == "array":
        assert isinstance(value, list), f"{where}: {value!r} is no array"
        for i, element in enumerate(value):
            check(element, wanted[1], types, f"{where}[{i}]")
    elif kind == "map":
        assert isinstance(value, dict), f"{where}: {value!r} is no map"
        for key, element in value.items():
            check(element, wanted[1], types, f"{where}[{key}]")
    else:
        assert isinstance(value, dict), f"{where}: {value!r} is no struct"
        unknown = set(value) - set(wanted[1])
        assert lenient or not unknown, f"{where}: unknown members {unknown}"
        for name, inner in wanted[1].items():
            assert name in value or inner[0] == "maybe", f"{where}.{name} is missing"
            check(value.get(name), inner, types, f"{where}.{name}")
