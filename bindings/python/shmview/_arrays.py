# SPDX-License-Identifier: Apache-2.0
"""array(), zeros(), ones(), empty(), full() and attach_array(): a segment with one array, in one call.

The array is the view 'array' of the layout 'array'. So a program in any language can open it, and a
segment that another program made is opened by attach_array() as well, if it has only one view."""

import time

from . import _core
from ._layouts import _numbers, _split_dtype, resolve
from ._open import attach, create

_NAME = "array"
_ACCESS = {"mode", "owner", "group", "entries", "backing", "own_memory"}
_OF_SCALAR = {bool: "?", int: "q", float: "d", complex: "Zd"}


def _strides(shape, itemsize):
    """Returns the strides in Fortran order."""
    strides = []
    for n in shape:
        strides.append(itemsize)
        itemsize *= n
    return tuple(strides)


def zeros(shape, dtype="float64", order="C", *, name=None, lifetime="attached", lock=True, connection=None, **access):
    """Creates a segment with an array of zeros, and returns a View of it. view.array is the array of
    numpy, and view.segment the Segment, which has the lock. Another process calls
    attach_array(view.segment.name), or gets the pickled view.

    shape: an int or a tuple of ints. dtype: a format, see Segment.cast(). order: 'C' or 'F'.
    name, lifetime, lock, connection, access (mode, owner, group, entries), backing,
    own_memory: see create().

    Raises the errors of create() and of Segment.cast()."""
    return _new(shape, dtype, order, None, name=name, lifetime=lifetime, lock=lock, connection=connection, **access)


def _new(shape, dtype, order, fill, *, name, lifetime, lock, connection, **access):
    """Implements zeros(), and calls fill(view) if it is not None and the array has elements."""
    base, inner = _split_dtype(dtype)
    shape = _numbers(shape) + tuple(inner)
    if not _ACCESS.issuperset(access):
        raise TypeError(f"unknown options: {', '.join(sorted(set(access) - _ACCESS))}")
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    strides = _strides(shape, _core.format_size(base)[1]) if order == "F" and 0 not in shape else None
    layout = {_NAME: {"format": base, "shape": shape, "strides": strides}}
    size = resolve(layout)[1] or 1  # a segment has at least one byte
    segment = create(name, size, lifetime=lifetime, lock=lock, connection=connection, **access)
    view = None
    try:
        # Another process can find the array only while the lock is held. Otherwise it could read the
        # elements under the lock before they are there.
        if lock:
            segment.lock()
        try:
            segment.define({_NAME: layout})
            view = segment.view(_NAME, _NAME)
            if fill is not None and view.nbytes:
                fill(view)
        finally:
            if lock:
                segment.unlock()
    except BaseException:
        segment.remove()
        if view is not None:
            view.release()
        segment.close()
        raise
    return view


def empty(shape, dtype="float64", order="C", *, name=None, lifetime="attached", lock=True, connection=None, **access):
    """Like zeros(): new memory is always zero."""
    return zeros(shape, dtype, order, name=name, lifetime=lifetime, lock=lock, connection=connection, **access)


def full(shape, fill_value, dtype=None, order="C", *, name=None, lifetime="attached", lock=True, connection=None,
         **access):
    """Like zeros(), but each element is fill_value, an element or an array that numpy repeats to the
    shape. dtype: None stands for the type of fill_value.

    Raises ConversionError if an element of the dtype cannot represent fill_value."""
    is_scalar = type(fill_value) in _OF_SCALAR
    if not is_scalar:
        import numpy
        fill_value = numpy.asarray(fill_value)
    if dtype is None:
        dtype = _OF_SCALAR[type(fill_value)] if is_scalar else fill_value.dtype

    def fill(view):
        if is_scalar:
            view.fill(fill_value)
        elif fill_value.dtype.kind == "O" or numpy.can_cast(fill_value.dtype, view.array.dtype):
            view.array[...] = fill_value
        else:  # numpy would store other values without an error
            (view if view.ndim else view.reshape(1))[:] = numpy.broadcast_to(fill_value, view.shape or 1)
    return _new(shape, dtype, order, fill, name=name, lifetime=lifetime, lock=lock, connection=connection, **access)


def ones(shape, dtype="float64", order="C", *, name=None, lifetime="attached", lock=True, connection=None, **access):
    """Like zeros(), but each element is 1."""
    return full(shape, 1, dtype, order, name=name, lifetime=lifetime, lock=lock, connection=connection, **access)


def array(a, dtype=None, order="C", *, name=None, lifetime="attached", lock=True, connection=None, **access):
    """Like zeros(), but with the shape and a copy of the elements of a.

    a: an array of numpy or a tensor in the memory of the processor; a View, bytes, an array.array or
    another memoryview, without numpy; or all that numpy.asarray() takes, such as nested lists.
    dtype: None stands for the type of a.

    Raises TypeError if the elements are Python objects, which cannot be shared."""
    if isinstance(a, (bytes, bytearray, memoryview)) or type(a).__module__ == "array":
        a = memoryview(a)
    elif not isinstance(a, _core.View):
        import numpy
        a = numpy.asarray(a)
    by_numpy = not isinstance(a, (_core.View, memoryview))  # which converts as numpy.array(a, dtype) does
    if dtype is None:
        dtype = a.dtype if by_numpy else a.format

    def fill(view):
        if by_numpy:
            view.array[...] = a
        else:
            view[slice(None) if a.ndim else ()] = a
    return _new(a.shape, dtype, order, fill, name=name, lifetime=lifetime, lock=lock, connection=connection, **access)


def _views(segment):
    return [(view, layout) for layout, views in segment.layouts.items() for view in views]


def attach_array(name, readonly=False, *, timeout=0, connection=None):
    """Attaches a segment that has one view, as array(), zeros() and similar functions make, and
    returns that View.

    readonly: whether elements can only be read. timeout, connection: see attach(); a timeout also waits
    until the segment has a view. The elements are there when the lock is free.

    Raises LookupError if the segment has no view or several: then use attach() and Segment.view().
    Raises the errors of attach()."""
    end = None if timeout is None else time.monotonic() + timeout
    segment = attach(name, readonly, timeout=timeout, connection=connection)
    try:
        views, pause = _views(segment), 0.001
        while not views and (end is None or time.monotonic() < end):  # its creator has yet to declare one
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
            views = _views(segment)
        if len(views) != 1:
            several = ", ".join(f"{view!r} of {layout!r}" for view, layout in views)
            raise LookupError(f"the segment {name!r} has {len(views)} views ({several or 'none'}): "
                              "use attach() and Segment.view()")
        return segment.view(*views[0])
    except BaseException:
        segment.close()
        raise
