# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration. assemble.py copies this file beside the pages."""

import os
import pathlib
import re
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.environ["SHMVIEW_SITE"])

import manpages  # noqa: E402
import python_pages  # noqa: E402
import rest  # noqa: E402

project = "shmview"
author = "the authors of shmview"
copyright = "2026 the authors of shmview, Apache-2.0"
version = release = manpages.version()

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
# C types that the headers use and others define, and the types in signatures of Python.
nitpick_ignore_regex = [("c:identifier", r"(?!shmview_).*"), ("py:.*", r".*")]
highlight_language = "none"

myst_heading_anchors = 4
myst_enable_extensions = []
suppress_warnings = ["myst.header"]  # pages of a repository may begin a level deeper

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = python_pages.MOCKED

html_theme = "furo"
html_title = f"shmview {release}"
html_static_path = ["_static"]
html_css_files = ["site.css", "dark.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "monokai"


def write_dark(here):
    """furo chooses dark colours if the browser asks for them, but Debian's build of furo lost that rule
    in the translation of its nested media queries. This repeats it with furo's own colours."""
    import furo
    css = (pathlib.Path(furo.__file__).parent / "theme/furo/static/styles/furo.css").read_text()
    colours = re.search(r'body\[data-theme="?dark"?\]\s*\{([^}]*)\}', css)[1]
    (here / "_static/dark.css").write_text(
        "@media (prefers-color-scheme: dark) { body:not([data-theme=\"light\"]) {" + colours + "} }\n")


write_dark(here)


def plain_docstring(app, what, name, obj, options, lines):
    """Docstrings are plain text, as help() prints them."""
    lines[:] = rest.from_docstring(lines)


def setup(app):
    app.connect("autodoc-process-docstring", plain_docstring)
