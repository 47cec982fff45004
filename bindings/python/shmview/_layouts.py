# SPDX-License-Identifier: Apache-2.0
"""Layouts as people write them, and as libshmview wants them.

A layout is a dict of views, a list of (name, format, shape, offset), or a structured dtype of
numpy's, whose fields are the views. A view is

    'f4'                            one element
    ('f4', 1000)  ('f4', (10, 10))  an array
    ('f4', 1000, 64)                that begins at byte 64
    {'format': 'f4', 'shape': (10, 10), 'strides': (4, 40), 'offset': 0, 'readonly': True}

What has no offset follows the view before it, aligned to its element; the first one begins at
byte 0. So the layouts of a segment overlap, like the arms of a union."""

from . import _core


def _numbers(value):
    return (value,) if hasattr(value, "__index__") else tuple(value)


def _split_dtype(format):
    """A dtype of numpy's with a shape of its own, as a plain one and that shape."""
    part = getattr(format, "subdtype", None)
    return part if part else (format, ())


def _fields(dtype):
    for name in dtype.names:
        format, offset = dtype.fields[name][:2]
        base, shape = _split_dtype(format)
        yield name, {"format": base, "shape": shape, "offset": offset}


def _views(layout):
    """Pairs of a name and a view."""
    if getattr(layout, "names", None) and hasattr(layout, "fields"):
        return list(_fields(layout))
    if hasattr(layout, "items"):
        return list(layout.items())
    pairs = []
    for row in layout:
        if isinstance(row, str) or len(row) not in (2, 3, 4):
            raise TypeError(f"a view in a list is (name, format, shape, offset), not {row!r}")
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
    """The views of a layout for Segment._define(), and the byte behind the last one."""
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
    """Bytes from element [0, ..., 0] to the end of the last one."""
    if 0 in shape:
        return 0
    if strides is None:
        for n in shape:
            itemsize *= n
        return itemsize
    return itemsize + sum(max(0, (n - 1) * step) for n, step in zip(shape, strides))


def collect(layouts, more):
    """Those of the argument layouts= and those given by keyword, resolved; and the end of all."""
    both = dict(layouts or {})
    for name in more:
        if name in both:
            raise TypeError(f"layout '{name}' is there twice")
    both.update(more)
    resolved = {name: resolve(layout) for name, layout in both.items()}
    end = max((end for _, end in resolved.values()), default=0)
    return {name: views for name, (views, _) in resolved.items()}, end


def names(resolved):
    """The layouts that have a view of each name."""
    known = {}
    for layout, views in resolved.items():
        for view in views:
            known.setdefault(view[0], []).append(layout)
    return known


def define(segment, layouts=None, **more):
    """What Segment.define() does."""
    resolved, _ = collect(layouts, more)
    for layout, views in resolved.items():
        segment._define(layout, views)
        known = {name: list(old) for name, old in (segment._layouts or {}).items()}
        for view in views:
            known.setdefault(view[0], []).append(layout)
        segment._layouts = known
