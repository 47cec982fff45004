# SPDX-License-Identifier: Apache-2.0
"""The extension builds and works with other CPythons: $SHMVIEW_PYTHONS names them, with colons
between them."""

import glob
import os
import shlex
import shutil
import subprocess
import tempfile

import pytest

pytestmark = pytest.mark.usefixtures("daemon")
SOURCE, BUILD = (os.environ.get(f"SHMVIEW_{name}_DIR", ".") for name in ("SOURCE", "BUILD"))
PYTHON = f"{SOURCE}/bindings/python"
ASK = "import os, sys, sysconfig; i = sysconfig.get_path('include'); assert os.path.exists(i + '/Python.h'); " \
    "assert sys.implementation.name == 'cpython' and sys.version_info >= (3, 9); " \
    "print(i, sysconfig.get_config_var('EXT_SUFFIX'))"

TRY = """
import ctypes, gc, multiprocessing, os, pickle, shmview, sys
def work(array, name):
    with array:
        array[1:] = [5, 6]
    print(shmview.attach(name).view("A")[1], shmview.SharedMemory(create=True, size=4).size)
if __name__ == "__main__":
    array = shmview.Array("d", 3)
    raw = array.get_obj()
    raw[0] = 2.5
    assert isinstance(raw, ctypes.c_double * 3) and isinstance(raw, shmview._sync.Quick)
    assert isinstance(array, multiprocessing.sharedctypes.SynchronizedArray)
    seg = shmview.create(None, one={"A": ("f4", 4), "S": "T{i:a:d:b:}"})
    with seg.locked():
        seg.switch("one")
        seg.view("A")[:] = [1, 2, 3, 4]
    child = multiprocessing.get_context("spawn").Process(target=work, args=(array, seg.name))
    child.start()
    child.join()
    assert child.exitcode == 0 and array[:] == [2.5, 5, 6]
    view = pickle.loads(pickle.dumps(seg.view("A")))
    assert memoryview(view).tolist() == [1, 2, 3, 4] == view.tolist() and bytes(view[:1]) == view[:1].tobytes()
    assert seg.view("S")[()] == (0, 0.0) and seg.layouts["one"]["A"]["shape"] == (4,)
    try:
        seg.close()
    except shmview.Busy:
        pass
    del view
    seg.close()
"""


def pythons():
    """Returns for each interpreter the place of its headers, and the file name of its
    extensions."""
    return {path: subprocess.run([path, "-c", ASK], stdout=subprocess.PIPE, check=True).stdout.decode().split()
            for path in os.environ.get("SHMVIEW_PYTHONS", "").split(":") if path}


OTHERS = pythons()


@pytest.mark.skipif(not OTHERS, reason="no other Python: $SHMVIEW_PYTHONS names none")
@pytest.mark.skipif(bool(os.environ.get("SHMVIEW_SANITIZE")), reason="is about what compiles")
@pytest.mark.parametrize("python", OTHERS)
def test_version(python):
    include, suffix = OTHERS[python]
    library = f"{BUILD}/client"
    with tempfile.TemporaryDirectory(prefix="shmview-py-") as place:
        package = f"{place}/shmview"
        shutil.copytree(f"{PYTHON}/shmview", package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, folder in ("_core", "src"), ("_sync", "sync"):
            command = [*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fPIC",
                       "-shared", "-fvisibility=hidden", f"-I{include}", f"-I{SOURCE}/include", f"-I{BUILD}/include",
                       f"-I{PYTHON}", *sorted({*glob.glob(f"{PYTHON}/{folder}/*.c"), f"{PYTHON}/src/unlocked.c"}), "-o", f"{package}/{name}{suffix}",
                       f"-L{library}", "-lshmview", "-lm", f"-Wl,-rpath,{library}"]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, done.stdout.decode()
        with open(f"{place}/trial.py", "w") as trial:
            trial.write(TRY)
        done = subprocess.run([python, "-W", "error", f"{place}/trial.py"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=100, env={**os.environ, "PYTHONPATH": place})
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "2.0 4\n", "")
