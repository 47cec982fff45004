# SPDX-License-Identifier: Apache-2.0
"""plot: lines and images of characters, colours on a terminal, and PNG files, which this module
decodes."""

import os
import re
import struct
import subprocess
import zlib

import numpy
import pytest

from arrays import arrays, create, on_terminal
from conftest import CTL


def small(ctl, target, *options, **env):
    return ctl("plot", *options, target, env={"COLUMNS": "33", **env}).out


def test_a_line(ctl, directory):
    create(ctl, directory, "a", numpy.arange(41.0))
    assert small(ctl, "a", "--height", "6") == (
        "        40 ┤               ⣀⣠⠴⠒⠋\n"
        "           │          ⣀⡤⠴⠒⠋⠁    \n"
        "           │    ⢀⣀⡤⠖⠚⠉⠁         \n"
        "         0 ┤⣠⠤⠖⠋⠉               \n"
        "           └────────────────────\n"
        "            0                 40\n")


def test_a_line_in_ascii(ctl, directory):
    create(ctl, directory, "a", numpy.array([0, 1, numpy.nan, 3, 3]))
    out = small(ctl, "a", "--height", "6", LC_ALL="C")
    assert out.isascii()
    rows = [line[12:] for line in out.splitlines()[:4]]
    assert rows[0].rstrip().endswith("******") and rows[3].startswith("*")
    assert all(row[9:13].strip() == "" for row in rows), "a gap where nothing is a number"


def test_many_elements_show_their_extremes(ctl, directory):
    array = numpy.zeros(100000)
    array[50000] = 1
    create(ctl, directory, "a", array)
    out = small(ctl, "a", "--height", "6").splitlines()
    assert sum(c not in " " for c in out[0][12:]) == 1, "one of them is seen"
    assert all(c not in " " for c in out[3][12:])


@pytest.mark.parametrize("array", [numpy.array([5.0]), numpy.array([2, 2, 2]),
                                   numpy.array([1.7e308, -1.7e308]), numpy.array([[3]]),
                                   numpy.array([True, False]), numpy.zeros((1, 500)),
                                   numpy.zeros((500, 1)), numpy.arange(6, dtype=">i2").reshape(2, 3)])
def test_what_is_strange(ctl, directory, tmp_path, array):
    create(ctl, directory, "a", array)
    lines = small(ctl, "a").splitlines()
    assert lines and all(len(line) <= 33 for line in lines) and len(lines) <= 22
    ctl("plot", "a", "--width", "16", "--height", "4")
    ctl("plot", "a", "-o", tmp_path / "a.png", "--width", "16", "--height", "16")
    ctl("plot", "a", "-o", tmp_path / "a.png")


def test_an_image_in_shades(ctl, directory):
    array = numpy.zeros((4, 8))
    array[:2, :4] = 1
    array[2:, 4:] = numpy.nan
    create(ctl, directory, "a", array)
    assert small(ctl, "a", "--height", "4") == (
        "         0 ████····\n"
        "         3 ····    \n"
        "           0      7\n"
        "           0 ····░░░▒▒▒▒▓▓▓████ 1\n")
    assert small(ctl, "a", "--height", "4", LC_ALL="C").splitlines()[:2] == [
        "         0 @@@@....", "         3 ....    "]


def test_colours_on_a_terminal_only(ctl, directory):
    create(ctl, directory, "a", numpy.array([[0.0, 1], [1, 0]]))
    assert "\033" not in ctl("plot", "a").out
    true = on_terminal(ctl, "plot", "a", COLORTERM="truecolor")
    assert "\033[38;2;68;1;84m" in true and "\033[48;2;253;231;37m" in true and "▀" in true
    assert re.search("\033\\[38;5;[0-9]+m", on_terminal(ctl, "plot", "a"))
    assert "\033" not in on_terminal(ctl, "plot", "a", NO_COLOR="1")
    assert "\033" not in on_terminal(ctl, "plot", "a", TERM="dumb")


def test_colours_leave_out_what_is_no_number(ctl, directory):
    """Two dots are a character: a dot that is no number has the background of the terminal."""
    nan = numpy.nan
    create(ctl, directory, "a", numpy.array([[0.0, nan, nan, 1], [1, nan, 1, nan]] * 2))
    row = re.search("\033\\[.*", on_terminal(ctl, "plot", "a", "--width", "33", "--height", "4", COLORTERM="truecolor"))[0]
    low, high = "8;2;68;1;84m", "8;2;253;231;37m"
    for each in f"\033[3{low}\033[4{high}▀", "\033[0m ", f"\033[0m\033[3{high}▄", f"\033[3{high}\033[49m▀":
        assert each in row, repr(row)


