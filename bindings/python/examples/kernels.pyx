# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Loops over views at the speed of C, without the GIL: with typed memoryviews, and with the lock
taken by calls of libshmview. Build it with cython3 and `pkg-config --cflags --libs shmview`."""

cimport shmview


def total(const double[:, :] a):
    """Returns the sum of a view. Because of const the view may be read-only."""
    cdef double sum = 0
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                sum += a[i, j]
    return sum


def scale(double[:, ::1] a, double factor):
    """Multiplies every element of a C-contiguous view."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] *= factor


def add_under_lock(segment, view, double x, int n):
    """Adds x to the first element n times. Takes the lock each time, without the GIL."""
    cdef shmview.shmview_segment *s = shmview.segment_of(segment)
    cdef const shmview.shmview_view *v = shmview.view_of(view)
    cdef double *first = <double *>v.data
    cdef int i, failed = 0
    with nogil:
        for i in range(n):
            failed = shmview.shmview_lock(s)
            if failed < 0:
                break
            first[0] += x
            shmview.shmview_unlock(s)
    if failed < 0:
        raise RuntimeError(shmview.shmview_error_text().decode())
