# SPDX-License-Identifier: Apache-2.0
"""from_dlpack(): views of tensors of other libraries. A producer that is written with ctypes counts the
calls of each deleter, and makes tensors that no library makes."""

import ctypes
import gc
import threading

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
api.PyCapsule_IsValid.argtypes = ctypes.py_object, ctypes.c_char_p
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
api.PyCapsule_SetName.argtypes = ctypes.py_object, ctypes.c_char_p
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CPU, CUDA = 1, 2
INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4
READ_ONLY = 1


class Plain(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Plain), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Plain)]


def numbers(values):
    return None if values is None else (ctypes.c_int64 * len(values))(*values)


class Producer:
    """An object with a tensor. deleted counts the calls of its deleter."""

    def __init__(self, memory, shape, *, strides=None, type=(FLOAT, 32, 1), offset=0, device=CPU, ndim=None,
                 version=None, flags=0):
        self.deleted = 0
        self.memory, self.shape, self.strides, self.version = memory, numbers(shape), numbers(strides), version
        self.deleter = DELETER(self.delete)
        tensor = Plain(ctypes.addressof(memory) if memory else None, device, 0, len(shape) if ndim is None else ndim, *type,
                       self.shape, self.strides, offset)
        self.managed = (Versioned(*version, None, self.deleter, flags, tensor) if version
                        else Managed(tensor, None, self.deleter))
        self.device = device

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **wishes):
        self.wishes = wishes
        return self.capsule()

    def capsule(self):
        self.name = b"dltensor_versioned" if self.version else b"dltensor"
        return api.PyCapsule_New(ctypes.addressof(self.managed), self.name, None)


def floats(*values):
    return (ctypes.c_float * len(values))(*values)


def take(*args, **kwargs):
    """Returns a producer and a view of its tensor."""
    producer = Producer(*args, **kwargs)
    return producer, shmview.from_dlpack(producer)


@pytest.mark.parametrize("version", [None, (1, 0), (1, 5)])
def test_the_same_memory(version):
    memory = floats(*range(6))
    producer, view = take(memory, (2, 3), version=version)
    assert (view.format, view.shape, view.readonly) == ("f", (2, 3), False)
    assert producer.wishes == {"max_version": (1, 0), "copy": False}
    view[1, 2] = 50
    assert memory[5] == 50
    part = view[0]
    view.release()
    assert producer.deleted == 0 and part.tolist() == [0, 1, 2]
    part.release()
    assert producer.deleted == 1
    gc.collect()
    del view, part
    assert producer.deleted == 1


def test_strides_and_offsets():
    memory = floats(*range(12))
    assert take(memory, (2, 2), strides=(6, 2), offset=4)[1].tolist() == [[1, 3], [7, 9]]
    assert take(memory, (3,), strides=(-2,), offset=20)[1].tolist() == [5, 3, 1]
    assert take(memory, (2, 3), strides=(0, 1))[1].tolist() == [[0, 1, 2]] * 2
    assert take(memory, (), offset=8)[1].item() == 2
    assert take(None, (0, 3))[1].shape == (0, 3)
    assert take(memory, (6,), type=(BFLOAT, 16, 1))[1].format == "bfloat16"


def test_a_read_only_tensor():
    _, view = take(floats(1, 2), (2,), version=(1, 0), flags=READ_ONLY)
    assert view.readonly
    with pytest.raises(shmview.ReadOnly):
        view[0] = 3
    assert view.segment.access == "read"


@pytest.mark.parametrize("wrong", [
    {"type": (FLOAT, 32, 2)}, {"type": (FLOAT, 4, 1)}, {"type": (77, 32, 1)}, {"ndim": -1}, {"ndim": 50},
    {"version": (2, 0)}, {"strides": (2**62, 2**62)}, {"offset": 1, "type": (INT, 32, 1)},
], ids=str)
def test_refused_tensors(wrong):
    producer = Producer(floats(*range(4)), (2, 2), **wrong)
    capsule = producer.capsule()
    with pytest.raises(BufferError):
        shmview.from_dlpack(capsule)
    assert producer.deleted == 0  # the capsule still has the tensor, for its destructor
    assert api.PyCapsule_IsValid(capsule, producer.name) == 1


