# SPDX-License-Identifier: Apache-2.0
"""wrap() and from_dlpack(): views of memory that another object or library owns."""

from . import _core


def wrap(buffer, format=None, shape=None, *, readonly=False):
    """Returns a View of the memory of a buffer, without a copy: of bytes, a bytearray, an mmap, an
    array.array, an array of ctypes or numpy, or any other object that memoryview() takes. The View
    has the format, shape and strides of the buffer.

    format, shape: like View.cast(), for a buffer without gaps.
    readonly: whether elements can only be read. A read-only buffer has read-only views in any case.

    The object is kept until the last view, buffer and tensor of its memory is gone, or until
    view.segment.close(). view.segment has no name, no lock and no daemon: calls that need one raise
    Invalid or NoLock, and the view cannot be pickled.

    Raises FormatError, Misaligned, NotContiguous, Invalid; TypeError for an object without a buffer."""
    view = _core.wrap(buffer, readonly)
    return view if format is None else view.cast(format, shape)


def from_dlpack(tensor):
    """Returns a View of a tensor of another library in the memory of the processor, without a copy.

    tensor: an object with the methods of DLPack, such as a tensor of torch or an array of numpy, or a
    capsule that such a method has returned. The View is read-only if the tensor is; only the versioned
    form of DLPack, which is requested first, has a flag for that.

    The tensor is kept until the last view, buffer and tensor of its memory is gone, or until
    view.segment.close(). view.segment has no name, no lock and no daemon.

    Raises BufferError if the tensor is on another device, or its type or strides have no View."""
    if type(tensor).__name__ == "PyCapsule":
        return _core.from_dlpack(tensor)
    device = tensor.__dlpack_device__()
    if device[0] != 1:
        raise BufferError(f"the tensor is on device {tuple(map(int, device))}: only the memory of the processor, "
                          "(1, 0), has views; copy it there first")
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), copy=False)
    except TypeError:  # a library from before these parameters
        capsule = tensor.__dlpack__()
    return _core.from_dlpack(capsule)
