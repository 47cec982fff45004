# SPDX-License-Identifier: Apache-2.0
"""View.dtype, View.array and View.__array__(). numpy is imported at the first use of one of them.

numpy.asarray(view) calls none of them: it uses the buffer of the view. pandas, xarray and others ask
for __array__() and dtype."""


def dtype(view):
    """Implements View.dtype."""
    import numpy
    none = view._none
    try:
        array = numpy.asarray(none)
    except ValueError:
        return _of_ml_dtypes(view.format)
    # numpy turns the array of an element such as '3f' into dimensions.
    return array.dtype if array.ndim == 1 else numpy.dtype((array.dtype, array.shape[1:]))


def _of_ml_dtypes(format):
    if format.startswith(("bfloat16", "float8")):
        try:
            import ml_dtypes
            import numpy
            return numpy.dtype(getattr(ml_dtypes, format))
        except (ImportError, AttributeError):
            advice = ": the package ml_dtypes has one; torch.from_dlpack(view) needs none"
    else:
        advice = ": view.tolist() returns the values"
    raise TypeError(f"numpy has no dtype for format '{format}'{advice}")


class _Untyped:
    """The memory of a view for numpy, as elements without a type."""

    def __init__(self, view):
        self.view = view  # the array keeps this object
        self.__array_interface__ = {"version": 3, "typestr": f"|V{view.itemsize}", "shape": view.shape,
                                    "strides": view.strides, "data": (view.address, view.readonly)}


def same_memory(view):
    """Implements View.array: an array of numpy that shares the bytes of the view."""
    import numpy
    if view.suboffsets:
        raise TypeError("numpy has no arrays with suboffsets: numpy.array(view.tolist()) copies")
    try:
        return numpy.asarray(view)
    except ValueError:
        known = dtype(view)
        return numpy.asarray(_Untyped(view)).view(known)  # numpy does not parse the format of a type of ml_dtypes


def array(view, dtype=None, copy=None):
    """Implements View.__array__(), with the meaning of copy that numpy 2 has: True always copies,
    None only if it must, and False never."""
    import numpy
    if view.suboffsets:
        found, is_copy = numpy.frombuffer(bytearray(view.tobytes()), view.dtype).reshape(view.shape), True
    else:
        found, is_copy = same_memory(view), False
    if copy is False and is_copy:
        raise ValueError("numpy has no arrays with suboffsets, so that it needs a copy, and copy=False forbids one")
    if dtype is not None and numpy.dtype(dtype) != found.dtype:
        if copy is False:
            raise ValueError(f"elements of {found.dtype} become {numpy.dtype(dtype)} only in a copy, and "
                             "copy=False forbids one")
        return found.astype(dtype)
    return found.copy(order="K") if copy and not is_copy else found
