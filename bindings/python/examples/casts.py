#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the same memory as numbers, as bytes, and through numpy."""

import numpy

import shmview

numbers = shmview.make(32, "l", 4)
numbers[:] = [1, 2, 3, 4]
print(numbers.format, numbers.itemsize, numbers.nbytes, len(numbers))  # q 8 32 4
print(numbers[0], numbers[-1])                                         # 1 4

octets = numbers.cast("B")
print(octets.itemsize, len(octets), octets[:4].tolist())               # 1 32 [1, 0, 0, 0]

array = numpy.asarray(numbers)              # no copy: it has the same address
array[0] = 258
print(octets[:2].tolist(), array.ctypes.data == numbers.address)       # [2, 1] True
print(numpy.array(numbers), numpy.asarray(octets).view("i8"))          # [258 2 3 4] twice
print(octets.cast("h").tolist()[:4])                                   # [258, 0, 0, 0]

# the arguments of a GPU's upload call: a pointer and a length
pointer, length = octets.address, octets.nbytes
print(pointer != 0, length)                                            # True 32
