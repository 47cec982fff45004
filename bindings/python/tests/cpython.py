# SPDX-License-Identifier: Apache-2.0
"""Runs CPython's own tests of multiprocessing, those of the installed package test, with
shmview's names in the place of multiprocessing's.  cpython.py fork|spawn|forkserver"""

import multiprocessing
import multiprocessing.managers
import multiprocessing.queues
import multiprocessing.shared_memory
import multiprocessing.sharedctypes
import multiprocessing.synchronize
import sys
import unittest

from test import _test_multiprocessing as suite

import shmview

CLASSES = ["_TestLock", "_TestSemaphore", "_TestCondition", "_TestEvent", "_TestBarrier", "_TestQueue",
           "_TestValue", "_TestArray", "_TestSharedCTypes", "_TestSharedMemory", "TestSimpleQueue"]
NAMES = {
    "synchronize": ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier"),
    "queues": ("Queue", "JoinableQueue", "SimpleQueue"),
    "sharedctypes": ("Value", "Array", "RawValue", "RawArray"),
}

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
    "test_closed": "looks at the pipe of a SimpleQueue, which is in shared memory here",
}


def check_invariant(self, condition):
    """Nobody waits: the suite looks at private semaphores, which our Condition does not have."""
    self.assertEqual(condition._waiters.count(), 0)


def put_ours_in():
    """Replaces every name that the tests use: of the class of the tests, of multiprocessing, and of
    its module."""
    for module, names in NAMES.items():
        for name in names:
            ours = getattr(getattr(shmview, module), name)
            for place in suite.ProcessesMixin, multiprocessing, getattr(multiprocessing, module):
                setattr(place, name, staticmethod(ours) if place is suite.ProcessesMixin else ours)
    suite._TestCondition.check_invariant = check_invariant
    suite.Value, suite.copy = shmview.Value, shmview.copy
    suite.shared_memory = multiprocessing.shared_memory = shmview.shared_memory
    sys.modules["multiprocessing.shared_memory"] = shmview.shared_memory
    multiprocessing.managers.SharedMemoryManager = shmview.SharedMemoryManager


put_ours_in()  # also in a spawned child that imports this file
for _name in CLASSES:
    _base = getattr(suite, _name)
    _class = type("WithProcesses" + _name.strip("_"), (_base, suite.ProcessesMixin, unittest.TestCase)
                  if _name[0] == "_" else (_base,), {"__module__": __name__})
    for _test in LEFT_OUT.keys() & set(dir(_base)):
        setattr(_class, _test, unittest.skip(LEFT_OUT[_test])(getattr(_base, _test)))
    globals()[_class.__name__] = _class
del _name, _base, _class, _test

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv.pop(1), force=True)
    unittest.main(verbosity=2)