def pixels(data):
    """Returns width, height and rows of pixels of a PNG with 8 bits a colour and no alpha."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, bits, color = struct.unpack(">IIBB", body[:10])
            assert (bits, color) == (8, 2)
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    raw = zlib.decompress(packed)
    rows, last = [], numpy.zeros(3 * width, "u1")
    for y in range(height):
        kind, *line = raw[y * (3 * width + 1):(y + 1) * (3 * width + 1)]
        row = [0] * (3 * width)
        for i, value in enumerate(line):
            a, b = (row[i - 3] if i > 2 else 0), int(last[i])
            c = int(last[i - 3]) if i > 2 else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (value + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        last = numpy.array(row, "u1")
        rows.append(last.reshape(width, 3))
    return numpy.array(rows)


def has_cairo(ctl, directory):
    create(ctl, directory, "try", numpy.zeros(2))
    done = subprocess.run([CTL, "plot", "try", "-o", "/dev/null"], env=ctl.environment,
                          capture_output=True, text=True)
    return "built without cairo" not in done.stderr


def test_png_of_an_image(ctl, directory, tmp_path):
    if not has_cairo(ctl, directory):
        pytest.skip("built without cairo")
    create(ctl, directory, "a", numpy.array([[0.0, 1], [1, 0]]))
    ctl("plot", "a", "-o", tmp_path / "a.png", "--width", "240", "--height", "160")
    image = pixels((tmp_path / "a.png").read_bytes())
    assert image.shape == (160, 240, 3)
    colors = {tuple(int(c) for c in pixel) for row in image for pixel in row}
    assert (68, 1, 84) in colors and (253, 231, 37) in colors and (255, 255, 255) in colors
    box = image[36:36 + 80, 80:80 + 60]
    assert tuple(box[2, 2]) == (68, 1, 84) and tuple(box[2, -3]) == (253, 231, 37)
    piped = ctl("plot", "a", "-o", "-", "--width", "240", "--height", "160", binary=True).out
    assert piped == (tmp_path / "a.png").read_bytes()


def test_png_of_a_line(ctl, directory, tmp_path):
    if not has_cairo(ctl, directory):
        pytest.skip("built without cairo")
    create(ctl, directory, "a", numpy.array([0.0, 1, 1, 0, 0]))
    ctl("plot", "a", "-o", tmp_path / "a.png", "--width", "240", "--height", "160")
    image = pixels((tmp_path / "a.png").read_bytes()).astype(int)
    blue = image[..., 2] - image[..., 0] > 60
    assert blue.any() and not blue[:30].any() and not blue[130:].any()
    assert blue[30:45].any() and blue[115:130].any(), "it reaches from the top to the bottom"


def test_files_that_cannot_be_written(ctl, directory, tmp_path):
    if not has_cairo(ctl, directory):
        pytest.skip("built without cairo")
    create(ctl, directory, "a", numpy.zeros(4))
    ctl("plot", "a", "-o", tmp_path / "no" / "a.png", status=1, err="No such file or directory")
    ctl("plot", "a", "-o", "/dev/full", status=1, err="No space left on device")
    assert os.listdir(tmp_path) == []


def test_refused(ctl, directory):
    create(ctl, directory, "cube", numpy.zeros((2, 2, 2)))
    ctl("plot", "cube", status=1, err="has 3 dimensions, but a picture has one or two: name a part")
    assert ctl("plot", "cube/array[0]").out
    create(ctl, directory, "scalar", numpy.array(1.0))
    ctl("plot", "scalar", status=1, err="has 0 dimensions")
    create(ctl, directory, "empty", numpy.zeros((0, 3)))
    ctl("plot", "empty", status=1, err="has no elements")
    create(ctl, directory, "nan", numpy.array([numpy.nan, numpy.inf]))
    ctl("plot", "nan", status=1, err="has no finite number")
    create(ctl, directory, "text", arrays()["text"])
    ctl("plot", "text", status=1, err="not real numbers")
    ctl("plot", "cube", "--width", "3", status=2, err="'3' is not a number from 16")
    ctl("plot", "nothing", status=4, err="no segment 'nothing'")


def test_a_view_of_another_phase(ctl):
    ctl("create", "demo", "--layout", "x: A=f4[4]", "--layout", "y: C=i4")
    ctl("switch", "demo", "y")
    ctl("plot", "demo/A", status=1, err="view 'A' is of layout 'x'")
