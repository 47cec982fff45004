# SPDX-License-Identifier: Apache-2.0
"""shmview.mpi without ranks: the errors where something is missing, and the structs of the headers. The programs
in mpi/ test the calls."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
SOURCE = os.environ.get("SHMVIEW_SOURCE_DIR", ".")

# Stands for mpi4py, so that no MPI starts. VENDOR is replaced.
MPI4PY = """
import sys, types
package, MPI = types.ModuleType("mpi4py"), types.ModuleType("mpi4py.MPI")
package.MPI, MPI.Comm, MPI.SUM = MPI, object, None
MPI.get_vendor = lambda: (VENDOR, (1, 2, 3))
MPI._sizeof = lambda kind: SIZE
sys.modules.update({"mpi4py": package, "mpi4py.MPI": MPI})
"""
NO_LIBRARY = """
import ctypes
def refuse(name, *more, **and_more):
    raise OSError(f"no {name}")
"""


def stand_in(vendor="Open MPI", size=8):
    return MPI4PY.replace("VENDOR", repr(vendor)).replace("SIZE", str(size))


def test_no_mpi4py(run):
    said = run("import sys, shmview; sys.modules['mpi4py'] = None\n"
               "view = shmview.wrap(bytearray(4))\n"
               "for call in (view.mpi, lambda: __import__('shmview.mpi')):\n"
               "    try: call()\n"
               "    except ImportError as error: print(error)").splitlines()
    assert len(said) == 2 and said[0] == said[1]
    assert said[0].startswith("shmview.mpi needs mpi4py: install the package python3-mpi4py")


@pytest.mark.parametrize("vendor, name", [("Open MPI", "openmpi"), ("MPICH", "mpich"), ("Intel MPI", "mpich")])
def test_no_library(run, vendor, name):
    said = run(stand_in(vendor) + NO_LIBRARY + "ctypes.CDLL = refuse\nimport os\nos.environ.pop('SHMVIEW_MPI_LIBRARY', None)\n"
               "try: import shmview.mpi\n"
               "except ImportError as error: print(error)")
    assert said.startswith(f"shmview.mpi needs libshmview-mpi for the MPI of mpi4py, {vendor} (1, 2, 3): install the package")
    assert f"no libshmview-mpi-{name}.so.0; " in said and said.endswith("no libshmview-mpi.so.0\n")


def test_chosen_library(run):
    said = run(stand_in() + "import os\n"
               "for path in '/nowhere/libshmview-mpi.so', 'libm.so.6':\n"
               "    os.environ['SHMVIEW_MPI_LIBRARY'] = path\n"
               "    try: import shmview.mpi\n"
               "    except ImportError as error: print(error)").splitlines()
    assert "/nowhere/libshmview-mpi.so: cannot open" in said[0]
    assert said[1].startswith("this libshmview-mpi is older than shmview: ")


STRUCTS = {"ViewStruct": "struct shmview_view", "ViewSpec": "struct shmview_view_spec",
           "Layout": "struct shmview_mpi_layout", "Spec": "struct shmview_mpi_spec",
           "SplitSpec": "struct shmview_mpi_split_spec"}
SHOW = """
from unittest import mock
import ctypes, json
ctypes.CDLL = mock.MagicMock()
from shmview import _mpi
print(json.dumps({name: [ctypes.sizeof(getattr(_mpi, name)),
                         {field: getattr(getattr(_mpi, name), field).offset for field, _ in getattr(_mpi, name)._fields_}]
                  for name in %s}))
