# SPDX-License-Identifier: Apache-2.0
"""repr() of a View: one line about the view, and its elements as numpy prints an array. Of a large
view only a few elements at the edges are read. Needs no numpy."""

import reprlib
import struct

_ALL = 1000  # elements; a view of more is shortened
_EDGE = 3  # items at each end of a shortened dimension
_WIDTH = 88
_LARGEST = 4096  # bytes of an element that is read

_short = reprlib.Repr()
_short.maxtuple = _short.maxlist = 2 * _EDGE
_short.maxlevel = 4
_short.maxstring = _short.maxother = 60


def text(view):
    """Implements repr(view)."""
    brief = view._brief()
    return brief if view.stale else f"{brief[:-1]}:{_elements(view)}>"


def _elements(view):
    """Returns the elements as a text that follows a colon; or the reason why they cannot be read."""
    try:
        while view.format.startswith("("):  # an array in each element adds its dimensions
            view = view.field(None)
        if view.itemsize > _LARGEST:
            return f" elements of {view.itemsize} bytes"
        chosen = [_chosen(n, edge) for n, edge in zip(view.shape, _edges(view))]
        rows = _texts(view, chosen, (), _writer(view.format))
    except Exception as e:  # a stored offset of a row may lead out of the segment, another process may switch
        return f" {type(e).__name__}: {e}"
    aligned = view.format[-1] not in "}spc"  # numbers
    body = _join(rows, view.ndim, _width(rows) if aligned else 0)
    return f" {body}" if "\n" not in body else f"\n{body}"


def _edges(view):
    """Returns for each dimension how many items are shown at each end; None: all of them."""
    if view.size <= _ALL:
        return [None] * view.ndim
    edge = _EDGE if view.ndim <= 3 else 1
    return [edge if n > 2 * edge else None for n in view.shape]


def _chosen(n, edge):
    """Returns the indices that are shown. None stands for those that are left out."""
    return range(n) if edge is None else [*range(edge), None, *range(n - edge, n)]


def _texts(view, chosen, index, write):
    """Returns the elements as texts, in nested lists."""
    if len(index) == len(chosen):
        return write(view[index])
    return ["..." if i is None else _texts(view, chosen, index + (i,), write) for i in chosen[len(index)]]


def _writer(format):
    """Returns the function that writes an element. A short float gets only as many digits as it
    takes to tell it from its neighbours, and not those of the double that Python makes of it."""
    letter = format.lstrip("<>=^@")
    if letter in ("e", "f"):
        return lambda x: _shortest(x, letter, 3 if letter == "e" else 6)
    if letter == "Zf":
        return lambda z: f"({_shortest(z.real, 'f', 6)}{_shortest(z.imag, 'f', 6, '+')}j)"
    return lambda x: _short.repr(x) if isinstance(x, (bytes, tuple, list)) else repr(x)


def _shortest(x, letter, digits, sign=""):
    if x != x or x in (float("inf"), float("-inf")):
        return f"{x:{sign}}"
    for n in range(digits, digits + 3):
        short = float(f"{x:.{n}g}")
        try:
            if struct.unpack(letter, struct.pack(letter, short)) == (x,):
                break
        except OverflowError:  # rounding to so few digits led beyond the largest number
            pass
    else:
        short = x
    return f"{'+' if sign and repr(short)[0] != '-' else ''}{short!r}"


def _width(rows):
    """Returns the length of the longest text, so that columns can be aligned."""
    if isinstance(rows, str):
        return 0 if rows == "..." else len(rows)
    return max(map(_width, rows), default=0)


def _join(rows, ndim, width, depth=0):
    """Returns nested lists of texts as numpy prints them: a row on a line, or on several if it is
    long, and an empty line between matrices."""
    if isinstance(rows, str):
        return rows
    indent = " " * (depth + 1)
    if depth < ndim - 1:
        gap = "," + "\n" * (ndim - 1 - depth) + indent
        return f"[{gap.join(_join(row, ndim, width, depth + 1) for row in rows)}]"
    lines, line = [], ""
    for i, item in enumerate(rows):
        item = (item if item == "..." else item.rjust(width)) + "," * (i + 1 < len(rows))
        if line and depth + 2 + len(line) + len(item) > _WIDTH:
            lines.append(line)
            line = ""
        line += (" " if line else "") + item
    return f"[{(chr(10) + indent).join([*lines, line])}]"
