# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers: sections, comments, and the declarations that a comment belongs to.

The headers follow a few rules, and a file that breaks one is an error here:
- A comment that stands directly above a declaration belongs to it, and to all declarations that
  follow without an empty line.
- '/* --- Lock --- */' begins a section. A comment that an empty line follows belongs to the section.
- Lines of a comment that are indented are code or a list, and keep their line ends."""

import dataclasses
import pathlib
import re


@dataclasses.dataclass
class Declaration:
    kind: str  # function, struct, enum, macro or other
    name: str
    text: str  # without the body of a function


@dataclasses.dataclass
class Item:
    """Declarations that share a comment."""
    comment: str
    declarations: list

    def functions(self):
        return [each for each in self.declarations if each.kind == "function"]


@dataclasses.dataclass
class Section:
    title: str
    comment: str = ""
    items: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Header:
    path: pathlib.Path
    include: str
    comment: str  # without its first line
    summary: str
    sections: list

    def items(self):
        return [item for section in self.sections for item in section.items]


def text_of(lines):
    """The text of a comment without its marks."""
    text = "\n".join(lines)
    text = re.sub(r"^/\*+ ?", "", text)
    text = re.sub(r"\s*\*/$", "", text)
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in text.split("\n")).strip("\n")


def name_of(text):
    """What a declaration declares: kind and name."""
    found = re.match(r"#define (\w+)", text)
    if found:
        return "macro", found[1]
    found = re.match(r"(struct|enum|union) (\w+)\s*\{", text)
    if found:
        return found[1], found[2]
    found = re.search(r"\b(shmview_\w+)\(", text)
    if found and not text.startswith(("typedef", "static_assert")):
        return "function", found[1]
    return "other", ""


def declarations_of(lines):
    """Divides lines of code into declarations."""
    result, at = [], 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("#"):
            end = at
            while lines[end].endswith("\\"):
                end += 1
            if line.startswith("#define"):
                text = "\n".join(lines[at:end + 1])
                result.append(Declaration(*name_of(text), re.sub(r" +\\$", " \\\\", text, flags=re.M)))
            at = end + 1
            continue
        end, depth = at, 0
        while True:
            code = re.sub(r"/\*.*?\*/", "", lines[end])
            depth += code.count("{") - code.count("}")
            if depth == 0 and re.search(r"[;}]\s*$", code):
                break
            end += 1
            if end == len(lines):
                raise ValueError(f"this declaration does not end: {line}")
        text = "\n".join(lines[at:end + 1])
        kind, name = name_of(text)
        if kind == "function":
            text = re.sub(r"\s*\n\{.*", ";", text, flags=re.S).replace("SHMVIEW_INLINE", "static inline")
            text = re.sub(r"; +/\*.*\*/$", ";", text)
        result.append(Declaration(kind, name, text))
        at = end + 1
    return result


def code_after(lines, at):
    """The lines of the declarations that begin at a line, up to an empty line or a comment outside braces."""
    end, depth, is_comment = at, 0, False
    while end < len(lines):
        line = lines[end]
        if depth == 0 and not is_comment and (not line.strip() or line.startswith("/*")):
            break
        is_comment = line.rfind("/*") > line.rfind("*/") or (is_comment and "*/" not in line)
        code = re.sub(r"/\*.*?\*/", "", line)
        depth += 0 if line.startswith("#") else code.count("{") - code.count("}")
        end += 1
    return lines[at:end], end


def read(path):
    text = re.sub(r'#ifdef __cplusplus\n(extern "C" {|})\n#endif\n', "", path.read_text())
    lines = text.split("\n")
    header = Header(path, f"shmview/{path.name}", "", "", [Section("")])
    at = 1  # the first line is the licence
    while at < len(lines):
        line = lines[at]
        if not line.startswith("/*"):
            code, end = code_after(lines, at) if line.strip() else ([], at + 1)
            found = declarations_of(code)
            for each in found:
                if each.kind == "function":
                    raise ValueError(f"{path}:{at + 1}: {each.name} has no comment")
            if any(each.kind in ("struct", "enum") for each in found):
                header.sections[-1].items.append(Item("", found))
            at = end
            continue
        end = at
        while "*/" not in lines[end]:
            end += 1
        comment, at = text_of(lines[at:end + 1]), end + 1
        title = re.fullmatch(r"--- (.*?) -*", comment)
        if title:
            header.sections.append(Section(title[1]))
        elif not header.summary:
            summary, _, header.comment = comment.partition("\n\n")
            header.summary = " ".join(summary.split()).split(" - ", 1)[1].rstrip(".")
        elif at >= len(lines) or not lines[at].strip():
            section = header.sections[-1]
            section.comment = f"{section.comment}\n\n{comment}".strip("\n")
        elif comment != "clang-format off":
            code, at = code_after(lines, at)
            if code and not code[0].startswith("#if"):
                header.sections[-1].items.append(Item(comment, declarations_of(code)))
            else:  # a comment on a condition belongs to the first declaration under it
                header.sections[-1].items.append(Item(comment, declarations_of(code[1:])))
    return header


# The order of the pages: what everybody needs first.
ORDER = ["shmview", "view", "element", "value", "many", "freeze", "placement", "stream", "wait", "family", "error", "access", "describe",
         "monitor", "stats", "mpi", "mpi_type", "mpi_split"]


def read_all(root):
    folder = pathlib.Path(root) / "include/shmview"
    headers = {path.stem: read(path) for path in sorted(folder.glob("*.h")) if "layout" not in path.stem}
    missing = headers.keys() ^ set(ORDER)
    if missing:
        raise ValueError(f"site/headers.py and include/shmview differ in {sorted(missing)}")
    return [headers[name] for name in ORDER]


def types_of(item, headers):
    """The structs and enums that the declarations of an item name and a public header defines."""
    known = {each.name: each for header in headers for other in header.items()
             for each in other.declarations if each.kind in ("struct", "enum")}
    text = " ".join(each.text for each in item.functions()) + item.comment
    named = re.findall(r"(?:struct|enum) (\w+)", text)
    return [known[name] for name in dict.fromkeys(named)
            if name in known and name not in ("shmview_view", "shmview_error", "shmview_dtype")]


@dataclasses.dataclass
class Block:
    """A paragraph, or lines that keep their form."""
    text: str
    is_literal: bool = False


def blocks_of(comment):
    """Divides a comment into paragraphs and literal lines."""
    result = []
    for part in re.split(r"\n\s*\n", comment):
        for line in part.split("\n"):
            literal = line.startswith("  ")
            if result and result[-1].text and result[-1].is_literal == literal:
                result[-1].text += "\n" + line
            else:
                result.append(Block(line, literal))
        result.append(Block(""))
    joined = []
    for block in result:  # an empty line between two literal blocks belongs to them
        if joined and joined[-1].is_literal and block.is_literal:
            joined[-1].text += "\n\n" + block.text
        elif block.text:
            joined.append(block)
    for block in joined:
        if block.is_literal:
            rows = block.text.split("\n")
            margin = min(len(row) - len(row.lstrip()) for row in rows if row)
            block.text = "\n".join(row[margin:] for row in rows)
        else:
            block.text = " ".join(block.text.split())
    return joined


def expand_errors(text):
    """Writes _NAME as -SHMVIEW_ERR_NAME, except where a comment explains the short form."""
    if "_NAME" in text:
        return text
    return re.sub(r"(?<![\w-])_([A-Z][A-Z_]+)\b", r"-SHMVIEW_ERR_\1", text)


def requests_of(headers):
    """What shmview.h says about the errors of requests."""
    text = headers[0].comment
    return text[text.index("Requests. ") + len("Requests. "):text.index("\n\nOwnership.")]


def calls_of(headers):
    """Yields header, section and item of each public call once."""
    seen = set()
    for header in headers:
        for section in header.sections:
            for item in section.items:
                names = [each.name for each in item.functions()]
                # The inline twin of a call of another header is described there.
                if names and names[0] not in seen and not names[0].endswith("_inline"):
                    seen.update(names)
                    yield header, section, item
