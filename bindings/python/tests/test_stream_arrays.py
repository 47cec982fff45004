# SPDX-License-Identifier: Apache-2.0
"""An array, a buffer or a tensor of a frame keeps its slot until it is dropped, so that it never changes
under its owner. Views end with their frame."""

import gc
import threading

import pytest

import shmview

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("daemon")
V1 = (1, 0)


@pytest.fixture
def stream():
    with shmview.create_stream("s", image=("i4", (4, 5)), n="i4", slots=4) as stream:
        yield stream


@pytest.fixture
def reader(stream):
    with shmview.open_stream("s") as reader:
        reader.join()
        yield reader


def write(stream, number):
    with stream.loan(0) as frame:
        frame["image"][...] = number


def held(stream):
    """Returns how many slots this process's readers hold."""
    return sum(len(reader.holds) for reader in stream.status().readers)


KEEPERS = {
    "asarray": lambda view: numpy.asarray(view),
    "array": lambda view: view.array,
    "part": lambda view: view[1:, ::2].array,
    "memoryview": lambda view: memoryview(view),
    "memoryview of bytes": lambda view: memoryview(view).cast("B"),
    "frombuffer": lambda view: numpy.frombuffer(view, "i4"),
    "interface": lambda view: numpy.asarray(type("A", (), {"__array_interface__": view.__array_interface__, "v": view})()),
    "capsule": lambda view: view.__dlpack__(max_version=V1),
    "field": lambda view: view.reshape(20).cast("B").array,
}


@pytest.mark.parametrize("how", KEEPERS)
@pytest.mark.parametrize("end", ["with", "drop", "iteration"])
def test_what_keeps_a_slot(stream, reader, how, end):
    write(stream, 7)
    if end == "with":
        with reader.take(0) as frame:
            kept = KEEPERS[how](frame["image"])
    elif end == "drop":
        kept = KEEPERS[how](reader.take(0)["image"])
        frame = None
    else:
        for frame in reader:
            kept = KEEPERS[how](frame["image"])
            break
        frame = None
    assert held(stream) == 1
    for i in range(20):
        write(stream, i)
    if "capsule" not in how:
        assert bytes(kept)[:4] == (7).to_bytes(4, "little")
    del kept
    gc.collect()  # the type of "interface" is a cycle
    assert held(stream) == 0
    del frame


def test_a_tensor_that_another_library_has(stream, reader):
    write(stream, 7)
    with reader.take(0) as frame:
        capsule = frame["image"].__dlpack__(max_version=V1)
    again = shmview.from_dlpack(Wrapper(capsule))
    del capsule
    for i in range(20):
        write(stream, i)
    assert again.tolist() == [[7] * 5] * 4 and held(stream) == 1
    thread = threading.Thread(target=again.segment.close)
    del again
    thread.start()
    thread.join()
    del thread
    assert held(stream) == 0


class Wrapper:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_views_end_with_their_frame(stream, reader):
    write(stream, 1)
    with reader.take(0) as frame:
        view = frame["image"]
        part = view[1:]
    assert held(stream) == 0
    for use in lambda: view[0, 0], lambda: part.tolist(), lambda: memoryview(view), lambda: view.shape:
        with pytest.raises(ValueError, match="the view was released"):
            use()
    write(stream, 2)
    frame = reader.take(0)
    view = frame["image"]
    frame.release()
    with pytest.raises(ValueError, match="the view was released"):
        view.tolist()
    assert held(stream) == 0


@pytest.mark.parametrize("part", ["slice", "field"])
def test_a_frame_that_ends_in_the_middle(part):
    """A part has a view of its own while it is made or set, which the end of the frame releases."""
    class Ends:
        def __index__(self):
            frame.discard()
            return 1
    with shmview.create_stream("s", A=("T{i:a:i:b:}", (2,)), slots=4) as stream:
        frame = stream.loan(0)
        view = frame["A"]
        if part == "slice":
            with pytest.raises(ValueError, match="the view was released"):
                view[Ends():]
        else:
            with pytest.raises(shmview.ConversionError):
                view["a"] = [Ends(), 2**40]


def test_a_view_keeps_a_frame_that_nobody_has_ended(stream, reader):
    write(stream, 3)
    view = reader.take(0)["image"]
    write(stream, 4)
    assert held(stream) == 1 and view[3, 4] == 3
    view.release()
    assert held(stream) == 0


def test_release_is_refused(stream, reader):
    write(stream, 1)
    frame = reader.take(0)
    array = frame["image"].array
    with pytest.raises(BufferError, match="1 arrays or buffers of the frame are still out") as e:
        frame.release()
    assert type(e.value) is shmview.Busy and not frame.released and frame["image"][0, 0] == 1
    capsule = frame["image"].__dlpack__(max_version=V1)
    del array, e
    with pytest.raises(shmview.Busy, match="still out"):
        frame.release()
    del capsule
    frame.release()
    assert held(stream) == 0


