# SPDX-License-Identifier: Apache-2.0
"""Converts the formats that users may pass (types of Python, numpy and ctypes) to texts that
libshmview parses. numpy is not imported here unless the caller passes one of its types."""

import sys

_NATIVE = "<" if sys.byteorder == "little" else ">"
_BASIC = {float: "d", int: "q", bool: "?", complex: "Zd", bytes: "B"}


def format_text(format):
    """Returns the format as a text. format is a str, a type of Python, a dtype or scalar type of
    numpy, or a type of ctypes. The extension module calls it for all but plain texts."""
    if isinstance(format, str):
        # A short name of numpy without a mark has the byte order of the machine.
        if format[:1].isalpha() and format[1:].isdigit():
            return ("|" if format[1:] == "1" or format[0] == "S" else _NATIVE) + format
        return format
    if isinstance(format, type) and format in _BASIC:
        return _BASIC[format]
    if isinstance(format, type) and hasattr(format, "from_buffer"):
        return _of_ctypes(format)
    where = format if isinstance(format, type) else type(format)
    if where.__module__.partition(".")[0] == "numpy":
        import numpy
        return memoryview(numpy.empty(1, format)).format
    raise TypeError(f"no format: {format!r}; a text of PEP 3118, a dtype or a type of ctypes")


def _of_ctypes(kind):
    """Returns the format of a type of ctypes. Walks structs itself, because the format that ctypes
    reports lacks the padding in some versions."""
    import ctypes
    if isinstance(kind, type(ctypes.Array)):
        return f"({kind._length_}){_of_ctypes(kind._type_)}"
    if not isinstance(kind, type(ctypes.Structure)):
        return _refuse(kind) if isinstance(kind, type(ctypes.Union)) else memoryview(kind()).format
    text, at = "T{", 0
    for name, member, *bits in _fields(kind):
        place = getattr(kind, name)
        if bits:
            _refuse(kind)
        text += f"{place.offset - at}x" * (place.offset > at) + f"{_of_ctypes(member)}:{name}:"
        at = place.offset + place.size
    return text + f"{ctypes.sizeof(kind) - at}x" * (ctypes.sizeof(kind) > at) + "}"


def _fields(kind):
    for base in reversed(kind.__mro__):
        yield from base.__dict__.get("_fields_", ())


def _refuse(kind):
    raise TypeError(f"no format for {kind.__name__}: unions and bit fields have none")
