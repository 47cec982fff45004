#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes share one array of bytes and read it as integers of two sizes.

The program was written for multiprocessing.Array. Only the import is different."""

from multiprocessing import Process

import numpy as np

from shmview import Array
from shmview.sharedctypes import SynchronizedArray


def fill(buf: "SynchronizedArray[int]") -> None:
    """Fills the array with 0, 1, 2, ..., as 16-bit integers."""
    with buf:
        numbers = np.frombuffer(buf.get_obj(), dtype=np.int16)
        numbers[:] = range(len(numbers))


def main() -> None:
    buf = Array("b", 10)
    with buf:
        print("before:", np.frombuffer(buf.get_obj(), dtype=np.int16).sum())

    child = Process(target=fill, args=(buf,))
    child.start()
    child.join()

    with buf:  # the first eight bytes, as two 32-bit integers
        first = memoryview(buf.get_obj()).cast("B")[:8]
        print("after:", np.frombuffer(first, dtype=np.int32).sum())
    print("bytes:", *buf)


if __name__ == "__main__":
    main()
