# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the Python reference. autodoc fills them from the docstrings."""

import importlib
import inspect

from sphinx.ext.autodoc.mock import mock

import rest

# shmview.mpi is imported without an MPI; conf.py does the same.
MOCKED = ["mpi4py", "shmview._mpi"]

# The modules that stand in for those of multiprocessing.
DROP_INS = ["shared_memory", "sharedctypes", "synchronize", "queues", "context", "managers"]


def title(text, mark="="):
    return f"{text}\n{mark * len(text)}\n"


def function(name):
    return f".. autofunction:: shmview.{name}\n"


def a_class(name, module="shmview", more=""):
    return f".. autoclass:: {module}.{name}\n   :members:\n{more}"


def own_names(module):
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if callable(getattr(module, name)) and inspect.getdoc(getattr(module, name))]


def write(out):
    import shmview
    out.mkdir()
    drop_in_names = {name for module in DROP_INS for name in own_names(importlib.import_module(f"shmview.{module}"))}
    objects = {name: getattr(shmview, name) for name in shmview._names}
    errors = [name for name, each in objects.items() if inspect.isclass(each) and issubclass(each, (Exception, Warning))]
    classes = [name for name, each in objects.items() if inspect.isclass(each) and name not in errors
               and name not in drop_in_names]
    functions = [name for name in objects if name not in errors + classes and name not in drop_in_names]
    large = [name for name in classes if name in ("Segment", "View", "Connection", "Events")]
    (out / "functions.rst").write_text("\n".join([title("Functions")] + [function(name) for name in functions]))
    for name in large:
        (out / f"{name}.rst").write_text(title(name) + "\n" + a_class(name))
    (out / "results.rst").write_text("\n".join([title("Results and guards")]
                                               + [a_class(name) for name in classes if name not in large]))
    (out / "errors.rst").write_text("\n".join([title("Errors")] + [
        f".. autoexception:: shmview.{name}\n   :members:\n   :show-inheritance:\n" for name in errors]))
    for each in DROP_INS + ["mpi"]:
        with mock(MOCKED):
            module = importlib.import_module(f"shmview.{each}")
        lines = [title(f"shmview.{each}"), "\n".join(rest.from_docstring((inspect.getdoc(module) or "").split("\n")))]
        for name in own_names(module):
            member = getattr(module, name)
            if not getattr(member, "__module__", "").startswith("shmview"):
                continue
            more = "   :inherited-members:\n" if each == "mpi" else ""
            lines.append(a_class(name, module.__name__, more) if inspect.isclass(member)
                         else f".. autofunction:: {module.__name__}.{name}\n")
        (out / f"{each}.rst").write_text("\n".join(lines))
    pages = ["functions"] + large + ["results", "errors", "mpi"] + DROP_INS
    (out / "index.rst").write_text("\n".join(
        [title("The Python package"), "This reference is made from the docstrings, which ``help(shmview.NAME)`` prints too.\n",
         "\n".join(rest.from_docstring(inspect.getdoc(shmview).split("\n"))),
         ".. toctree::\n   :maxdepth: 1\n", "   ../docs/PYTHON"] + [f"   {page}" for page in pages]) + "\n")
