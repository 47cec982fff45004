# SPDX-License-Identifier: Apache-2.0
"""web: segments and views, as lines, images, numbers and histograms, while others write or die; and
changes."""

import io
import json
import math
import os
import struct
import threading
import time

import pytest

from conftest import await_
from webclient import web  # noqa: F401

pytestmark = pytest.mark.skipif("SHMVIEW_WEB" not in os.environ, reason="built without libmicrohttpd")
LAYOUT = "l: a=f4[1000] m=f8[20,30]@4000 c=u1[4,5,3]@8800 s=T{h:x:d:y:}[4]@8864"
AT = "segment=seg&layout=l&view="


@pytest.fixture
def seg(ctl, party):
    """A segment with the layout, and a client that has it attached as `s`."""
    ctl("create", "seg", 16384, "--layout", LAYOUT)
    one = party()
    one.do("s = shmview.attach('seg')")
    return one


def doubles(data):
    return list(struct.unpack(f"={len(data) // 8}d", data))


def test_a_segment(web, ctl, seg):
    server = web().enter()
    got = server.json("/api/segment?name=seg")
    assert (got["size"], got["has_lock"], got["attachments"]) == (16384, 1, 1)
    assert [view["name"] for view in got["layouts"][0]["views"]] == ["a", "m", "c", "s"]
    matrix = got["layouts"][0]["views"][1]
    assert matrix["shape"] == [20, 30] and matrix["strides"] == [240, 8]
    assert (matrix["begin"], matrix["end"], matrix["dtype"]) == (4000, 8800, "float64")
    assert "no segment" in server.error("/api/segment?name=none", status=404)
    server.error("/api/segment")


def test_holders_and_waiters_have_durations(web, ctl, seg, party):
    server = web().enter()
    waiter = party()
    waiter.do("s = shmview.attach('seg')")
    seg.do("s.lock()")
    waiter.begin("s.lock()")

    def both():
        parties = server.json("/api/segment?name=seg")["parties"]
        found = {one["pid"]: one for one in parties if one["holds"] or one["waits"]}
        return found if len(found) == 2 else None
    found = await_(both)
    assert found[seg.pid]["holds"] == 1
    assert found[waiter.pid]["waits"] == 1 and found[waiter.pid]["since_us"] >= 0
    seg.do("s.unlock()")
    waiter.end()
    waiter.do("s.unlock()")


def test_a_line_has_the_extremes_of_its_columns(web, seg):
    seg.do("v = s.view('a', 'l')")
    seg.do("v[:] = [float(i % 100) for i in range(1000)]")
    seg.do("v[555] = float('nan')")
    server = web().enter()
    head, data = server.picture(f"/api/line?{AT}a&columns=10")
    assert (head["n"], head["columns"], head["read"], head["state"]) == (1000, 10, 10, "clean")
    assert doubles(data) == [0.0] * 10 + [99.0] * 10
    head, data = server.picture(f"/api/line?{AT}a&columns=1000")
    values = [float(i % 100) for i in range(1000)]
    for got in doubles(data)[:1000], doubles(data)[1000:]:
        assert math.isnan(got[555])
        got[555] = values[555]
        assert got == values
    # another first column, and a slice with a step
    head, data = server.picture(f"/api/line?{AT}a&columns=4&first=3&slice=0:40:10")
    assert head["first"] == 3 and doubles(data)[:4] == [30.0, 0.0, 10.0, 20.0]
    head, data = server.picture(f"/api/line?{AT}a&columns=3&slice=2::-1")
    assert doubles(data)[:3] == [2.0, 1.0, 0.0]
    # no elements
    head, data = server.picture(f"/api/line?{AT}a&slice=0:0")
    assert head["n"] == 0 and data == b""


def test_a_long_line_comes_in_parts(web, ctl):
    ctl("create", "long", 1 << 24)
    server = web().enter()
    path = "/api/line?segment=long&as=float32&columns=1024&budget=100"
    first, seen, parts = 0, 0, 0
    while seen < 1024:
        head, data = server.picture(f"{path}&first={first}")
        assert head["first"] == first and len(data) == 16 * head["read"] and head["read"] >= 1
        seen += head["read"]
        first = (first + head["read"]) % 1024
        parts += 1
    assert parts > 1, "all of it in 0.1 ms of processor time"


