# SPDX-License-Identifier: Apache-2.0
"""libshmview for Cython: `cimport shmview`.

Typed memoryviews do not need this file: `cdef double[:, ::1] a = view`, with const for a read-only
view. It declares the calls that lock, wait and use views without the GIL:

    cimport shmview
    cdef shmview.shmview_segment *s = shmview.segment_of(segment)
    with nogil:
        shmview.shmview_lock(s)

The pointers are borrowed: keep the Python object while you use them. Compile with the flags of
`pkg-config --cflags --libs shmview`. The headers <shmview/...> document the calls."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from cpython.pycapsule cimport PyCapsule_GetPointer


cdef extern from "shmview/element.h" nogil:
    enum: SHMVIEW_MAX_NDIM
    enum: SHMVIEW_VIEW_READ_ONLY
    enum: SHMVIEW_VIEW_INDIRECT
    enum: SHMVIEW_VIEW_UNALIGNED

    struct shmview_segment:
        pass

    struct shmview_view:
        unsigned char *data
        shmview_segment *segment
        const char *format
        uint64_t nbytes
        uint32_t itemsize
        uint32_t dtype
        uint32_t ndim
        uint32_t flags
        uint32_t layout
        uint32_t generation
        ptrdiff_t shape[8]
        ptrdiff_t strides[8]
        ptrdiff_t suboffsets[8]

    struct shmview_strided_row:
        unsigned char *data
        ptrdiff_t n
        ptrdiff_t stride

    void *shmview_at1(const shmview_view *view, ptrdiff_t i)
    void *shmview_at2(const shmview_view *view, ptrdiff_t i, ptrdiff_t j)
    void *shmview_at3(const shmview_view *view, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k)
    void *shmview_at(const shmview_view *view, const ptrdiff_t *index)
    shmview_strided_row shmview_strided(const shmview_view *view, ptrdiff_t i)
    int shmview_rows_contiguous(const shmview_view *view)
    int shmview_is_contiguous(const shmview_view *view)


cdef extern from "shmview/error.h" nogil:
    enum: SHMVIEW_OWNER_DIED
    enum: SHMVIEW_ERR_TIMED_OUT
    const char *shmview_strerror(int error)
    const char *shmview_error_text()


cdef extern from "shmview/shmview.h" nogil:
    enum: SHMVIEW_EXCLUSIVE
    enum: SHMVIEW_SHARED
    int64_t SHMVIEW_FOREVER

    struct shmview_phase:
        uint32_t generation
        uint32_t layout
        char name[65]

    const char *shmview_name(const shmview_segment *segment)
    uint64_t shmview_size(const shmview_segment *segment)
    void *shmview_data(const shmview_segment *segment)

    int shmview_lock(shmview_segment *segment)
    int shmview_lock_shared(shmview_segment *segment)
    int shmview_trylock(shmview_segment *segment)
    int shmview_trylock_shared(shmview_segment *segment)
    int shmview_lock_until(shmview_segment *segment, int64_t deadline_ns)
    int shmview_lock_shared_until(shmview_segment *segment, int64_t deadline_ns)
    int64_t shmview_deadline(int64_t timeout_ns)
    int shmview_unlock(shmview_segment *segment)
    int shmview_unlock_not_repaired(shmview_segment *segment)
    int shmview_read_begin(shmview_segment *segment, uint64_t *ret_version)
    int shmview_read_validate(const shmview_segment *segment, uint64_t version)

    uint32_t shmview_change(const shmview_segment *segment)
    int shmview_notify(shmview_segment *segment)
    int shmview_notify_one(shmview_segment *segment)
    int shmview_wait_change(shmview_segment *segment, uint32_t seen, int64_t deadline_ns,
                            uint32_t *ret_change)

    int shmview_phase_get(shmview_segment *segment, shmview_phase *ret_phase)
    int shmview_phase_read(shmview_segment *segment, shmview_phase *ret_phase)
    int shmview_switch(shmview_segment *segment, const char *layout)
    int shmview_wait_phase(shmview_segment *segment, const char *layout, uint32_t after,
                           int64_t deadline_ns, shmview_phase *ret_phase)
    int shmview_view_is_stale(const shmview_view *view)


cdef inline shmview_segment *segment_of(object segment) except NULL:
    """Returns the handle of a shmview.Segment; borrowed."""
    return <shmview_segment *>PyCapsule_GetPointer(segment._handle(), b"shmview.segment")


cdef inline const shmview_view *view_of(object view) except NULL:
    """Returns the description of a shmview.View; borrowed."""
    return <const shmview_view *>PyCapsule_GetPointer(view._description(), b"shmview.view")
