# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of C: a page for each public header, and one for each call."""

import headers
import manpages
import rest


def title(text, mark="="):
    return f"{text}\n{mark * len(text)}\n"


def signature(declaration):
    text = " ".join(declaration.text.split()).rstrip(";")
    return text.replace("( ", "(")


def call_page(header, section, item, known):
    names = [each.name for each in item.functions()]
    what, returns = manpages.split(item.comment)
    lines = [title(", ".join(names)),
             f"*{rest.inline(header.summary)}*: :doc:`{header.include} <../{header.path.stem}>`"
             + (f", section {section.title}" if section.title else "") + "\n",
             rest.literal(f"#include <{header.include}>", "c"),
             f".. c:function:: {signature(item.functions()[0])}"]
    lines += [f"                 {signature(each)}" for each in item.functions()[1:]]
    lines.append("")
    if what:
        lines.append(rest.from_comment(what, "   "))
    if returns:
        lines += [".. rubric:: Return value\n", rest.from_comment(returns)]
    if "rrors of requests" in item.comment or "rror of requests" in item.comment:
        lines += [".. rubric:: Errors of requests\n", rest.from_comment(headers.requests_of(known))]
    types = headers.types_of(item, known)
    if types:
        lines.append(".. rubric:: Types\n")
        lines += [rest.literal(each.text, "c") for each in types]
    if section.comment:
        lines += [f".. rubric:: {section.title}\n", rest.from_comment(section.comment)]
    others = [each.name for other in section.items for each in other.functions()
              if each.name not in names and not each.name.endswith("_inline")]
    if others:
        lines += [".. rubric:: See also\n", ", ".join(f":c:func:`{each}`" for each in dict.fromkeys(others)) + "\n"]
    lines.append(f"In a terminal: ``man {names[0]}``.\n")
    return "\n".join(lines)


def other_page(name, described, item):
    """The page of a call that shares its comment with another one, so that search and addresses find each name."""
    declaration = next(each for each in item.functions() if each.name == name)
    return "\n".join([title(name), rest.literal(signature(declaration) + ";", "c"),
                      f"{rest.inline(manpages.summary_of(item.comment))}: :c:func:`{described}` describes both, "
                      f"because they share a comment.\n", f"In a terminal: ``man {name}``.\n"])


def header_page(header, pages, out):
    lines = [title(header.include), f"{rest.inline(header.summary[0].upper() + header.summary[1:])}.\n",
             rest.from_comment(header.comment)]
    for section in header.sections:
        if section.title:
            lines += [title(section.title, "-")]
        lines.append(rest.from_comment(section.comment))
        for item in section.items:
            functions = [each for each in item.functions() if pages.get(each.name) is header]
            if functions:
                lines.append("- " + ", ".join(f":c:func:`{each.name}`" for each in functions) + ": "
                             + rest.inline(manpages.summary_of(item.comment)) + "\n")
                continue
            shown = [each for each in item.declarations if each.kind in ("struct", "enum") or each.name.isupper()]
            if not shown:
                continue
            for each in shown:
                if each.kind in ("struct", "enum") and each.name not in pages:  # C has one name space here
                    lines.append(f".. c:{each.kind}:: {each.name}\n")
            if item.comment:
                lines.append(rest.from_comment(item.comment))
            lines.append(rest.literal("\n".join(each.text for each in shown), "c"))
    calls = [name for name, of in pages.items() if of is header and (out / f"call/{name}.rst").exists()]
    if calls:
        lines += [".. toctree::\n   :hidden:\n"] + [f"   call/{name}" for name in calls] + [""]
    return "\n".join(lines)


def write(root, out):
    """Writes the pages below the folder out. Returns how many calls they describe."""
    known = headers.read_all(root)
    (out / "call").mkdir(parents=True)
    pages = {}
    for header, section, item in headers.calls_of(known):
        names = [each.name for each in item.functions()]
        (out / f"call/{names[0]}.rst").write_text(call_page(header, section, item, known))
        for name in names[1:]:
            (out / f"call/{name}.rst").write_text(other_page(name, names[0], item))
        pages.update((name, header) for name in names)
    # The types that a header only names.
    opaque = ["shmview_connection", "shmview_segment", "shmview_stream", "shmview_monitor", "shmview_mpi",
              "shmview_mpi_link", "shmview_mpi_blocks", "DLManagedTensor", "DLManagedTensorVersioned", "shmview_mutex"]
    for header in known:
        (out / f"{header.path.stem}.rst").write_text(header_page(header, pages, out))
    index = [title("The C library"),
             "The reference is made from the headers, whose comments are the contract of each call. The manual has a page "
             "for each call as well: ``man shmview_lock``.\n",
             ".. toctree::\n   :maxdepth: 1\n",
             "   ../man/libshmview.3\n   ../man/shmview-layout.7"]
    index += [f"   {header.path.stem}" for header in known]
    index += ["", title("Opaque types", "-")]
    index += [f".. c:struct:: {name}\n" for name in opaque]
    index += [title("All calls", "-"), ".. list-table::\n   :widths: 35 65\n"]
    for header, _, item in headers.calls_of(known):
        for each in item.functions():
            index.append(f"   * - :c:func:`{each.name}`\n     - {rest.inline(manpages.summary_of(item.comment))}")
    (out / "index.rst").write_text("\n".join(index) + "\n")
    return len(pages)
