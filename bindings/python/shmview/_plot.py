# SPDX-License-Identifier: Apache-2.0
"""The figures of a view's numbers, and for one dimension a small plot, for View._repr_html_(). Both
come from summary(), so that no element becomes an object of Python."""

from math import isfinite

from ._errors import Error

_WIDTH, _HEIGHT = 240, 48  # pixels; a column of pixels has the least and the greatest of its elements
_LARGEST = 1 << 27  # bytes: to read more would take longer than a cell should
_COLOUR = "#48c"  # legible on a light and on a dark page


def of_view(view):
    """Returns the HTML, or "" if the elements are no real numbers or are too many."""
    try:
        if not 0 < view.nbytes <= _LARGEST:
            return ""
        figures = view.summary()
        if figures.n == figures.n_nan:
            return ""
        plot = _draw(view, figures) if view.ndim == 1 and view.shape[0] > 1 else ""
    except (Error, ValueError, TypeError):  # no numbers; or it is released, or stale
        return ""
    return f"<p>{_text(figures)}</p>{plot}"


def _text(figures):
    mean = figures.sum / (figures.n - figures.n_nan)
    text = f"least {figures.min:.6g}, greatest {figures.max:.6g}, mean {mean:.6g}"
    return f"{text}, {figures.n_nan} NaN" if figures.n_nan else text


def _draw(view, figures):
    """Returns the plot: for each column a line from its least to its greatest element, and on to the
    next column."""
    span = figures.max - figures.min
    if not isfinite(span):  # an infinity, or a range that a float cannot hold
        return ""
    n, columns = view.shape[0], min(view.shape[0], _WIDTH)
    points, pen = [], "M"
    for c in range(columns):
        part = view[n * c // columns:n * (c + 1) // columns].summary()
        if part.n == part.n_nan:
            pen = "M"
            continue
        x = (c + 0.5) * _WIDTH / columns
        for value in (part.max, part.min):
            y = (1 - (min(max(value, figures.min), figures.max) - figures.min) / span if span else 0.5) * _HEIGHT
            points.append(f"{pen}{x:.1f} {y:.1f}")
            pen = "L"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -1 {_WIDTH} {_HEIGHT + 2}" width="{2 * _WIDTH}" '
            f'height="{2 * _HEIGHT + 4}" role="img" style="max-width:100%"><path d="{"".join(points)}" fill="none" '
            f'stroke="{_COLOUR}"/></svg>')