"""


@pytest.mark.parametrize("handle", ["void *", "int"])
def test_structs(run, tmp_path, handle):
    """Sizes and offsets are those of the headers, with both kinds of handles that MPIs have."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("there is no compiler")
    ours = json.loads(run(stand_in(size=8 if handle == "void *" else 4) + SHOW % list(STRUCTS)))
    (tmp_path / "mpi.h").write_text("".join(f"typedef {handle} {name};\n" for name in ("MPI_Comm", "MPI_Op", "MPI_Datatype")))
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({struct}));')
        lines += [f'printf("{name}.{field} %zu\\n", offsetof({struct}, {field}));' for field in ours[name][1]]
    (tmp_path / "structs.c").write_text("#include <shmview/mpi.h>\n#include <stddef.h>\n#include <stdio.h>\n"
                                        "int main(void)\n{\n" + "\n".join(lines) + "\n}\n")
    program = str(tmp_path / "structs")
    subprocess.run([compiler, f"-I{tmp_path}", f"-I{SOURCE}/include", "-o", program, str(tmp_path / "structs.c")], check=True)
    told = dict(line.split() for line in subprocess.run([program], stdout=subprocess.PIPE, check=True,
                                                        text=True).stdout.splitlines())
    assert told == {key: str(value) for name, (size, fields) in ours.items()
                    for key, value in [(name, size)] + [(f"{name}.{field}", at) for field, at in fields.items()]}


TELL = """
import inspect, json
from unittest import mock
import ctypes
ctypes.CDLL = mock.MagicMock()
import shmview.mpi as m
names = {name: getattr(m, name) for name in m.__all__}
members = {name: {each: inspect.getdoc(value) for each, value in inspect.getmembers(cls) if not each.startswith("_")}
           for name, cls in names.items() if inspect.isclass(cls)}
arguments = {name: list(inspect.signature(value).parameters) for name, value in names.items() if not inspect.isclass(value)}
arguments.update({f"{name}.{each}": list(inspect.signature(getattr(names[name], each)).parameters)
                  for name in members for each in members[name] if inspect.isfunction(getattr(names[name], each))})
print(json.dumps([{name: inspect.getdoc(value) for name, value in names.items()}, members, arguments]))
"""


def parameters(node):
    spec = node.args
    return [each.arg for each in spec.posonlyargs + spec.args + [spec.vararg] + spec.kwonlyargs + [spec.kwarg] if each]


def test_stubs_tell_all(run):
    """The stubs have every function and method with its parameters, and each has a docstring."""
    names, members, arguments = json.loads(run(stand_in() + TELL))
    assert all(names.values()) and all(text for cls in members.values() for text in cls.values())
    with open(f"{os.path.dirname(shmview.__file__)}/mpi.pyi") as stub:
        tree = ast.parse(stub.read())
    told = {node.name: parameters(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
               for node in tree.body if isinstance(node, ast.ClassDef)}
    shared = classes.pop("_Handle")
    for name, items in classes.items():
        items = {each: item for each, item in {**shared, **items}.items() if not each.startswith("_")}
        assert set(items) == set(members[name])
        told.update({f"{name}.{each}": parameters(item) for each, item in items.items() if not item.decorator_list})
    assert told == arguments and set(classes) == set(members)


@pytest.mark.slow
def test_stubs_are_types(tmp_path):
    if not shutil.which("mypy"):
        pytest.skip("no mypy")
    if not importlib.util.find_spec("mpi4py"):
        pytest.skip("no mpi4py")
    folder = os.path.dirname(shmview.__file__)
    examples = [f"{SOURCE}/bindings/python/examples/mpi/{name}.py" for name in ("heat", "phases", "trainer")]
    for each in examples:
        done = subprocess.run(["mypy", "--strict", "--cache-dir=/dev/null", f"{folder}/mpi.pyi", each], stdout=subprocess.PIPE,
                              text=True, env={**os.environ, "LD_PRELOAD": "", "MYPYPATH": os.path.dirname(folder)})
        assert done.returncode == 0, done.stdout


def test_adopt():
    """Only a handle becomes a Segment."""
    connection = shmview.connect()
    for arguments, error in (((0, connection), ValueError), (("x", connection), TypeError), ((1, None), TypeError),
                             ((2**70, connection), OverflowError)):
        with pytest.raises(error):
            shmview._core._adopt(*arguments)
    other = shmview.Connection(connection.path)
    other.close()
    with pytest.raises(ValueError):
        other._handle()


def test_peer_failed():
    assert shmview.PeerFailed.rank is None and shmview.PeerFailed("").rank is None
