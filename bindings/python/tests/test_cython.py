# SPDX-License-Identifier: Apache-2.0
"""The example in Cython compiles with the commands in its text, and its results are right."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
SOURCE, BUILD = os.environ.get("SHMVIEW_SOURCE_DIR"), os.environ.get("SHMVIEW_BUILD_DIR")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    cython = shutil.which("cython3") or shutil.which("cython")
    if not cython or not BUILD:
        pytest.skip("no cython3")
    folder = tmp_path_factory.mktemp("cython")
    source, out = folder / "kernels.c", folder / ("kernels" + sysconfig.get_config_var("EXT_SUFFIX"))
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def run(*command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        assert done.returncode == 0, done.stdout.decode()
    run(cython, "-I", os.path.dirname(os.path.dirname(shmview.__file__)), "-o", str(source),
        f"{SOURCE}/bindings/python/examples/kernels.pyx")
    run(os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", f"-I{sysconfig.get_path('include')}", f"-I{SOURCE}/include",
        "-o", str(out), str(source), f"-L{BUILD}/client", "-lshmview", f"-Wl,-rpath,{BUILD}/client",
        *shlex.split(os.environ.get("SHMVIEW_SANITIZE") and "-fsanitize=" + os.environ["SHMVIEW_SANITIZE"] or ""))
    spec = importlib.util.spec_from_file_location("kernels", out)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_typed_memoryviews(kernels):
    seg = shmview.create("seg", 800)
    view = seg.cast("d", (10, 10))
    view[...] = 2
    assert kernels.total(view) == 200 == kernels.total(view.toreadonly())
    assert kernels.total(view.T) == 200 and kernels.total(view[::2, ::-3]) == 5 * 4 * 2
    kernels.scale(view, 2.5)
    assert view[9, 9] == 5
    for wrong in (view.toreadonly(), view.T[:, 1:], seg.cast("f", (10, 10)), seg.cast("d")):
        with pytest.raises((ValueError, BufferError, TypeError)):
            kernels.scale(wrong, 2)


def test_the_lock_without_python(kernels):
    seg = shmview.create("seg", 80)
    view = seg.cast("d", 10)
    kernels.add_under_lock(seg, view, 0.5, 1000)
    assert view[0] == 500 and not seg.lock_status().held
    with pytest.raises(RuntimeError, match="lock"):
        kernels.add_under_lock(shmview.create("two", 80, lock=False), view, 0.5, 1)
    with pytest.raises(AttributeError):
        kernels.add_under_lock(None, view, 0.5, 1)
