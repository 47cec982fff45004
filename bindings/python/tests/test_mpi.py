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


# Stands for libshmview-mpi. Calls that wait end with a signal if `raises` is set.
FAKE = """
#include <signal.h>
#include <stddef.h>
#include <unistd.h>
int raises, result, n_freed, gate[2];
void *made = &result, *kept;
static int end(void)
{
    if (raises)
        raise(SIGUSR1);
    return result;
}
static int free_handle(void)
{
    n_freed++;
    return end();
}
static int make(void **ret)
{
    *ret = made;
    return end();
}
#define A void *
const char *shmview_mpi_error_text(void) { return "fake"; }
A shmview_mpi_segment(A a) { (void)a; return made; }
int shmview_mpi_open(A a, A b, A c, A d, A *ret) { (void)a, (void)b, (void)c, (void)d; return make(ret); }
int shmview_mpi_link_open(A a, A *ret) { (void)a; return make(ret); }
int shmview_mpi_split(A a, A b, A c, unsigned long d, long e, A *ret)
{
    (void)a, (void)b, (void)c, (void)d, (void)e;
    return make(ret);
}
int shmview_mpi_halo(A a, long d) { (void)a, (void)d; return (int)read(gate[0], &(char){0}, 1) - 1; }
long deadline;
int shmview_mpi_send(A a, A b, int c, long d) { (void)a, (void)b, (void)c; deadline = d; return end(); }
int shmview_mpi_close_keeping(A a, A *ret) { (void)a; *ret = kept; return free_handle(); }
int shmview_mpi_link_close(A a) { (void)a; return free_handle(); }
int shmview_mpi_split_free(A a) { (void)a; return free_handle(); }
"""
INTERRUPT = """
import ctypes, gc, os, signal, sys, shmview
os.environ["SHMVIEW_MPI_LIBRARY"] = sys.argv[1]
fake = ctypes.CDLL(sys.argv[1])
raises, result, n_freed = (ctypes.c_int.in_dll(fake, name) for name in ("raises", "result", "n_freed"))
made, kept = (ctypes.c_void_p.in_dll(fake, name) for name in ("made", "kept"))
MPI._addressof = lambda thing: ctypes.addressof(ctypes.c_void_p.in_dll(fake, "kept"))
from shmview import _mpi
import shmview.mpi
class Comm:
    def Get_rank(self): return 0
    def Get_size(self): return 2
class Interrupt(BaseException): pass
def handler(*_):
    raises.value = result.value = 0
    raise Interrupt
signal.signal(signal.SIGUSR1, handler)
def interrupt(call, *arguments, code=0):
    raises.value, result.value = 1, -code
    try: call(*arguments)
    except Interrupt: pass
    else: raise AssertionError("no interrupt")
seg = shmview.create("seg", 64)
link = shmview.mpi.link(Comm())
def job(): return shmview.mpi.Job(made.value, Comm(), seg, False)
def bare_split():
    made_split = shmview.mpi.Split.__new__(shmview.mpi.Split)
    _mpi.Handle.__init__(made_split, made.value)
    made_split._lock, made_split.link, made_split._pin = link._lock, link, seg.buf
    link._splits.add(made_split)
    return made_split
"""
INTERRUPTS = {
    "close": """
kept.value = 1
one = job()
interrupt(one.close)
assert one.closed and seg.closed
one.close()
assert n_freed.value == 1
""",
    "close, and MPI may write": """
one = job()
interrupt(one.close, code=shmview.TimedOut.code)
assert one.closed and not seg.closed
del one
gc.collect()
try: seg.close()
except shmview.Busy: pass
else: raise AssertionError("the segment ends")
""",
    "collective": """
one = job()
interrupt(one.bcast, seg.buf, code=shmview.TimedOut.code)
assert one._failed and not one._lock.locked()
one.__exit__(Interrupt, None, None)
assert one.closed and not seg.closed
""",
    "collective that succeeds": """
one = job()
interrupt(one.bcast, seg.buf)
interrupt(one.bcast, seg.buf, code=shmview.Invalid.code)
assert not one._failed
one.__exit__(Interrupt, None, None)
assert one.closed and seg.closed
""",
    "link": """
interrupt(link.close)
assert link.closed
link.close()
assert n_freed.value == 1
""",
    "split": """
interrupt(shmview.mpi.split, link, seg, 4, "i4")
gc.collect()
assert n_freed.value == 1
one = bare_split()
interrupt(one.close)
one.close()
assert one.closed and n_freed.value == 2
seg.close()
""",
    "send": """
interrupt(link.send, seg.buf, 1)
seg.close()
seg = shmview.create("seg", 64)
interrupt(link.send, seg.buf, 1, code=shmview.PeerFailed.code)
gc.collect()
try: seg.close()
except shmview.Busy: pass
else: raise AssertionError("the segment ends")
""",
    "open": """
connection = shmview.connect()
library = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libshmview.so" in line))
handle = ctypes.c_void_p(_mpi.connection_pointer(connection))
assert library.shmview_attach(handle, b"seg", 3, 0, ctypes.byref(made)) == 0
seg.close()
shmview.attach("seg").close()
interrupt(lambda: shmview.mpi.open(Comm(), "seg", 64))
try: shmview.attach("seg")
except shmview.NotFound: pass
else: raise AssertionError("the segment is still attached")
""",
}


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    """The path of a library that stands for libshmview-mpi."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("there is no compiler")
    with open(f"{os.path.dirname(shmview.__file__)}/_mpi.py") as source:
        table = source.read().partition("_PROTOTYPES = {")[2].partition("\n}\n")[0]
    names = [line.split('"')[1] for line in table.strip().splitlines()]
    rest = "".join(f"int shmview_mpi_{name}(void) {{ return end(); }}\n" for name in names
                   if f"shmview_mpi_{name}(" not in FAKE)
    folder = tmp_path_factory.mktemp("fake")
    (folder / "fake.c").write_text(FAKE + rest)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", f"{folder}/fake.so", f"{folder}/fake.c"], check=True)
    return f"{folder}/fake.so"


@pytest.mark.parametrize("call", INTERRUPTS)
def test_interrupt(run, fake, call):
    """An interrupt, which Python raises when a call has returned, loses no handle and no result."""
    run(stand_in() + INTERRUPT + INTERRUPTS[call], fake)


TIMEOUTS = """
import time
deadline = ctypes.c_long.in_dll(fake, "deadline")
def sent(timeout):
    link.send(seg.buf, 1, timeout)
    return deadline.value
