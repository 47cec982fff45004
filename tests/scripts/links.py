# SPDX-License-Identifier: Apache-2.0
"""Each link of a document to another file of the repository leads to a file, and to a heading of it."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["SHMVIEW_SOURCE_DIR"]).resolve()


def documents():
    try:
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "*.md"], check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):  # an archive of the sources
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md")
                  if not {"build", "node_modules", "uplot"}.intersection(path.parts)]
    # The links of the site's own pages are to pages that make docs makes, and checks.
    return [ROOT / name for name in listed if name and (ROOT / name).exists()
            and name not in ("site/index.md", "site/code.md")]


def without_code(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^(?:    |\t).*$", "", text, flags=re.M))


def anchors(path):
    """The names that hosts of repositories give to headings."""
    found, text = set(), re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.*)$", text, flags=re.M):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        n = sum(1 for other in found if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
        found.add(f"{name}-{n}" if n else name)
    return found


wrong, n = [], 0
for document in documents():
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text())):
        if re.match(r"\w+:", target):
            continue
        n += 1
        path, _, fragment = target.partition("#")
        named = (document.parent / path).resolve() if path else document
        where = f"{document.relative_to(ROOT)}: {target}"
        if not named.exists():
            wrong.append(f"{where}: no such file")
        elif fragment and (named.suffix != ".md" or fragment not in anchors(named)):
            wrong.append(f"{where}: no such heading")
print(f"{n} links")
if wrong or n < 100:
    sys.exit("\n".join(wrong) or "hardly any links: does this script still find them?")