def test_another_device():
    producer = Producer(floats(1), (1,), device=CUDA)
    with pytest.raises(BufferError, match=r"device \(2, 0\)"):
        shmview.from_dlpack(producer)
    assert not hasattr(producer, "wishes")  # was not asked
    with pytest.raises(BufferError, match="CUDA"):
        shmview.from_dlpack(producer.capsule())


def test_an_old_library():
    class Old(Producer):
        def __dlpack__(self, stream=None):
            return self.capsule()
    producer = Old(floats(1, 2), (2,))
    view = shmview.from_dlpack(producer)
    assert view.tolist() == [1, 2]
    del view
    assert producer.deleted == 1


def test_a_capsule_is_used_once():
    producer = Producer(floats(1, 2), (2,))
    capsule = producer.capsule()
    view = shmview.from_dlpack(capsule)
    assert "used_dltensor" in repr(capsule)
    with pytest.raises(ValueError, match="'used_dltensor' has no tensor"):
        shmview.from_dlpack(capsule)
    del capsule
    assert producer.deleted == 0
    del view
    assert producer.deleted == 1


def test_refused_objects():
    class Liar:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return 3
    with pytest.raises(TypeError, match="returns a capsule, not int"):
        shmview.from_dlpack(Liar())
    for wrong in (3, b"bytes", None):
        with pytest.raises(AttributeError):
            shmview.from_dlpack(wrong)
    with pytest.raises(ValueError, match="has no tensor"):
        shmview.from_dlpack(api.PyCapsule_New(1, b"other", None))


def test_the_deleter_runs_in_the_last_thread():
    producer, view = take(floats(1, 2), (2,))
    views = [view]
    del view
    thread = threading.Thread(target=views.clear)
    thread.start()
    thread.join()
    assert producer.deleted == 1


def test_exported_again():
    """A tensor of a view of a tensor keeps the first one."""
    numpy = pytest.importorskip("numpy")
    producer, view = take(floats(1, 2), (2,))
    array = numpy.from_dlpack(view)
    seg = view.segment
    view.release()
    with pytest.raises(shmview.Busy):
        seg.close()
    del seg, view
    assert producer.deleted == 0 and array.tolist() == [1, 2]
    del array
    assert producer.deleted == 1


def test_arrays_of_numpy():
    numpy = pytest.importorskip("numpy")
    if not hasattr(numpy, "from_dlpack"):
        pytest.skip("this numpy has no DLPack")
    source = numpy.arange(12, dtype="i2").reshape(3, 4)
    view = shmview.from_dlpack(source[:, ::2])
    assert view.tolist() == source[:, ::2].tolist() and numpy.shares_memory(view.array, source)
    with pytest.raises(BufferError):
        shmview.from_dlpack(numpy.zeros(2, [("a", "f4")]))


def test_a_view_is_a_tensor(seg):
    view = seg.cast("i4", (4,), readonly=True)
    again = shmview.from_dlpack(view)
    assert again.readonly and again.address == view.address
    view.release()
    seg.buf[0] = 9
    assert again[0] == 9


def test_torch():
    torch = pytest.importorskip("torch")
    source = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    view = shmview.from_dlpack(source.T)
    view[0, 1] = 50
    assert source[1, 0] == 50 and view.shape == (3, 2)


def test_objects_at_exit(run):
    assert run("""
import shmview, sys
try:
    import numpy
    sys.keep = shmview.from_dlpack(numpy.zeros(3))
    view = shmview.from_dlpack(numpy.zeros(3))
except ImportError:
    pass
print("done")
""") == "done\n"


def test_no_leak(no_leak):
    memory = floats(1, 2)

    def use():
        producer, view = take(memory, (2,), version=(1, 0))
        del view
        assert producer.deleted == 1
        producer.deleter = None  # ends the cycle of the callback
    no_leak(use)
