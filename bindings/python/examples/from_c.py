#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A C library writes into a view through a pointer. torch, or numpy if there is no torch, computes
on the same memory. The addresses show that nothing was copied."""

import ctypes

import numpy

import shmview

view = shmview.make(3 * 8, "d", 3)
libc = ctypes.CDLL(None)
libc.getloadavg.argtypes = [ctypes.c_void_p, ctypes.c_int]
n = libc.getloadavg(view.address, 3)  # the C library writes three doubles
print("C library:  ", hex(view.address), n, "numbers", view.tolist())

try:
    import torch
except ImportError:
    tensor = numpy.from_dlpack(view)
    address, mean = tensor.ctypes.data, tensor.mean()
    print("numpy:      ", hex(address), "mean", float(mean))
else:
    tensor = torch.from_dlpack(view)
    address, mean = tensor.data_ptr(), tensor.mean()
    print("torch:      ", hex(address), "mean", float(mean))
print("same memory:", address == view.address)

# pinned pages: if there is a GPU, it can read them itself
try:
    with shmview.pin(view.segment) as pinned:
        print("pinned:     ", pinned.nbytes, "bytes")
except (shmview.NoCuda, shmview.CudaError) as error:
    print("not pinned: ", type(error).__name__)
