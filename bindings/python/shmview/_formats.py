# SPDX-License-Identifier: Apache-2.0
"""Converts the formats that users may pass (types of Python, numpy and ctypes) to texts that
libshmview parses. numpy is not imported here unless the caller passes one of its types."""

import sys

_NATIVE = "<" if sys.byteorder == "little" else ">"
_LETTERS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "b1": "?",
            "f2": "e", "f4": "f", "f8": "d", "c8": "Zf", "c16": "Zd"}
_NAMES = {"float": "d", "double": "d", "single": "f", "int": "l", "uint": "L", "complex": "Zd"}
_BASIC = {float: "d", int: "q", bool: "?", complex: "Zd", bytes: "B"}


def format_text(format):
    """Returns the format as a text. format is a str, a type of Python, a dtype or scalar type of
    numpy, or a type of ctypes. The extension module calls it for all but plain texts."""
    if isinstance(format, str):
        # A short name of numpy without a mark has the byte order of the machine.
        if format[:1].isalpha() and format[1:].isdigit():
            return ("|" if format[1:] == "1" or format[0] == "S" else _NATIVE) + format
        return _NAMES.get(format, format)
    if isinstance(format, type) and format in _BASIC:
        return _BASIC[format]
    if isinstance(format, type) and hasattr(format, "from_buffer"):
        return _of_ctypes(format)
    where = format if isinstance(format, type) else type(format)
    if where.__module__.partition(".")[0] == "numpy":
        import numpy
        return _of_dtype(numpy.dtype(format))
    if format is str:
        raise TypeError("no format for str: share text as bytes, for example as 'S20'")
    raise TypeError(f"no format: {format!r}; a text of PEP 3118, a dtype or a type of ctypes")


def _of_dtype(dtype):
    """Returns the format of a dtype of numpy, with the offsets and the size that the dtype has. Does
    not take the format that numpy exports for a struct: it counts on an alignment that PEP 3118
    does not define, so that a packed struct would get other offsets."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return f"({','.join(map(str, shape))}){_of_dtype(base)}"
    if dtype.names is None:
        return _of_scalar(dtype)
    text, at = "T{", 0
    for name in dtype.names:
        member, offset, *title = dtype.fields[name]
        if title:
            raise ValueError(f"no format for {dtype}: the field {name!r} has a title, which no format can have")
        if offset < at:
            raise ValueError(f"no format for {dtype}: the field {name!r} begins at byte {offset}, before the end of "
                             "an earlier one; a format has its fields in the order of their bytes")
        text += f"{offset - at}x" * (offset > at) + f"{_of_dtype(member)}:{name}:"
        at = offset + member.itemsize
    return text + f"{dtype.itemsize - at}x" * (dtype.itemsize > at) + "}"


def _of_scalar(dtype):
    """Returns the format of a dtype without fields. It has a mark of byte order, so that it keeps
    its size and gets no padding within a struct."""
    import numpy
    kind, size = dtype.kind, dtype.itemsize
    mark = _NATIVE if dtype.isnative else ">" if _NATIVE == "<" else "<"
    if kind == "S" and size:
        return f"{size}s"
    if kind in "iufcb" and dtype.str[1:] in _LETTERS:
        return mark + _LETTERS[dtype.str[1:]]
    if dtype.type in (numpy.longdouble, numpy.clongdouble) and dtype.isnative:
        return "^" + dtype.char.lower() if kind == "f" else "^Zg"
    if kind == "V" and dtype.name[:4] != "void":
        return dtype.name  # of ml_dtypes: libshmview knows bfloat16 and float8 by the same names
    if kind == "U":
        raise TypeError(f"no format for {dtype}: share text as bytes, for example as 'S{size}', with str.encode() and "
                        "bytes.decode()")
    if kind in "mM":
        raise TypeError(f"no format for {dtype}: share it as int64, and use numpy.asarray(view).view({dtype.str!r})")
    raise TypeError(f"no format for {dtype}: numbers, truth values, bytes, arrays and structs of these have one")


def _of_ctypes(kind):
    """Returns the format of a type of ctypes. Walks structs itself, because the format that ctypes
    reports lacks the padding in some versions."""
    import ctypes
    if isinstance(kind, type(ctypes.Array)):
        shape = []
        while isinstance(kind, type(ctypes.Array)):
            shape.append(str(kind._length_))
            kind = kind._type_
        return f"({','.join(shape)}){_of_ctypes(kind)}"
    if not isinstance(kind, type(ctypes.Structure)):
        text = _refuse(kind) if isinstance(kind, type(ctypes.Union)) else memoryview(kind()).format
        return f"^{text[-1]}" if text[-1] in "gP" else text  # they have no standard size
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
