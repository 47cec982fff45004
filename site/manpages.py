#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""manpages.py OUT: writes a manual page of section 3 for each public call, from include/shmview.

Calls that share a comment share a page; the other names are links to it (.so)."""

import pathlib
import re
import sys

import headers

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version():
    text = (ROOT / "include/shmview/shmview.h").read_text()
    return ".".join(re.findall(r"#define SHMVIEW_VERSION_\w+ (\d+)", text))


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


def prose(text, own):
    """A paragraph: names of calls are bold, those of other pages with their section."""
    text = escape(headers.expand_errors(text))
    return re.sub(r"\b(shmview_\w+)\(\)", lambda found: f"\\fB{found[1]}\\fR()" if found[1] in own
                  else f"\\fB{found[1]}\\fR(3)", text)


def code(text):
    return f".EX\n{escape(text)}\n.EE"


def body(comment, own):
    lines = []
    for block in headers.blocks_of(comment):
        if block.is_literal:
            lines += [".PP", ".RS 4", code(block.text), ".RE"]
        else:
            lines += [".PP", prose(block.text, own)]
    return "\n".join(lines[1:] if lines and lines[0] == ".PP" else lines)


def split(comment):
    """What a call does, and what it returns."""
    parts = re.split(r"\n\s*\n", comment)
    first = next((i for i, part in enumerate(parts) if re.match(r"Returns? ", part)), len(parts))
    if first == 0 and len(parts) > 1:  # such as "Returns the descriptor ...", and more about it
        return comment, ""
    if first == 0:
        return "", comment
    return "\n\n".join(parts[:first]), "\n\n".join(parts[first:])


def summary_of(comment):
    """The first sentence, for NAME."""
    first = headers.blocks_of(comment)[0].text
    first = re.split(r"(?<=[^.])[.:;](?: |$)", headers.expand_errors(first))[0]
    if len(first) > 90 and ", " in first[30:90]:
        first = first[:first.index(", ", 30)]
    return first[0].lower() + first[1:] if not re.match(r"[A-Z]{2}|DLPack", first) else first


def library_of(header):
    if pathlib.Path(header.include).stem.startswith("mpi"):
        return ".SH LIBRARY\nshmview\\-mpi (\\fIlibshmview\\-mpi\\-openmpi\\fR or \\fIlibshmview\\-mpi\\-mpich\\fR)"
    return '.SH LIBRARY\nshmview (\\fIlibshmview\\fR, \\fB\\-lshmview\\fR)'


def page(header, section, item, known):
    own = [each.name for each in item.functions()]
    what, returns = split(item.comment)
    name = own[0]
    result = [f'.\\" From include/{header.include}, which has the licence: Apache-2.0',
              f'.TH {name} 3 "" "shmview {version()}" "Library functions"',
              f'.SH NAME\n{", ".join(own)} \\- {escape(summary_of(item.comment))}',
              library_of(header),
              ".SH SYNOPSIS",
              code("\n".join([f"#include <{header.include}>", ""] + [each.text for each in item.declarations
                                                                      if each.name.isupper() or
                                                                      each.kind == "function"]))]
    if what:
        result.append(".SH DESCRIPTION\n" + body(what, own))
    if returns:
        result.append(".SH RETURN VALUE\n" + body(returns, own))
    if "rror of requests" in item.comment or "rrors of requests" in item.comment:
        result.append(".SH ERRORS OF REQUESTS\n" + body(headers.requests_of(known), own))
    types = headers.types_of(item, known)
    if types:
        result.append(".SH TYPES\n" + "\n.PP\n".join(code(each.text) for each in types))
    if section.comment:
        result.append(f".SH {section.title.upper()}\n" + body(section.comment, own))
    others = [each.name for other in section.items for each in other.functions()
              if each.name not in own and not each.name.endswith("_inline")]
    see = [f".BR {each} (3)" for each in sorted(dict.fromkeys(others))] + [".BR libshmview (3)",
                                                                         ".BR shmview\\-layout (7)"]
    result.append(".SH SEE ALSO\n" + ",\n".join(see))
    return "\n".join(result) + "\n"


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for path in out.glob("*.3"):
        path.unlink()
    known = headers.read_all(ROOT)
    for header, section, item in headers.calls_of(known):
        first, *others = [each.name for each in item.functions()]
        (out / f"{first}.3").write_text(page(header, section, item, known))
        for name in others:
            (out / f"{name}.3").write_text(f".so man3/{first}.3\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    main()
