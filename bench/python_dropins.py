#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The drop-ins beside what they stand in for, in one run; options and table as of python.py.

    PYTHONPATH=build/python bench/python_dropins.py [--quick] [--only PATTERN] [--check] [--daemon PATH]
"""

import multiprocessing
import sys
import threading
import time
from multiprocessing import shared_memory

import numpy
from python import main, row, rows, statements

import shmview

rows.clear()  # those of python.py itself
WITH = "with x: pass"


def of(module, name, *arguments):
    """An object of one of the two modules, as the x of a statement."""
    return lambda statement: (statement, {"x": getattr(module, name)(*arguments)})


ours, theirs = of(shmview, "Array", "d", 1000), of(multiprocessing, "Array", "d", 1000)
raw = of(shmview, "RawArray", "d", 1000)
VALUES = {"v": [1.0] * 1000, "numpy": numpy}


def array(statement):
    return statement, {"x": numpy.zeros(1000), **VALUES}


def with_values(side, statement):
    text, names = side(statement)
    return text, {**names, **VALUES}


def beside(name, reference, target, a, b, n=20000):
    row(name, reference, target, statements(a, b, n))


beside("with array:", "multiprocessing.Array", 0.3, lambda: ours(WITH), lambda: theirs(WITH))
beside("with array:", "threading.RLock", 0.6, lambda: ours(WITH), lambda: (WITH, {"x": threading.RLock()}))
for _name in "Lock", "RLock":
    beside(f"with {_name}:", f"multiprocessing.{_name}", None, lambda n=_name: of(shmview, n)(WITH),
           lambda n=_name: of(multiprocessing, n)(WITH))
for _name, _what, _statement, _target in (
        ("Semaphore", "acquire, release", "x.acquire(); x.release()", None),
        ("Event", "set, clear", "x.set(); x.clear()", None),
        ("SimpleQueue", "put, get", "x.put(1); x.get()", 1),
        ("Queue", "put, get", "x.put(1); x.get()", 1)):
    beside(f"{_name}, {_what}", f"multiprocessing.{_name}", _target,
           lambda n=_name, s=_statement: of(shmview, n)(s),
           lambda n=_name, s=_statement: of(multiprocessing, n)(s), 2000)
for _what, _statement in (("get", "x[5]"), ("set", "x[5] = 1.5")):
    beside(f"locked item, {_what}", "multiprocessing.Array", 0.15, lambda s=_statement: ours(s),
           lambda s=_statement: theirs(s))
    beside(f"locked item, {_what}", "numpy", None, lambda s=_statement: ours(s), lambda s=_statement: array(s))
    beside(f"RawArray item, {_what}", "numpy", 0.5, lambda s=_statement: raw(s), lambda s=_statement: array(s))
beside("RawArray('f') item, set", "numpy", 0.5, lambda: of(shmview, "RawArray", "f", 1000)("x[5] = 1.5"),
       lambda: ("x[5] = 1.5", {"x": numpy.zeros(1000, "f")}))
for _what, _statement in (("get", "x.value"), ("set", "x.value = 7")):
    beside(f"Value, {_what}", "multiprocessing.Value", None,
           lambda s=_statement: of(shmview, "Value", "i", 3)(s), lambda s=_statement: of(multiprocessing, "Value", "i", 3)(s))
for _view, _target in (("numpy.frombuffer(x)", 0.85), ("numpy.frombuffer(x.get_obj())", None), ("numpy.asarray(x)", None)):
    beside(_view, "numpy.frombuffer(get_obj())", _target, lambda v=_view: with_values(ours, v),
           lambda: with_values(theirs, "numpy.frombuffer(x.get_obj())"))
beside("slice of 1000, get", "numpy tolist()", 1.2, lambda: ours("x[0:1000]"), lambda: array("x[0:1000].tolist()"), 1000)
beside("slice of 1000, set from a list", "numpy", 1.2, lambda: with_values(ours, "x[0:1000] = v"),
       lambda: array("x[0:1000] = v"), 1000)
beside("RawArray slice, get", "numpy tolist()", 1.2, lambda: raw("x[0:1000]"),
       lambda: array("x[0:1000].tolist()"), 1000)
beside("RawArray slice, set", "numpy", 1.2, lambda: with_values(raw, "x[0:1000] = v"),
       lambda: array("x[0:1000] = v"), 1000)


# --- SharedMemory -------------------------------------------------------------

def batches(ours, theirs, n=50):
    """Two functions of a class of blocks; the least of n calls each, for others use the machine too."""
    def timed(call, cls):
        def run():
            clock, least = time.perf_counter_ns, float("inf")
            for _ in range(n):
                t = clock()
                call(cls)
                least = min(least, clock() - t)
            return least
        return run
    return lambda: (timed(ours, shmview.SharedMemory), timed(theirs, shared_memory.SharedMemory))


def create(size):
    def call(cls):
        block = cls(create=True, size=size)
        block.close()
        block.unlink()
    return call


row("SharedMemory create+destroy", "shared_memory, 4 KiB", 2.5, batches(create(4096), create(4096)))
row("SharedMemory create+destroy", "shared_memory, 1 MiB", None, batches(create(1 << 20), create(1 << 20)))


def attach():
    """Somebody has it already."""
    there = [shmview.SharedMemory(create=True, size=4096), shared_memory.SharedMemory(create=True, size=4096)]
    a, b = (block.name for block in there)
    made = batches(lambda cls: cls(a).close(), lambda cls: cls(b).close())()
    return (*(keep(call, block) for call, block in zip(made, there)),)


def keep(call, block):
    class Kept:
        def __call__(self):
            return call()

        def __del__(self):
            block.unlink()
            block.close()
    return Kept()


row("SharedMemory attach+close", "shared_memory", 2.5, attach)

if __name__ == "__main__":
    sys.exit(main())
