# SPDX-License-Identifier: Apache-2.0
"""Converts layouts from the forms that users write to the arguments of Segment._define().

A layout is a dict of views, a list of (name, format, shape, offset), or a structured dtype of numpy,
whose fields are the views. A view is one of

    'f4'                            one element
    ('f4', 1000)  ('f4', (10, 10))  an array
    ('f4', 1000, 64)                an array that begins at byte 64
    {'format': 'f4', 'shape': (10, 10), 'strides': (4, 40), 'offset': 0, 'readonly': True}

A view without an offset follows the view before it, at the next multiple of its element's alignment.
The first view begins at byte 0. So the layouts of a segment overlap, like the members of a union in
C."""

from operator import index

from . import _core


def _numbers(value):
    try:
        return (index(value),)  # a view or an array of numpy refuses this unless it is one number
    except TypeError:
        return tuple(value)


def _split_dtype(format):
    """Splits a dtype of numpy that has a shape into a plain dtype and the shape."""
    part = getattr(format, "subdtype", None)
    return part if part else (format, ())


def _fields(dtype):
    for name in dtype.names:
        format, offset = dtype.fields[name][:2]
        base, shape = _split_dtype(format)
        yield name, {"format": base, "shape": shape, "offset": offset}


def _views(layout):
    """Returns the views of a layout in any form, as pairs of a name and a view."""
    if getattr(layout, "names", None) and hasattr(layout, "fields"):
        return list(_fields(layout))
    if hasattr(layout, "items"):
        return list(layout.items())
    pairs = []
    for row in layout:
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) not in (2, 3, 4):
            raise TypeError("a layout is a dict of views, as in float={'A': ('f4', 1000)}, or a list of "
                            f"(name, format, shape, offset), and not {layout!r}")
        pairs.append((row[0], tuple(row[1:])))
    return pairs


_KEYS = {"format", "shape", "offset", "strides", "suboffsets", "readonly"}


def _parts(name, view):
    if hasattr(view, "items"):
        unknown = set(view) - _KEYS
        if unknown or "format" not in view:
            raise TypeError(f"view '{name}': the keys are {', '.join(sorted(_KEYS))}, 'format' must "
                            f"be there; unknown: {', '.join(sorted(map(str, unknown))) or 'none'}")
        return dict(view)
    if isinstance(view, tuple):
        if not 1 <= len(view) <= 3:
            raise TypeError(f"view '{name}': (format, shape, offset), not {view!r}")
        return dict(zip(("format", "shape", "offset"), view))
    return {"format": view}


def resolve(layout):
    """Returns the views of a layout as Segment._define() takes them, and the number of bytes up to
    the end of the last one."""
    resolved, at, end = [], 0, 0
    for name, view in _views(layout):
        parts = _parts(name, view)
        base, inner = _split_dtype(parts["format"])
        format, itemsize, align = _core.format_size(base)
        shape = _numbers(parts.get("shape", ())) + tuple(inner)
        strides = parts.get("strides")
        strides = None if strides is None else _numbers(strides)
        suboffsets = parts.get("suboffsets")
        offset = parts.get("offset")
        if offset is None:
            offset = -(-at // align) * align
        at = offset + _reach(shape, strides, itemsize)
        end = max(end, at)
        resolved.append((name, format, offset, shape, strides,
                         None if suboffsets is None else _numbers(suboffsets),
                         bool(parts.get("readonly", False))))
    return tuple(resolved), end


def _reach(shape, strides, itemsize):
    """Returns the number of bytes from the beginning of element [0, ..., 0] to the end of the last
    element."""
    if 0 in shape:
        return 0
    if strides is None:
        for n in shape:
            itemsize *= n
        return itemsize
    return itemsize + sum(max(0, (n - 1) * step) for n, step in zip(shape, strides))


def collect(layouts, more):
    """Resolves the layouts of the argument layouts= and those given by keyword. Returns a dict of
    them, and the number of bytes that they need."""
    both = dict(layouts or {})
    for name in more:
        if name in both:
            raise TypeError(f"layout '{name}' is there twice")
    both.update(more)
    resolved = {name: resolve(layout) for name, layout in both.items()}
    end = max((end for _, end in resolved.values()), default=0)
    return {name: views for name, (views, _) in resolved.items()}, end


def names(resolved):
    """Returns a dict that maps the name of each view to the list of layouts that have it."""
    known = {}
    for layout, views in resolved.items():
        for view in views:
            known.setdefault(view[0], []).append(layout)
    return known


def define(segment, layouts=None, **more):
    """Implements Segment.define()."""
    resolved, _ = collect(layouts, more)
    for layout, views in resolved.items():
        segment._define(layout, views)
        known = {name: list(old) for name, old in (segment._layouts or {}).items()}
        for view in views:
            known.setdefault(view[0], []).append(layout)
        segment._layouts = known