def test_an_image(web, seg):
    seg.do("v = s.view('m', 'l')")
    seg.do("v[:] = [[float(i) for j in range(30)] for i in range(20)]")
    server = web().enter()
    head, data = server.picture(f"/api/image?{AT}m")
    assert (head["rows"], head["columns"], head["min"], head["max"]) == (20, 30, 0, 19)
    assert data[0] == 1 and data[-1] == 255 and len(data) == 600
    # pixels of several elements are means
    head, data = server.picture(f"/api/image?{AT}m&rows=2&columns=1&low=0&high=19&range=1")
    assert (head["min"], head["max"]) == (4.5, 14.5)
    assert [round((b - 1) * 19 / 254, 1) for b in data] == [4.5, 14.5]
    # a scale that is kept; values outside are cut, and NaN is 0
    seg.do("v[0, 0] = float('nan')")
    head, data = server.picture(f"/api/image?{AT}m&low=5&high=6")
    assert data[0] == 0 and data[1] == 1 and data[-1] == 255
    for bound in "inf", "-inf", "nan", "1e999", "", "1x":
        assert "give a finite number" in server.error(f"/api/image?{AT}m&low={bound}&high=6")
    # one channel of three dimensions
    head, data = server.picture(f"/api/image?{AT}c&slice=:,:,0")
    assert head["shape"] == [4, 5]


def test_an_image_in_colours(web, ctl, seg):
    seg.do("v = s.view('c', 'l')")
    seg.do("import numpy; numpy.asarray(v)[:] = (numpy.arange(60) * 3 + 3).reshape(4, 5, 3)")
    server = web().enter()
    every = bytes(range(3, 183, 3))
    head, data = server.picture(f"/api/image?{AT}c&colors=1")
    assert (head["rows"], head["columns"], head["shape"]) == (4, 5, [4, 5, 3])
    assert data == every
    # the other order of rows and columns, and every second one
    head, data = server.picture(f"/api/image?{AT}c&colors=1&slice=::-1,::2")
    rows = [every[15 * i:15 * i + 15] for i in (3, 2, 1, 0)]
    assert data == b"".join(row[6 * k:6 * k + 3] for row in rows for k in range(3))
    # pixels of several elements are means, halves upwards
    head, data = server.picture(f"/api/image?{AT}c&colors=1&rows=2&columns=1")
    assert (head["rows"], head["columns"]) == (2, 1)
    assert list(data) == [int(sum(every[30 * i + k:30 * i + 30:3]) / 10 + 0.5) for i in range(2) for k in range(3)]
    head, data = server.picture(f"/api/image?{AT}c&colors=1&rows=4&columns=2")
    assert list(data) == [int(sum(row[3 * a + k:3 * b:3]) / (b - a) + 0.5)
                          for row in reversed(rows) for a, b in ((0, 2), (2, 5)) for k in range(3)]
    # a long row, which is converted alone
    ctl("create", "wide", 3 * 30000 * 2, "--layout", "l: c=u1[2,30000,3]")
    seg.do("w = shmview.attach('wide')")
    seg.do("numpy.asarray(w.view('c', 'l'))[1, 29700:] = (7, 8, 9)")
    head, data = server.picture("/api/image?segment=wide&layout=l&view=c&colors=1&columns=100")
    assert (head["rows"], head["columns"]) == (2, 100)
    assert data == bytes(3 * 199) + bytes((7, 8, 9))
    for path in (f"{AT}m", f"{AT}c&slice=:,:,:2", f"{AT}c&slice=0", f"{AT}a"):
        assert "colours need" in server.error(f"/api/image?{path}&colors=1")


