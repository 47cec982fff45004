# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests pass with the drop-ins of shmview. cpython.py has the list, and runs them."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def is_installed():
    try:
        return importlib.util.find_spec("test._test_multiprocessing") is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not is_installed(), reason="no package test (libpython3-testsuite)")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_suite(daemon, method):
    done = subprocess.run([sys.executable, os.path.join(HERE, "cpython.py"), method],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
    said = done.stdout.decode()
    assert done.returncode == 0, said
    assert re.search(r"^OK \(skipped=[3-5]\)$", said, re.M), said
