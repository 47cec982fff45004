#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three stages that work on the same blocks of sound, without a copy.

    pipeline.py [FILE.wav]      a recording of one channel with 16 bits; without one, three tones

The source publishes blocks of a tenth of a second. The gate passes on those that are not silent, the tuner those
whose pitch is another than that of the block before, and the printer prints them. The stream is lossless: the source
waits for the slowest stage, and no block is lost."""

import multiprocessing
import sys
import wave
from multiprocessing.synchronize import Barrier
from typing import Any, Callable, Iterator

import numpy

import shmview

RATE, BLOCK = 48000, 4800  # samples


def tones() -> Iterator[Any]:
    """Yields blocks: a second of each tone, with half a second of silence between the first two."""
    time = numpy.arange(BLOCK) / RATE
    for hertz, n in (440, 10), (0, 5), (660, 10), (880, 10):
        for _ in range(n):
            yield (20000 * numpy.sin(2 * numpy.pi * hertz * time)).astype("i2")


def recording(path: str) -> Iterator[Any]:
    with wave.open(path) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            sys.exit(f"{path}: one channel with 16 bits, please")
        while data := file.readframes(BLOCK):
            yield numpy.frombuffer(data, "<i2")


def pitch(frame: shmview.Frame) -> int:
    """Returns the frequency of the loudest part of a block, to 10 Hz."""
    spectrum = numpy.abs(numpy.fft.rfft(frame["samples"].array))
    return int(spectrum.argmax()) * RATE // frame["samples"].size


class Changes:
    """Whether the pitch is another than before."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self, frame: shmview.Frame) -> bool:
        before, self.last = self.last, pitch(frame)
        return self.last != before


def is_loud(frame: shmview.Frame) -> bool:
    return bool(numpy.abs(frame["samples"].array).max() > 500)


def stage(number: int, joined: Barrier, wanted: Callable[[shmview.Frame], bool]) -> None:
    """Passes the blocks that are wanted on to the next stage, and ends it after the last one."""
    with shmview.open_stream(f"sound:{number}", "write") as blocks, \
            shmview.open_stream(f"sound:{number + 1}", "write") as following:
        blocks.join()
        joined.wait()
        for frame in blocks:
            if wanted(frame):
                frame.pass_on(number + 1)
            del frame  # before the wait for the next one
        following.end()


def printer(joined: Barrier) -> None:
    with shmview.open_stream("sound:2") as blocks:
        blocks.join()
        joined.wait()
        for frame in blocks:
            print(f"{frame.time:.1f} s: {pitch(frame)} Hz")


def main() -> None:
    source = recording(sys.argv[1]) if len(sys.argv) > 1 else tones()
    stream = shmview.create_stream("sound", samples=("i2", BLOCK), slots=16, stages=3, lossless=True)
    joined = multiprocessing.Barrier(4)
    workers = [multiprocessing.Process(target=stage, args=(0, joined, is_loud)),
               multiprocessing.Process(target=stage, args=(1, joined, Changes())),
               multiprocessing.Process(target=printer, args=(joined,))]
    for worker in workers:
        worker.start()
    joined.wait(60)
    for i, block in enumerate(source):
        with stream.loan(timeout=60) as frame:
            frame.set_length("samples", len(block))
            frame["samples"][:] = block
            frame.time = (i + 1) / 10  # of its end
    stream.end()
    for worker in workers:
        worker.join()
    stream.close()


if __name__ == "__main__":
    main()