def test_numbers(web, seg):
    seg.do("v = s.view('a', 'l')")
    seg.do("v[:] = [i / 4 for i in range(1000)]")
    server = web().enter()
    got = server.json(f"/api/grid?{AT}a&row=99&rows=5&wrap=10")
    assert (got["rows"], got["columns"], got["row"]) == (100, 10, 99)
    assert got["cells"] == [[str(i / 4).removesuffix(".0") for i in range(990, 1000)]]
    got = server.json(f"/api/grid?{AT}a&row=3&wrap=300&columns=300")
    assert got["cells"][0].count(None) == 200
    got = server.json(f"/api/grid?{AT}m&row=19&column=29")
    assert got["cells"] == [["0"]]
    got = server.json(f"/api/grid?{AT}s&field=y")
    assert got["format"] == "d" and got["cells"][0] == ["0"] * 4
    got = server.json(f"/api/grid?{AT}s")
    assert got["cells"][0][0] == " ".join(["00"] * 16)
    assert server.json(f"/api/grid?{AT}m&slice=1,2")["cells"] == [["0"]]
    assert server.json("/api/grid?segment=seg&as=S3")["format"] == "3s"
    seg.do("s.view('m', 'l')[0, :2] = [0.1, -0.2]")
    got = server.json("/api/grid?segment=seg&as=complex128&row=25&rows=1")
    assert complex(got["cells"][0][0]) == complex(0.1, -0.2)


def test_a_histogram(web, seg):
    seg.do("v = s.view('m', 'l')")
    seg.do("v[:] = [[float(j) for j in range(30)] for i in range(20)]")
    seg.do("v[0, 0] = float('inf')")
    seg.do("v[0, 1] = float('nan')")
    got = web().enter().json(f"/api/histogram?{AT}m&slice=1:")
    assert (got["n"], got["min"], got["max"], got["nan"]) == (570, 0, 29, 0)
    assert sum(got["counts"]) == 570 and got["counts"][0] == got["counts"][-1] == 19
    got = web().enter().json(f"/api/histogram?{AT}m")
    assert (got["nan"], got["infinite"], got["max"]) == (1, 1, "inf")


def test_integers_that_no_double_holds_are_rounded(web, ctl, party):
    ctl("create", "t", 4096, "--layout", "l: a=i8[10] m=u8[5,2]@80 b=>i8[10]@160")
    one = party()
    one.do("s = shmview.attach('t')")
    one.do(f"s.view('a', 'l')[3] = {-2**53 - 1}; s.view('m', 'l')[4, 1] = {2**64 - 1}; s.view('b', 'l')[3] = {2**53 + 1}")
    server = web().enter()
    for view, least, greatest in ("a", -2**53, 0), ("m&slice=:,1", 0, 2**64), ("b", 0, 2**53):
        at = f"segment=t&layout=l&view={view}"
        assert doubles(server.picture(f"/api/line?{at}&columns=1")[1]) == [least, greatest]
        got = server.json(f"/api/histogram?{at}")
        assert sum(got["counts"]) == got["n"] and got["counts"][0] and got["counts"][-1]
    for columns in 1, 2:
        head, _ = server.picture(f"/api/image?segment=t&layout=l&view=m&columns={columns}")
        assert (head["min"], head["max"]) == (0, 2**64 / (3 - columns))


def test_a_histogram_of_a_narrow_range(web, seg):
    seg.do("s.view('m', 'l')[0, :2] = [0, 1e-308]")
    got = web().enter().json(f"/api/histogram?{AT}m&slice=0,:2")
    assert (got["counts"][0], got["counts"][-1], sum(got["counts"])) == (1, 1, 2)
    seg.do("s.view('m', 'l')[0, :2] = [-1.7e308, 1.7e308]")
    assert web().enter().json(f"/api/histogram?{AT}m&slice=0,:3")["counts"][32] == 1


def test_a_download(web, seg):
    numpy = pytest.importorskip("numpy")
    seg.do("v = s.view('m', 'l')")
    seg.do("v[:] = [[i + j / 8 for j in range(30)] for i in range(20)]")
    server = web().enter()
    answer = server.ask(f"/api/npy?{AT}m&slice=::-2,3:7")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="seg-m.npy"'
    got = numpy.load(io.BytesIO(answer.bytes))
    assert got.dtype == "<f8" and got.tolist() == [[i + j / 8 for j in range(3, 7)] for i in range(19, 0, -2)]
    for format_, dtype in (">i2", ">i2"), ("c8", "<c8"), ("bool", "|b1"), ("uint8", "|u1"):
        got = numpy.load(io.BytesIO(server.ask(f"/api/npy?segment=seg&as={format_}").bytes))
        assert got.dtype.str == dtype and got.nbytes == 16384
    assert numpy.load(io.BytesIO(server.ask(f"/api/npy?{AT}a&slice=0:0").bytes)).shape == (0,)
    assert numpy.load(io.BytesIO(server.ask(f"/api/npy?{AT}a&slice=0").bytes)).shape == ()
    assert "shmviewctl save" in server.error(f"/api/npy?{AT}s")


