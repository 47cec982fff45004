# SPDX-License-Identifier: Apache-2.0
"""_repr_html_() of Segment and View, for notebooks: a picture of the memory, and for a view of numbers
its figures and a small plot (_plot). The bytes of the segment are a bar, and each view is a bar below
it, at its place. The picture is one SVG without scripts, and names in it are escaped."""

from html import escape

from . import _core, _plot
from ._errors import Error

_WIDTH, _HEIGHT = 720, 16  # pixels: of the segment, and of a bar with its gap
_MOST = 32  # views in a picture
_TEXT = 4000  # characters of repr(view)
_SEGMENT, _VIEW, _THIS = "#9995", "#48c8", "#e80c"  # colours that are legible on a light and on a dark page


class _Bar:
    """A view in the picture: its first and last byte, and its facts."""

    def __init__(self, name, format, shape, strides, offset, suboffsets=(), **_):
        self.name = name
        self.facts = format, tuple(shape), tuple(strides), offset
        lowest = highest = offset
        at_rows = [d for d, suboffset in enumerate(suboffsets) if suboffset >= 0]
        # Where the rows of suboffsets lie is stored in the segment: only their offsets have a known place.
        known = at_rows[0] + 1 if at_rows else len(shape)
        if 0 not in shape:
            highest += 8 if at_rows else _core.format_size(format)[1]
            for n, stride in zip(shape[:known], strides):
                lowest += min(0, (n - 1) * stride)
                highest += max(0, (n - 1) * stride)
        self.begin, self.end = lowest, highest

    def draw(self, y, scale, colour):
        x, width = self.begin * scale, max(2, (self.end - self.begin) * scale)
        format, shape, _, _ = self.facts
        title = f"{self.name}: format '{format}', shape {shape}, bytes {self.begin} to {self.end}"
        label = ""
        if width > 7 * len(self.name) + 6:
            label = f'<text x="{x + 4:.1f}" y="{y + 11}">{escape(self.name)}</text>'
        return (f'<g><title>{escape(title)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
                f'height="{_HEIGHT - 2}" fill="{colour}"/>{label}</g>')


def _layouts(segment):
    """Returns the name of the current layout, or None, and a dict of the layouts to show: the current
    one, or all of them before the first phase. Each is a list of bars."""
    try:
        layouts = segment.layouts
    except (Error, ValueError):  # the segment is closed, or its name is removed, or the daemon is away
        return None, {}
    try:
        phase = segment.phase
    except Error:  # a segment without a lock has no phases
        phase = None
    shown = {phase: layouts[phase]} if phase in layouts else layouts
    return phase, {name: [_Bar(view, **facts) for view, facts in views.items()] for name, views in shown.items()}


def _rows(bars):
    """Distributes bars to rows in which none covers another."""
    rows = []
    for bar in sorted(bars, key=lambda bar: (bar.begin, -bar.end)):
        row = next((row for row in rows if row[-1].end <= bar.begin), None)
        if row is None:
            rows.append([bar])
        else:
            row.append(bar)
    return rows


def _draw(segment, this):
    """Returns the picture of a segment. this is the bar of the view to mark, or None."""
    phase, layouts = _layouts(segment)
    bars = [bar for bars in layouts.values() for bar in bars]
    same = {id(bar) for bar in bars if this and bar.facts == this.facts}
    groups = [(f"layout {name}" + (", current" if name == phase else ""), bars) for name, bars in layouts.items()]
    if this and not same:
        groups.insert(0, (None, [this]))
        same = {id(this)}
    try:
        size = segment.size
    except ValueError:  # it is closed: only the view keeps its memory
        size = max([this.end if this else 0] + [bar.end for bar in bars])
    scale, y, left, drawn = _WIDTH / max(size, 1), _HEIGHT, _MOST, []
    drawn.append(f'<g><title>{escape(segment.name)}: {size} bytes</title><rect x="0" y="0" width="{_WIDTH}" '
                 f'height="{_HEIGHT - 2}" fill="{_SEGMENT}"/><text x="4" y="11">0</text>'
                 f'<text x="{_WIDTH - 4}" y="11" text-anchor="end">{size} bytes</text></g>')
    for title, bars in groups:
        # The marked view first, so that it is not among those that are left out.
        bars = sorted(bars, key=lambda bar: id(bar) not in same)[:left]
        left -= len(bars)
        if title and bars:
            drawn.append(f'<text x="4" y="{y + 11}">{escape(title)}</text>')
            y += _HEIGHT
        for row in _rows(bars):
            drawn += [bar.draw(y, scale, _THIS if id(bar) in same else _VIEW) for bar in row]
            y += _HEIGHT
    missing = sum(len(bars) for _, bars in groups) - _MOST
    if missing > 0:
        drawn.append(f'<text x="4" y="{y + 11}">and {missing} more views</text>')
        y += _HEIGHT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}" '
            f'style="max-width:100%;font:11px sans-serif" fill="currentColor">{"".join(drawn)}</svg>')


def of_segment(segment):
    """Implements Segment._repr_html_()."""
    text = f"<pre>{escape(repr(segment))}</pre>"
    return text if segment.closed else text + _draw(segment, None)


def of_view(view):
    """Implements View._repr_html_()."""
    text = repr(view)
    if len(text) > _TEXT:
        text = text[:_TEXT] + "..."
    text = f"<pre>{escape(text)}</pre>"
    try:
        this = _Bar("this view", view.format, view.shape, view.strides, view.offset, view.suboffsets)
    except ValueError:  # it is released
        return text
    return text + _draw(view.segment, this) + _plot.of_view(view)
