#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Formats as other readers of PEP 3118 see them: Python's struct, and numpy where there is one.

Random formats of the struct module must have the size that it gives them, and those that it
refuses must be refused. Formats that numpy exports must have the sizes, names and offsets of
the array. The seed is fixed and printed; SHMVIEW_SEED sets another.
"""

import ctypes
import os
import random
import struct
import sys

N_STRUCT = 20000
N_NUMPY = 2000
STRUCT = 0  # SHMVIEW_STRUCT
SWAPPED = 0x100
MAX_COMPONENTS = 64


class Format(ctypes.Structure):
    _fields_ = [
        ("itemsize", ctypes.c_uint32),
        ("align", ctypes.c_uint32),
        ("dtype", ctypes.c_uint32),
        ("n_components", ctypes.c_uint32),
        ("error_at", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("text", ctypes.c_char * 1024),
    ]


class Component(ctypes.Structure):
    _fields_ = [
        ("offset", ctypes.c_uint32),
        ("itemsize", ctypes.c_uint32),
        ("repeat", ctypes.c_uint32),
        ("dtype", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("ndim", ctypes.c_uint32),
        ("shape", ctypes.c_uint32 * 8),
        ("name", ctypes.c_char * 64),
    ]


class Failure(Exception):
    pass


def load():
    path = os.environ.get("SHMVIEW_LIBRARY")
    if not path or os.environ.get("SHMVIEW_SANITIZE_FLAGS"):
        print("no library that could be loaded")
        sys.exit(77)
    library = ctypes.CDLL(path)
    library.shmview_format_parse.argtypes = [
        ctypes.c_char_p,
        ctypes.POINTER(Format),
        ctypes.POINTER(Component),
        ctypes.c_size_t,
    ]
    return library


class Parsed:
    """The result of the library's parser for a text. Only `result` is valid if it refused the
    text."""

    def __init__(self, library, text):
        self.format = Format()
        self.components = (Component * MAX_COMPONENTS)()
        encoded = text.encode()
        self.result = library.shmview_format_parse(
            encoded, self.format, self.components, MAX_COMPONENTS
        )
        if self.result and self.format.error_at > len(encoded):
            raise Failure(f"error at {self.format.error_at} of {text!r}")

    @property
    def text(self):
        return self.format.text.decode()


# --- The struct module ------------------------------------------------------

STANDARD = "xcbB?hHiIlLqQefdsp"
NATIVE = STANDARD + "nNP"


def struct_text(rng):
    mark = rng.choice(["", "", "@", "=", "<", ">", "!"])
    letters = NATIVE if mark in ("", "@") or rng.random() < 0.02 else STANDARD
    text = mark
    for _ in range(rng.choice([1, 1, 2, 3, 4, 6, 9])):
        if rng.random() < 0.1:
            text += rng.choice([" ", "\t", "\n"])
        if rng.random() < 0.3:
            text += str(rng.choice([0, 1, 2, 3, 5, 10, 17]))
        text += rng.choice(letters)
    if rng.random() < 0.05:
        text += rng.choice(["0q", "0i", " ", "7", "y", "}", "("])
    return text


def struct_size(text):
    try:
        return struct.calcsize(text)
    except struct.error:
        return None


def check_struct(library, text):
    size = struct_size(text)
    ours = Parsed(library, text)
    if ours.result == 0 and size is None:
        raise Failure(f"{text!r} means nothing to struct, but {ours.text!r} to us")
    if ours.result and size:  # we have no elements of zero bytes
        raise Failure(f"{text!r} has {size} bytes, but is refused at {ours.format.error_at}")
    if ours.result:
        return False
    if ours.format.itemsize != size:
        raise Failure(f"{text!r} has {size} bytes, not {ours.format.itemsize}: {ours.text!r}")
    again = Parsed(library, ours.text)
    if again.result or again.text != ours.text or again.format.itemsize != size:
        raise Failure(f"{text!r} becomes {ours.text!r}, which becomes {again.text!r}")
    return True


def check_offsets(library, text):
    """Checks that the bytes to which struct writes are those of the components."""
    values = []
    ours = Parsed(library, text)
    for component in ours.components[: ours.format.n_components]:
        kind = component.dtype & ~SWAPPED
        is_text = kind in (16, 18)
        one = b"\xff" * (component.itemsize if is_text else 1)
        values += [one if is_text else True if kind == 15 else None] * component.repeat
    if None in values:
        return False
    packed = struct.pack(text, *values)
    written = set()
    for component in ours.components[: ours.format.n_components]:
        written.update(
            range(component.offset, component.offset + component.itemsize * component.repeat)
        )
    if written != {i for i, byte in enumerate(packed) if byte}:
        raise Failure(f"{text!r}: struct writes to other bytes than {sorted(written)}")
    return True


def struct_formats(library, rng):
    n_parsed = n_offsets = 0
    for i in range(N_STRUCT):
        text = struct_text(rng)
        n_parsed += check_struct(library, text)
        if i % 4 == 0:
            text = rng.choice(["@", "="]) + "".join(
                rng.choice(["x", "2x", "c", "3s", "0i", "0q", "?"]) for _ in range(5)
            )
            if struct_size(text) and Parsed(library, text).result == 0:
                n_offsets += check_offsets(library, text)
    print(f"{N_STRUCT} formats of struct, {n_parsed} of them right; offsets of {n_offsets}")
    if n_parsed < N_STRUCT / 2 or n_offsets < N_STRUCT / 20:
        raise Failure("too few of them are right")


# --- numpy ------------------------------------------------------------------

# Types that numpy exports and we have no format for, and why.
EXCLUDED = {
    "O": "an address means nothing in another process",
    "U": "its letter w is not of PEP 3118 as it was accepted",
    "V": "bytes without a type are padding here, which has no name",
    "G": "there is no complex long double",
    "M": "numpy itself refuses to export times",
    "m": "numpy itself refuses to export times",
}
KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "?", "S1"]


def numpy_dtype(np, rng, depth):
    pick = rng.random()
    if depth and pick < 0.4:
        n = rng.randint(1, 5)
        fields = []
        for i in range(n):
            inner = numpy_dtype(np, rng, depth - 1)
            name = rng.choice(["a", "b field ", "x_", "Z"]) + str(i)
            shape = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
            fields.append((name, inner, shape) if rng.random() < 0.25 else (name, inner))
        return np.dtype(fields, align=rng.random() < 0.5)
    if pick < 0.5:
        return np.dtype(f"S{rng.randint(1, 9)}")
    if pick < 0.55:
        return np.dtype(np.longdouble)
    return np.dtype(rng.choice(["<", ">", "="]) + rng.choice(KINDS))


def numpy_fields(dtype, offset, depth):
    """Yields (offset, itemsize, shape, depth, name) of each field; a struct comes before its own
    fields."""
    if dtype.names is None:
        return
    for name in sorted(dtype.names, key=lambda n: dtype.fields[n][1]):
        inner, at = dtype.fields[name][:2]
        base, shape = inner.base, inner.shape
        yield (offset + at, base.itemsize, shape, depth, name)
        yield from numpy_fields(base, offset + at, depth + 1)


def numpy_reads(text, dtype):
    """Returns whether numpy reads the text as this dtype."""
    try:
        from numpy._core._internal import _dtype_from_pep3118
    except ImportError:  # before numpy 2
        from numpy.core._internal import _dtype_from_pep3118
    try:
        back = _dtype_from_pep3118(text)
    except ValueError:
        return False
    return back.itemsize == dtype.itemsize and list(numpy_fields(back, 0, 0)) == list(
        numpy_fields(dtype, 0, 0)
    )


def check_numpy(np, library, dtype):
    """Checks one dtype. Returns False if numpy cannot read its own text."""
    text = memoryview(np.zeros(2, dtype=dtype)).format
    if not numpy_reads(text, dtype):  # numpy pads a nested, aligned struct twice at its end
        return False
    ours = Parsed(library, text)
    if ours.result:
        raise Failure(f"{dtype!r}: {text!r} is refused at {ours.format.error_at}")
    if ours.format.itemsize != dtype.itemsize:
        raise Failure(f"{dtype!r}: {text!r} has {ours.format.itemsize} bytes")
    if not numpy_reads(ours.text, dtype):
        raise Failure(f"{dtype!r}: canonical {ours.text!r} is something else to numpy")
    if dtype.names is None:
        if bool(ours.format.dtype & SWAPPED) == dtype.isnative:
            raise Failure(f"{dtype!r}: {text!r} has the wrong byte order")
        return True
    got = [
        (c.offset, c.itemsize, tuple(c.shape[: c.ndim]), c.depth, c.name.decode())
        for c in ours.components[: ours.format.n_components]
    ]
    wanted = list(numpy_fields(dtype, 0, 0))
    if got != wanted:
        raise Failure(f"{dtype!r}: {text!r} means {got}, not {wanted}")
    return True


def numpy_formats(library, rng):
    try:
        import numpy as np
    except ImportError:
        print("no numpy: its formats are not tried")
        return
    n = n_left_out = 0
    for _ in range(N_NUMPY):
        dtype = numpy_dtype(np, rng, 3)
        if len(list(numpy_fields(dtype, 0, 0))) > MAX_COMPONENTS:
            continue
        tried = check_numpy(np, library, dtype)
        n += tried
        n_left_out += not tried
    for kind, why in EXCLUDED.items():
        print(f"left out, {kind}: {why}")
    print(f"left out, {n_left_out} dtypes: numpy does not read its own text as what it was")
    print(f"{n} dtypes of numpy {np.__version__}")
    if n < N_NUMPY / 2:
        raise Failure("too few of them")


def main():
    seed = int(os.environ.get("SHMVIEW_SEED", "1"), 0)
    print(f"seed {seed}")
    library = load()
    struct_formats(library, random.Random(seed))
    numpy_formats(library, random.Random(seed))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")
