#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes sample.wav, or the file given: two seconds of a sound of our own.

A chirp rises through two tones, a low and a high one, while noise fades in.
The noise comes from a generator written out here, so that every run makes the
same file."""
import array
import math
import pathlib
import sys
import wave

RATE = 22050
SECONDS = 2
LOW_HZ, HIGH_HZ = 330.0, 5200.0
CHIRP_FROM_HZ, CHIRP_TO_HZ = 150.0, 4000.0
FADE_SECONDS = 0.05


def noise():
    """Numbers in [-1, 1): the linear congruential generator of Numerical Recipes."""
    state = 1
    while True:
        state = (1664525 * state + 1013904223) % 2**32
        yield state / 2**31 - 1


def sample(t, random):
    sweep = (CHIRP_TO_HZ - CHIRP_FROM_HZ) / (2 * SECONDS)
    value = 0.35 * math.sin(2 * math.pi * (CHIRP_FROM_HZ * t + sweep * t * t))
    value += 0.20 * math.sin(2 * math.pi * LOW_HZ * t)
    value += 0.06 * math.sin(2 * math.pi * HIGH_HZ * t)
    value += 0.05 * t / SECONDS * random
    return value * min(1, t / FADE_SECONDS, (SECONDS - t) / FADE_SECONDS)


def main():
    here = pathlib.Path(__file__).parent
    path = sys.argv[1] if len(sys.argv) > 1 else str(here / "sample.wav")
    random = noise()
    samples = array.array(
        "h", (round(32767 * sample(i / RATE, next(random))) for i in range(SECONDS * RATE)))
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


if __name__ == "__main__":
    main()