def test_downloads_that_are_under_way_have_a_limit(web, ctl):
    """Two of 256 MiB, whose readers read nothing, leave no memory for a third."""
    ctl("create", "rows", 4 << 20, "--layout", f"l: a=u1[64,{4 << 20}]:strides(0,1)")
    server = web("--port", "0", "--work", "100").enter()
    path = "/api/npy?segment=rows&layout=l&view=a"
    slow = [server.connection() for _ in range(2)]
    for one in slow:
        assert server.json(path + "&check=1") == {"bytes": 256 << 20}
        one.request("GET", path, headers={"Cookie": server.cookie})
        assert one.getresponse().status == 200
    for more in "", "&check=1", "&slice=0":
        answer = server.ask(path + more)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "try again when a download has ended" in json.loads(answer.text)["error"]
    assert server.status("/api/segments") == 200
    slow[0].close()
    for _ in range(50):  # a check keeps nothing from the request that follows; a download does until it is sent
        await_(lambda: server.status(path + "&check=1") == 200)
        assert len(server.ask(path + "&slice=0").bytes) == 128 + (4 << 20)
    slow[1].close()


def test_numbers_out_of_range_are_named(web, seg):
    server = web().enter()
    for path, name, values in (("image", "low", "nan inf x"), ("image", "high", "-inf 1x"), ("image", "rows", "0 -1 1e3 99999999"),
                               ("image", "columns", "0 x"), ("image", "range", "2"), ("image", "colors", "-1"),
                               ("line", "columns", "0 99999999"), ("line", "first", "-1"), ("grid", "row", "-1"),
                               ("grid", "rows", "0"), ("grid", "columns", "0"), ("grid", "wrap", "4097"), ("npy", "check", "2")):
        for value in values.split():
            why = server.error(f"/api/{path}?{AT}m&{name}={value}")
            assert why.startswith(f"parameter {name} is '{value}': give a "), why


def test_wrong_requests_have_reasons(web, seg):
    server = web().enter()
    assert "choose a slice" in server.error(f"/api/line?{AT}m")
    assert "choose a slice" in server.error(f"/api/image?{AT}a")
    assert "choose a slice" in server.error(f"/api/grid?{AT}c")
    for slice_ in "x", "1:2:0", "1:2:3:4", "0,0,0", ",", "1e3", "0x1", "::::", "9" * 99:
        assert "write it as in Python" in server.error(f"/api/line?{AT}m&slice={slice_}"), slice_
    server.error(f"/api/line?{AT}m&slice=20,:")
    server.error("/api/line?segment=seg&as=no")
    assert "199 bytes" in server.error(f"/api/line?{AT}m&slice={'1' * 200}")
    assert "199 bytes" in server.error(f"/api/line?{AT}s&field={'x' * 200}")
    assert "no bytes" in server.error("/api/line?segment=seg&as=0s")
    server.error("/api/line")
    server.error(f"/api/line?{AT}none", status=404)
    server.error("/api/line?segment=none", status=404)
    server.error(f"/api/line?{AT}s&field=none", status=404)
    server.error(f"/api/line?{AT}s")
    server.error(f"/api/grid?{AT}a&rows=9000")


