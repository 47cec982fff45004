#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""assemble.py OUT: writes the source of the site, for Sphinx, into the folder OUT.

The documents keep their places, so that their links hold. The references of C, Python and Ruby and the
manual pages are made here: from the headers, from docstrings, from the comments of the gem, by mandoc.
Needs the Python package (PYTHONPATH), mandoc and rdoc."""

import pathlib
import re
import shutil
import subprocess
import sys

import c_pages
import plots
import python_pages

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
# Manual pages are files without a suffix that Sphinx knows.
MANUALS = {path.name: f"{path.name}.rst" for path in sorted((ROOT / "man").iterdir())}


def listed(pattern):
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", pattern], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split("\n")
    return [pathlib.Path(name) for name in names if name and (ROOT / name).exists()]


def link(target, page, documents):
    """Where a link of a document leads on the site; None if the site has no such page."""
    path, _, fragment = target.partition("#")
    if re.match(r"\w+:", target) or not path:
        return target
    named = (ROOT / page.parent / path).resolve().relative_to(ROOT)
    up = "../" * len(page.parent.parts)
    if named.parts[0] == "man" and named.name in MANUALS:
        return f"{up}man/{named.name}.rst"
    if named.parts[:2] == ("include", "shmview"):
        return f"{up}c/{named.stem}.rst" if named.suffix == ".h" else f"{up}c/index.rst"
    if named in documents:
        return target
    if (ROOT / named / "README.md").exists():
        return f"{path.rstrip('/')}/README.md"
    return None


def copy_document(page, documents, out):
    text = (ROOT / page).read_text()

    def rewrite(found):
        target = link(found[2], page, documents)
        return f"[{found[1]}]({target})" if target else f"`{found[1]}`".replace("``", "`")
    fenced = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    for i in range(0, len(fenced), 2):
        fenced[i] = re.sub(r"\[([^]]+)\]\(([^)\s]+)\)", rewrite, fenced[i])
    (out / page).parent.mkdir(parents=True, exist_ok=True)
    (out / page).write_text("".join(fenced))


def write_manuals(out):
    (out / "man").mkdir()
    for name, page in MANUALS.items():
        html = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", str(ROOT / "man" / name)], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        title = re.sub(r"\.(\d)$", r"(\1)", name)
        body = "\n".join(f"   {line}" for line in html.split("\n"))
        (out / "man" / page).write_text(
            f"{title}\n{'=' * len(title)}\n\n.. raw:: html\n\n   <div class=\"manual\">\n{body}\n   </div>\n")


def write_ruby(out, store):
    (out / "ruby").mkdir()
    sources = [str(ROOT / "bindings/ruby/lib")] + sorted(map(str, (ROOT / "bindings/ruby/ext/shmview").glob("*.c")))
    subprocess.run(["rdoc", "--quiet", "--ri", "--op", str(store)] + sources, check=True)
    subprocess.run(["ruby", str(SITE / "ruby_pages.rb"), str(store), str(out / "ruby")], check=True)


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    documents = [page for page in listed("*.md") if page.parts[0] != "site" and page.parts[0] != ".github"]
    for page in documents:
        copy_document(page, documents, out)
    for name in ("index.md", "plots.rst", "conf.py"):
        shutil.copy(SITE / name, out)
    (out / "_static").mkdir()
    shutil.copy(SITE / "site.css", out / "_static")
    in_index = (SITE / "index.md").read_text()
    # Each page must be in a table of contents: those of folders are in code.md.
    code = (SITE / "code.md").read_text()
    listed_elsewhere = re.findall(r"^(?:.* <)?([\w./]+)>?$", in_index + code, flags=re.M) + ["docs/PYTHON", "docs/RUBY"]
    folders = [str(page.with_suffix("")) for page in documents if str(page.with_suffix("")) not in listed_elsewhere]
    (out / "code.md").write_text(code.replace("@FOLDERS@", "\n".join(folders)))
    write_manuals(out)
    print(f"assemble.py: {len(documents)} documents,", c_pages.write(ROOT, out / "c"), "calls of C,",
          plots.draw((ROOT / "bench/README.md").read_text(), out / "plots.svg"), "rows in plots")
    python_pages.write(out / "python")
    write_ruby(out, out.parent / "ri")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    main()
