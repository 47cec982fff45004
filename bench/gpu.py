#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Copies from a segment to a GPU, beside copies from memory that the CUDA run time has allocated.

    PYTHONPATH=build/python bench/gpu.py [--quick]

Prints rows of a Markdown table. The segment is copied as it is, and with its pages pinned by
shmview.pin(). The reference is memory of cudaHostAlloc(), which is pinned too. The two sides take
turns; ratio is the median over the rounds, and less is better. Where there is no GPU, prints why."""

import ctypes
import statistics
import sys
import time

import shmview

MIB = 1 << 20


class Runtime:
    """The CUDA run time that shmview.pin() has loaded."""

    def __init__(self):
        with open("/proc/self/maps") as maps:
            path = next(line.split(maxsplit=5)[5].strip() for line in maps if "libcudart" in line)
        self.library = ctypes.CDLL(path)

    def __call__(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            raise RuntimeError(f"{name} returned {result}")

    def allocate(self, function, nbytes, *more):
        pointer = ctypes.c_void_p()
        self(function, ctypes.byref(pointer), ctypes.c_size_t(nbytes), *more)
        return pointer


def copier(cuda, device, host, nbytes):
    """A function that copies from the host to the device and returns nanoseconds."""
    host = ctypes.c_void_p(host)

    def copy():
        start = time.perf_counter_ns()
        cuda("cudaMemcpy", device, host, ctypes.c_size_t(nbytes), 1)
        cuda("cudaDeviceSynchronize")
        return time.perf_counter_ns() - start
    return copy


def print_row(name, nbytes, rounds, ours, theirs):
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    ratios = [a / b for a, b in pairs]
    a, b = (nbytes / statistics.median(side) for side in zip(*pairs))
    print(f"| {name} | {a:.1f} | cudaHostAlloc | {b:.1f} | GB/s | {statistics.median(ratios):.2f} "
          f"| {min(ratios):.2f}..{max(ratios):.2f} | |", flush=True)


def main():
    rounds = 5 if "--quick" in sys.argv[1:] else 21
    for nbytes in (MIB, 64 * MIB):
        with shmview.create(size=nbytes) as segment:
            view = segment.cast("B")
            pages = shmview.pin(segment)
            cuda = Runtime()
            device = cuda.allocate("cudaMalloc", nbytes)
            reference = cuda.allocate("cudaHostAlloc", nbytes, ctypes.c_uint(0))
            ctypes.memset(reference, 1, nbytes)
            ours = copier(cuda, device, view.address, nbytes)
            theirs = copier(cuda, device, reference.value, nbytes)
            print_row(f"copy to a GPU, {nbytes // MIB} MiB, pinned", nbytes, rounds, ours, theirs)
            pages.close()
            print_row(f"copy to a GPU, {nbytes // MIB} MiB, not pinned", nbytes, rounds, ours, theirs)
            cuda("cudaFree", device)
            cuda("cudaFreeHost", reference)
            view.release()


if __name__ == "__main__":
    try:
        main()
    except (shmview.NoCuda, shmview.CudaError) as error:
        print(f"bench/gpu.py: no copies to a GPU: {error}", file=sys.stderr)