def opened(timeout):
    def refuse(comm, connection, name, spec, job):
        seen.append(spec._obj.timeout_ns)
        return -shmview.Invalid.code
    seen, _mpi.calls.open = [], refuse
    try: shmview.mpi.open(Comm(), "seg", 64, timeout=timeout)
    except shmview.Invalid: return seen[0]
for timeout in None, 3.1e9, 9.2e9, 9.3e9, 10**11, 10**400, float("inf"):
    assert sent(timeout) == opened(timeout) == 2**63 - 1, timeout
assert 10**17 < sent(3e9) - time.monotonic_ns() <= 3 * 10**18 == opened(3e9)
assert sent(0) <= time.monotonic_ns() and opened(1.5) == 1500000000 and opened(1e-12) == 1
for timeout in float("nan"), -1, -1e-9, -float("inf"):
    for call in sent, opened:
        try: call(timeout)
        except ValueError: pass
        else: raise AssertionError(timeout)
"""


def test_timeouts(run, fake):
    """Timeouts are those of the other calls of Python, of any length."""
    run(stand_in() + INTERRUPT + TIMEOUTS, fake)


THREADS = """
import threading, time
one, other = bare_split(), bare_split()
gate = (ctypes.c_int * 2).in_dll(fake, "gate")
gate[0], gate[1] = os.pipe()
thread = threading.Thread(target=one.halo, daemon=True)
thread.start()
while not link._lock.locked():
    time.sleep(0.001)
for call in one.close, other.close, link.close, other.halo:
    try: call()
    except shmview.Busy: pass
    else: raise AssertionError(call)
del call
assert not n_freed.value
del other
gc.collect()
assert n_freed.value == 1
os.write(gate[1], b".")
thread.join()
one.close()
link.close()
assert one.closed and link.closed and n_freed.value == 3
"""


def test_busy(run, fake):
    """No thread frees a split that another one uses."""
    run(stand_in() + INTERRUPT + THREADS, fake)


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
