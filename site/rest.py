# SPDX-License-Identifier: Apache-2.0
"""Turns plain text, as comments and docstrings have it, into reStructuredText."""

import re

import headers

# "name: what it means" in a docstring.
PARAMETER = re.compile(r"^(?:\*{0,2}[a-z_0-9]+(?:, )?)+: ")


# A call has the same name.
UNLINKED = ("enum shmview_access",)


def escape(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def inline(text):
    """Names of calls become links, other names of C code."""
    parts = re.split(r"(\bshmview_\w+\(\)|-?\bSHMVIEW_\w+\b|\bstruct shmview_\w+|\benum shmview_\w+)", text)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = escape(part)
        elif part.endswith("()"):
            parts[i] = f"\\ :c:func:`{part[:-2]}`\\ "
        elif part.startswith(("struct ", "enum ")):
            parts[i] = f"\\ ``{part}``\\ " if part in UNLINKED else f"\\ :c:{part.split()[0]}:`{part.split()[1]}`\\ "
        else:
            parts[i] = f"\\ ``{part}``\\ "
    return "".join(parts).strip().removeprefix("\\ ")


def literal(text, language="none", indent=""):
    body = "\n".join(f"{indent}   {line}".rstrip() for line in text.split("\n"))
    return f"{indent}.. code-block:: {language}\n\n{body}\n"


def looks_like_code(text):
    return bool(re.search(r"[;{}]$|^\s*#include", text, flags=re.M))


def from_comment(comment, indent=""):
    """The comment of a header."""
    result = []
    for block in headers.blocks_of(comment):
        if block.is_literal:
            result.append(literal(block.text, "c" if looks_like_code(block.text) else "none", indent))
        else:
            result.append(f"{indent}{inline(headers.expand_errors(block.text))}\n")
    return "\n".join(result)


def from_docstring(lines):
    """The docstring of Python: paragraphs, parameters, examples that are indented."""
    result = []
    blocks = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    for block in blocks:
        rows = block.split("\n")
        is_table = sum(bool(re.search(r"\S {3,}\S", row)) for row in rows) >= 2
        while rows:
            if rows[0].startswith("  ") or is_table:
                n = len(rows) if is_table else next((i for i, row in enumerate(rows) if not row.startswith("  ")),
                                                     len(rows))
                margin = min(len(row) - len(row.lstrip()) for row in rows[:n])
                result.append(literal("\n".join(row[margin:] for row in rows[:n]),
                                      "python" if re.search(r"[=(:]", block) and not is_table else "none"))
            else:
                n = next((i for i, row in enumerate(rows) if i and (row.startswith("  ") or PARAMETER.match(row))),
                         len(rows))
                text = inline(" ".join(row.strip() for row in rows[:n]))
                found = PARAMETER.match(rows[0])
                if found:
                    name = escape(found[0].rstrip(": "))
                    text = f"- **{name}**: {text[len(name):].lstrip(': ')}"
                result.append(text + "\n")
            rows = rows[n:]
    return "\n".join(result).split("\n")
