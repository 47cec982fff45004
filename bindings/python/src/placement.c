/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of a segment's memory: populating it, by several threads. */
#include "segment.h"

#include <pthread.h>
#include <signal.h>

#include <shmview/placement.h>

#include "unlocked.h"

#define THREADS_MAX 64

/* One thread's part of the segment. */
struct part {
    struct shmview_segment *handle;
    uint64_t offset, bytes;
    pthread_t thread;
    bool runs; /* in a thread of its own, which must be joined */
    int r;
};

static void *populate_part(void *arg)
{
    struct part *part = arg;
    part->r = shmview_populate(part->handle, part->offset, part->bytes);
    return NULL;
}

/* Populates the segment with n threads, one of which is the calling one. A part whose thread cannot
 * start, or fails, is populated here: then this thread has the text of its error. Returns 0 or an
 * error. */
static int populate(struct shmview_segment *handle, unsigned n)
{
    struct part parts[THREADS_MAX];
    uint64_t size = shmview_size(handle), step = size / n / 4096 * 4096;
    sigset_t all, before;
    int r = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* Python's handlers are for its own threads */
    for (unsigned i = 0; i < n; i++) {
        parts[i] = (struct part){
            .handle = handle,
            .offset = i * step,
            .bytes = i + 1 < n ? step : size - i * step,
        };
        parts[i].runs =
            i > 0 && pthread_create(&parts[i].thread, NULL, populate_part, &parts[i]) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (unsigned i = 0; i < n; i++) {
        if (parts[i].runs)
            pthread_join(parts[i].thread, NULL);
        if (r == 0 && (!parts[i].runs || parts[i].r)) {
            populate_part(&parts[i]);
            r = parts[i].r;
        }
    }
    return r;
}

PyObject *segment_populate(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"threads", NULL};
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    int threads = 1, r;
    if (!handle || !PyArg_ParseTupleAndKeywords(args, kwargs, "|i:populate", keywords, &threads))
        return NULL;
    if (threads < 1 || threads > THREADS_MAX)
        return PyErr_Format(PyExc_ValueError, "threads: 1 to %d, not %d", THREADS_MAX, threads);
    SEGMENT_CALL(self, r, populate(handle, (unsigned)threads));
    if (r)
        return raise_error(self->state, r, NULL);
    Py_RETURN_NONE;
}