def test_layouts_that_nobody_can_read_to_the_end(web, ctl):
    """A stride of 0, or a length of 0, permits any other lengths."""
    long = 1 << 40
    ctl("create", "odd", 4096, "--layout", f"l: a=u1[{long}]:strides(0) b=f4[{long},0] "
        f"c=u1[1048576,1]:strides(0,0) d=u1[{long},1024]:strides(0,0)")
    server = web().enter()
    at = "segment=odd&layout=l&view="
    for kind, view in ("line", "a"), ("histogram", "a"), ("npy", "a"), ("image", "d"), ("histogram", "d"):
        assert "overlap" in server.error(f"/api/{kind}?{at}{view}"), (kind, view)
    for slice_ in "0:1000", "0:1000:7":
        assert server.json(f"/api/histogram?{at}a&slice={slice_}")["min"] == 0
    for at_ in f"{at}b", f"{at}c&slice=:,0:0":
        assert server.json(f"/api/histogram?{at_}")["n"] == 0
        assert server.picture(f"/api/image?{at_}")[0]["columns"] == 0
        assert server.ask(f"/api/npy?{at_}").status == 200
    assert server.json(f"/api/histogram?{at}c")["n"] == 1 << 20
    head, data = server.picture(f"/api/image?{at}c&rows=10")
    assert head["rows"] == 10 and data == b"\1" * 10


def test_a_histogram_in_parts(web, ctl, party):
    """Rows of any length, and elements that are not next to each other."""
    ctl("create", "parts", 1 << 20, "--layout", "l: wide=u2[2,100000] deep=u2[20000,2,5]@0 one=u2@400000")
    party().do("v = shmview.attach('parts').view('wide', 'l'); v[:] = [[i % 64] * 100000 for i in (1, 3)]")
    server = web().enter()
    at = "/api/histogram?segment=parts&layout=l&view="
    for view, n in ("wide", 200000), ("wide&slice=:,::3", 66668), ("deep", 200000), ("deep&slice=::-1,1", 100000):
        got = server.json(at + view)
        assert (got["n"], sum(got["counts"]), got["min"], got["max"]) == (n, n, 1, 3), view
        assert got["counts"][0] + got["counts"][-1] == n
    assert server.json(at + "one")["counts"].count(1) == 1


def test_a_writer_inside_and_a_dead_one_are_named(web, ctl, seg, party):
    server = web().enter()
    path = f"/api/grid?{AT}a&rows=1"
    assert server.json(path)["state"] == "clean"
    seg.do("s.lock()")
    got = server.json(path)
    assert (got["state"], got["pid"]) == ("writing", seg.pid)
    got = server.json(path + "&lock=1")
    assert (got["state"], got["pid"]) == ("writing", seg.pid)
    seg.kill()
    await_(lambda: server.json(path)["state"] == "half written")
    for lock in "0", "1":
        got = server.json(f"{path}&lock={lock}")
        assert (got["state"], got["pid"]) == ("half written", seg.pid)
    # looking has not hidden the death from the next owner
    other = party()
    other.do("s = shmview.attach('seg')")
    with pytest.raises(AssertionError, match="OwnerDied"):
        other.do("s.lock()")


def test_a_writer_inside_delays_few_parts_of_an_image(web, ctl, party):
    ctl("create", "tall", 1 << 20, "--layout", "l: m=u1[1000,1000]")
    one = party()
    one.do("s = shmview.attach('tall'); s.lock()")
    server = web().enter()

    def update():
        begun = time.monotonic()
        head, _ = server.picture("/api/image?segment=tall&layout=l&view=m&rows=1000&columns=1000")
        assert (head["state"], head["pid"]) == ("writing", one.pid)
        return time.monotonic() - begun
    # If each of the thousand rows waited three times, all together would take 0.3 s at least.
    await_(lambda: update() < 0.2, what="an update in time")
    one.do("s.unlock()")


def test_a_stale_view(web, ctl, seg):
    ctl("define", "seg", "other: z=u1[8]")
    server = web().enter()
    assert server.json(f"/api/grid?{AT}a")["stale"] is False
    ctl("switch", "seg", "other")
    assert server.json(f"/api/grid?{AT}a")["stale"] is True
    assert server.json("/api/grid?segment=seg&layout=other&view=z")["stale"] is False


