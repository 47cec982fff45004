# SPDX-License-Identifier: Apache-2.0
"""Runs CPython's own tests of multiprocessing, those of the installed package test, with
shmview's names in the place of multiprocessing's.  cpython.py fork|spawn|forkserver"""

import multiprocessing
import multiprocessing.managers
import multiprocessing.shared_memory
import sys
import unittest

from test import _test_multiprocessing as suite

import shmview

CLASSES = ["_TestLock", "_TestCondition", "_TestValue", "_TestArray", "_TestSharedCTypes",
           "_TestSharedMemory"]

# Tests that cannot apply, and why.
LEFT_OUT = {
    "test_shared_memory_cleaned_after_process_termination":
        "expects a warning of the resource tracker, but shmview uses none; its process ignores "
        "PYTHONPATH. test_shared_memory.py checks the same with a killed creator",
    "test_shared_memory_tracking": "of 3.13: expects a warning of the resource tracker at the end",
    "test_shared_memory_untracking":
        "of 3.13: like the one above, without tracking; its program names multiprocessing's class",
    "test_shared_memory_SharedMemoryManager_reuses_resource_tracker":
        "is about the resource tracker, and imports multiprocessing's own manager",
}


def condition(lock=None):
    return multiprocessing.Condition(shmview.RLock() if lock is None else lock)


def put_ours_in():
    """Replaces every name that the tests use."""
    for name in ("Lock", "RLock", "Value", "Array", "RawValue", "RawArray"):
        setattr(suite.ProcessesMixin, name, staticmethod(getattr(shmview, name)))
    suite.ProcessesMixin.Condition = staticmethod(condition)
    suite.Value, suite.copy = shmview.Value, shmview.copy
    suite.shared_memory = multiprocessing.shared_memory = shmview.shared_memory
    sys.modules["multiprocessing.shared_memory"] = shmview.shared_memory
    multiprocessing.managers.SharedMemoryManager = shmview.SharedMemoryManager


put_ours_in()  # also in a spawned child that imports this file
for _name in CLASSES:
    _base = getattr(suite, _name)
    _class = type("WithProcesses" + _name[1:], (_base, suite.ProcessesMixin, unittest.TestCase),
                  {"__module__": __name__})
    for _test in LEFT_OUT.keys() & set(dir(_base)):
        setattr(_class, _test, unittest.skip(LEFT_OUT[_test])(getattr(_base, _test)))
    globals()[_class.__name__] = _class
del _name, _base, _class, _test

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv.pop(1), force=True)
    unittest.main(verbosity=2)
