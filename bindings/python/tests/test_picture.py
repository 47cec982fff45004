# SPDX-License-Identifier: Apache-2.0
"""_repr_html_() of segments and views: the picture is valid XML of limited size, shows the views of
the current layout at their places, and escapes the names."""

import re
import xml.etree.ElementTree as xml

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
SVG = "{http://www.w3.org/2000/svg}"
THIS = "#e80c"


@pytest.fixture
def seg(daemon):
    return shmview.create("seg", 7200, floats={"A": ("f4", 450), "B": ("f4", (10, 45))}, ints={"D": ("i4", 900)})


def picture(thing):
    """Returns the text above the picture, the texts in it, and its bars: title, x, width, colour."""
    root = xml.fromstring(f"<div>{thing._repr_html_()}</div>")
    svg = root.find(SVG + "svg")
    if svg is None:
        return root.find("pre").text, [], []
    bars = [(g.find(SVG + "title").text, *(float(g.find(SVG + "rect").get(name)) for name in ("x", "width")),
             g.find(SVG + "rect").get("fill")) for g in svg.iter(SVG + "g")]
    assert max(float(rect.get("y")) + float(rect.get("height")) for rect in svg.iter(SVG + "rect")) \
        <= float(svg.get("height"))
    return root.find("pre").text, [text.text for text in svg.iter(SVG + "text")], bars


def test_segment(seg):
    text, texts, bars = picture(seg)
    assert text == repr(seg) and texts == ["0", "7200 bytes", "layout floats", "A", "B", "layout ints", "D"]
    assert [bar[1:3] for bar in bars] == [(0, 720), (0, 180), (180, 180), (0, 360)]
    assert bars[2][0] == "B: format 'f', shape (10, 45), bytes 1800 to 3600"
    with seg.locked():
        seg.switch("ints")
    assert picture(seg)[1] == ["0", "7200 bytes", "layout ints, current", "D"]
    seg.close()
    assert picture(seg) == (repr(seg), [], [])


def test_view(seg):
    view = seg.view("B", "floats")
    text, texts, bars = picture(view)
    assert text == repr(view)
    assert [bar[0][0] for bar in bars if bar[3] == THIS] == ["B"] and len(bars) == 4
    part = view[:, ::-1]
    text, texts, bars = picture(part)
    assert [bar for bar in bars if bar[3] == THIS] == \
        [("this view: format 'f', shape (10, 45), bytes 1800 to 3600", 180, 180, THIS)]
    assert len(bars) == 5
    with seg.locked():
        seg.switch("floats")
        seg.switch("ints")
    stale = seg.view("A", "floats")
    assert stale.stale and "stale" in picture(stale)[0]
    stale.release()
    assert picture(stale) == ("<shmview.View, released>", [], [])


def test_any_view(seg):
    """Pictures of views without bytes, with gaps, with stored rows, and after the end of the segment."""
    for view, begin, end in ((seg.cast("i4", (0, 3), offset=8), 8, 8), (seg.cast("i4", ()), 0, 4),
                             (seg.cast("i4", 3, strides=(-8,), offset=16), 0, 20),
                             (seg.cast("B", (3, 4), strides=(8, 1), suboffsets=(0, -1)), 0, 24)):
        assert f"bytes {begin} to {end}" in next(bar[0] for bar in picture(view)[2] if bar[3] == THIS)
    with seg:
        view = seg.cast("i4", 4, offset=96)
    text, texts, bars = picture(view)
    assert texts[1] == "112 bytes" and len(bars) == 2
    view.release()
    seg = shmview.create("plain", 100, lock=False)
    assert len(picture(seg)[2]) == 1
    seg.remove()
    assert len(picture(seg.buf)[2]) == 2


def test_limits(daemon):
    seg = shmview.create("seg", 7200, many={f"v{i}": ("i4", 4) for i in range(100)})
    html = seg.cast("i4", 1800)._repr_html_()
    assert len(html) < 20000 and html.count("<rect") == 1 + 32 and "and 69 more views" in html
    last = seg.view("v99", "many")._repr_html_()
    assert THIS in last and "v99" in last
    assert len(seg.cast("B", 1000)._repr_html_()) < 20000


def plot(view):
    """Returns the figures below the picture, and the points of the plot as pairs."""
    root = xml.fromstring(f"<div>{view._repr_html_()}</div>")
    figures = [p.text for p in root.iter("p")]
    paths = [path.get("d") for path in root.iter(SVG + "path")]
    return figures, [tuple(map(float, point.split())) for d in paths for point in re.split("[ML]", d)[1:]]


def test_figures_and_a_plot(seg):
    view = seg.cast("f4", 1800)
    view[:] = [i % 100 for i in range(1800)]
    figures, points = plot(view)
    assert figures == ["least 0, greatest 99, mean 49.5"]
    assert len(points) == 2 * 240 and points[1] == (0.5, 48.0)
    assert {y for x, y in points} <= {round(y / 10, 1) for y in range(481)}
    view[3:5] = [float("nan")] * 2
    assert plot(view)[0] == ["least 0, greatest 99, mean 49.5512, 2 NaN"]
    view[0] = float("inf")
    figures, points = plot(view)
    assert figures[0].startswith("least 0, greatest inf") and points == []
    wide = seg.cast("f8", 2)
    wide[:] = [-1e308, 1e308]
    assert plot(wide)[1] == []
    view[:] = [float("nan")] * 1800
    assert plot(view) == ([], [])
    assert plot(seg.cast("i2", 2)[1:]) == (["least 32704, greatest 32704, mean 32704"], [])
    assert plot(seg.cast("i4", (30, 60)))[1] == []
    for other in seg.cast("5s", 3), seg.cast("T{i:a:}", 3), seg.cast("c8", 3), seg.cast("f4", 0):
        assert plot(other) == ([], [])
    ramp = seg.cast("i4", 4)
    ramp[:] = [0, 1, 2, 3]
    assert plot(ramp)[1] == [(x, y) for x, y in ((30, 48), (90, 32), (150, 16), (210, 0)) for _ in range(2)]
    gap = seg.cast("f4", 4)
    gap[:] = [0, float("nan"), 2, 3]
    assert [x for x, y in plot(gap)[1]] == [30, 30, 150, 150, 210, 210]
    assert gap._repr_html_().count("M") == 2  # no line leads over the NaN
    ramp[:] = [7] * 4
    assert {y for x, y in plot(ramp)[1]} == {24}


def test_overlapping_views(daemon):
    seg = shmview.create("seg", 720, one={"a": ("B", 200, 0), "b": ("B", 200, 100), "c": ("B", 200, 200)})
    rows = re.findall(r'<title>(.):.*?y="(\d+)"', seg._repr_html_())
    assert rows == [("a", rows[0][1]), ("c", rows[0][1]), ("b", str(int(rows[0][1]) + 16))]


def test_names_are_escaped(daemon):
    """A field may have any name. libshmview refuses such a name for a view or a layout."""
    name = '<b a="x">&'
    seg = shmview.create("seg", 7200, one={"A": (f"T{{i:{name}:}}", 900)})
    assert name in picture(seg)[2][1][0] and name in picture(seg["A"])[0]
    assert name not in seg._repr_html_() and name not in seg["A"]._repr_html_()