@pytest.mark.slow
def test_a_removed_segment_is_given_back(web, ctl):
    server = web().enter()
    ctl("create", "a", 4096)
    assert server.json("/api/grid?segment=a&as=uint8")["cells"][0][0] == "0"
    ctl("remove", "a")
    ctl("create", "a", 8192)
    await_(lambda: server.json("/api/grid?segment=a&as=uint8")["shape"] == [8192])
    # nobody looks any longer: the page keeps nobody's memory
    await_(lambda: ctl.segment("a")["attached"] == 0)


def objects(pid):
    """Returns the data and control objects that another process has mapped."""
    if os.geteuid() != 0:
        pytest.skip("only root can reach the objects of another process")
    folder = f"/proc/{pid}/map_files"
    paths = {os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
    return sorted(path for path in paths if path.endswith(("/seg", ".control")))


def test_truncated_memory_is_an_error(web, ctl, seg):
    server = web().enter()
    server.json(f"/api/grid?{AT}a")
    os.truncate([path for path in objects(seg.pid) if path.endswith("/seg")][0], 0)
    answer = server.ask(f"/api/histogram?{AT}a")
    assert answer.status in (200, 409), answer.text  # the daemon may have repaired it already
    assert server.json("/api/daemon")


@pytest.mark.parametrize("path", [
    f"grid?{AT}a", pytest.param(f"grid?{AT}a&lock=1", marks=pytest.mark.slow),
    pytest.param("stream?name=seg", marks=pytest.mark.slow)])
def test_memory_that_is_truncated_again_and_again(web, ctl, party, path):
    """Control objects too, and while the library reads them outside the guard: the daemon repairs
    them in the meantime."""
    if path.startswith("stream"):
        ctl("stream", "create", "seg", "a=f4[16]", "--slots", "4", "--mode", "latest")
    else:
        ctl("create", "seg", 16384, "--layout", LAYOUT)
    other = party()
    other.do("s = shmview.attach('seg')")
    paths = objects(other.pid)
    assert len(paths) == 2
    server = web().enter()
    ended = threading.Event()

    def truncate():
        while not ended.wait(0.05):
            for one in paths:
                os.truncate(one, 0)
    thread = threading.Thread(target=truncate)
    thread.start()
    try:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert server.status(f"/api/{path}") in (200, 400, 409, 500)
    finally:
        ended.set()
        thread.join()
    assert server.status("/api/daemon") == 200


def test_changes_need_permission(web, seg):
    body = json.dumps({"segment": "seg", "layout": "l", "view": "a", "index": [3], "value": "2.5"}).encode()
    assert "--allow-changes" in web().enter().error("/api/set", "POST", body, status=403)
    server = web("--port", "0", "--allow-changes").enter()
    assert server.json("/api/daemon")["allow_changes"] is True
    assert server.status("/api/set", "POST", body) == 200
    assert seg.do("float(s.view('a', 'l')[3])") == 2.5
    assert server.json(f"/api/grid?{AT}a")["change"] == 1
    assert server.status("/api/set", "POST", body, Origin="http://evil.example") == 403
    assert server.status("/api/set") == 405

    def change(**members):
        return server.error("/api/set", "POST", json.dumps({**json.loads(body), **members}).encode())
    for value in "", "x", "1 2", "0x", "1e9999999", "nan(":
        assert "no number" in change(value=value), value
    for index in [], [1, 2], ["1"], [1.5], None, {}:
        assert "index" in change(index=index)
    change(index=[1000])
    change(view="c", index=[0, 0, 0], value="256")
    change(view="c", index=[0, 0, 0], value="-1")
    for wrong in b"", b"{", b"[]", b"\xff", b"null", b'{"segment": 1}':
        server.error("/api/set", "POST", wrong)
    # an owner that died inside: the page does not hide it
    seg.do("s.lock()")
    seg.kill()
    await_(lambda: server.json(f"/api/grid?{AT}a")["state"] == "half written")
    assert "repair" in change()


def test_reading_has_a_share_of_the_processor(web, ctl):
    ctl("create", "long", 1 << 24)
    server = web("--port", "0", "--work", "1").enter()
    connection = server.connection()
    for _ in range(500):
        answer = server.ask("/api/histogram?segment=long&as=float32", connection=connection)
        if answer.status == 429:
            break
    assert answer.status == 429 and "--work" in answer.text
    assert server.status("/api/daemon") == 200