@pytest.mark.parametrize("keep", [memoryview, lambda segment: numpy.frombuffer(segment, "u1")])
def test_release_is_refused_because_of_a_buffer_of_the_bytes(stream, reader, keep):
    write(stream, 1)
    frame = reader.take(0)
    view = frame["image"]
    kept = keep(view.segment)
    with pytest.raises(shmview.Busy, match="1 arrays or buffers of the frame are still out"):
        frame.release()
    assert not frame.released and view[0, 0] == 1
    del kept
    frame.release()
    assert held(stream) == 0


def test_release_is_refused_because_of_a_buffer_of_a_closed_segment(stream, reader):
    write(stream, 1)
    frame = reader.take(0)
    with frame["image"].segment as segment:
        kept = memoryview(segment)
    with pytest.raises(shmview.Busy):
        frame.release()
    del kept
    frame.release()
    assert held(stream) == 0


def test_an_address_keeps_the_slot_as_long_as_its_view(stream, reader):
    write(stream, 1)
    with reader.take(0) as frame:
        view = frame["image"]
        assert view.address
    assert held(stream) == 1
    with pytest.raises(ValueError, match="released"):
        view[0, 0]
    del view
    assert held(stream) == 0


def test_the_writers_arrays(stream, reader):
    """A frame that is published while its writer has an array of it is not overwritten."""
    with stream.loan() as frame:
        view, array = frame["image"], frame["image"].array
        array[:] = 7
    assert frame.released and held(stream) == 0
    with pytest.raises(ValueError, match="the view was released"):
        view[0, 0]
    slot = next(slot for slot in stream.status().slots if slot.state == "held")
    assert slot.sequences == (1,) and slot.holders == 1
    with reader.take(0) as taken:
        assert (taken["image"].array == 7).all()
    for i in range(20):
        write(stream, i)
    assert (array == 7).all()
    with pytest.raises(shmview.Busy, match="1 frames of 's', or arrays of them, are still held"):
        stream.close()
    del array
    assert all(slot.state != "held" for slot in stream.status().slots)


def test_an_array_of_a_discarded_frame(stream, reader):
    with stream.loan() as frame:
        array = frame["image"].array
        array[:] = 7
        frame.discard()
    loans = [stream.loan(0) for _ in range(3)]
    with pytest.raises(shmview.TimedOut):
        stream.loan(0)
    assert (array == 7).all()
    del array
    loans.append(stream.loan(0))


def test_all_slots_are_held(stream, reader):
    arrays = []
    for i in range(4):
        write(stream, i)
        arrays.append(reader.take(0)["image"].array)
    with pytest.raises(shmview.TimedOut, match="holds 4 of 4 slots"):
        stream.loan(0.01)
    assert [int(array[0, 0]) for array in arrays] == [0, 1, 2, 3]
    timer = threading.Timer(0.02, lambda: arrays.pop(0))
    timer.start()
    stream.loan(20).discard()
    timer.join()


def test_streams_end_with_their_last_array():
    stream = shmview.create_stream("t", image=("i4", (4, 5)))
    with shmview.open_stream("t") as reader:
        reader.join()
        write(stream, 5)
        array = reader.take(0)["image"].array
        with pytest.raises(shmview.Busy):
            reader.close()
    assert reader.closed
    stream.close()
    del stream, reader
    gc.collect()
    assert (array == 5).all()


def test_setting_elements(stream, reader):
    with stream.loan() as frame:
        frame["image"][:] = numpy.arange(20, dtype="i4").reshape(4, 5)
        frame["n"][()] = 3
        numpy.add(frame["image"].array, 1, out=frame["image"].array)
    with reader.latest() as frame:
        assert frame["image"].tolist()[3] == [16, 17, 18, 19, 20] and int(frame["n"]) == 3
        with pytest.raises(ValueError):
            frame["image"].array[0] = 1
        with pytest.raises(shmview.ReadOnly):
            frame["image"].segment.cast("B")[0] = 1


def test_torch(stream, reader):
    torch = pytest.importorskip("torch")
    with stream.loan() as frame:
        torch.from_dlpack(frame["image"]).fill_(9)
    frame = reader.take(0)
    assert frame["image"][0, 0] == 9


def test_frames_in_containers(stream, reader, no_leak):
    def keep():
        for i in range(3):
            write(stream, i)
        frames = [reader.take(0) for _ in range(3)]
        arrays = [frame["image"].array for frame in frames]
        assert [frame["image"][0, 0] for frame in frames] == [0, 1, 2]
        del frames
        assert held(stream) == 3 and [array[0, 0] for array in arrays] == [0, 1, 2]
    no_leak(keep)
    assert held(stream) == 0
