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
    int threads = 1, r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:populate", keywords, &threads))
        return NULL;
    struct shmview_segment *handle = segment_use(self); /* after __index__() of the argument */
    if (!handle)
        return NULL;
    if (threads < 1 || threads > THREADS_MAX)
        return PyErr_Format(PyExc_ValueError, "threads: 1 to %d, not %d", THREADS_MAX, threads);
    SEGMENT_CALL(self, r, populate(handle, (unsigned)threads));
    if (r)
        return raise_error(self->state, r, NULL);
    Py_RETURN_NONE;
}

/* --- What a creator wants ------------------------------------------------ */

/* huge=: False, True or "required". Returns an enum shmview_huge, or -1. */
static int parse_huge(PyObject *huge)
{
    if (PyUnicode_Check(huge))
        return PyUnicode_CompareWithASCIIString(huge, "required") == 0 ? SHMVIEW_HUGE_REQUIRED : -1;
    return huge == Py_True ? SHMVIEW_HUGE_WANTED : huge == Py_False || huge == Py_None ? 0 : -1;
}

int placement_parse(PyObject *huge, PyObject *numa, struct shmview_placement *ret)
{
    int wanted = parse_huge(huge);
    *ret = (struct shmview_placement){.struct_bytes = sizeof *ret, .huge = (uint32_t)wanted};
    if (wanted < 0) {
        PyErr_Format(PyExc_ValueError, "huge: False, True or 'required', not %R", huge);
        return -1;
    }
    if (numa == Py_None)
        return 0;
    if (PyLong_Check(numa) && !PyBool_Check(numa)) {
        unsigned long node = PyLong_AsUnsignedLong(numa);
        ret->numa = SHMVIEW_NUMA_NODE;
        ret->node = node > UINT32_MAX ? UINT32_MAX : (uint32_t)node;
        PyErr_Clear(); /* of a number that is no node, which the library refuses */
        return 0;
    }
    if (PyUnicode_Check(numa) && PyUnicode_CompareWithASCIIString(numa, "local") == 0)
        ret->numa = SHMVIEW_NUMA_LOCAL;
    else if (PyUnicode_Check(numa) && PyUnicode_CompareWithASCIIString(numa, "interleaved") == 0)
        ret->numa = SHMVIEW_NUMA_INTERLEAVED;
    if (ret->numa)
        return 0;
    PyErr_Format(PyExc_ValueError, "numa: 'local', 'interleaved' or the number of a node, not %R",
                 numa);
    return -1;
}

/* --- What a segment got -------------------------------------------------- */

static PyObject *name_of(const char *const *names, uint32_t n, uint32_t i)
{
    return i > 0 && i <= n ? PyUnicode_FromString(names[i - 1]) : Py_NewRef(Py_None);
}

static PyObject *list_of_nodes(uint64_t nodes)
{
    PyObject *list = PyList_New(0);
    for (long i = 0; list && i < 63; i++) {
        if (!(nodes >> i & 1))
            continue;
        PyObject *node = PyLong_FromLong(i);
        if (!node || PyList_Append(list, node))
            Py_CLEAR(list);
        Py_XDECREF(node);
    }
    return list;
}

PyObject *segment_get_placement(PyObject *op, void *Py_UNUSED(closure))
{
    static const char *const huge[] = {"wanted", "required"}, *const by[] = {"hugetlb", "thp"};
    static const char *const missing[] = {"small", "disabled", "short", "unsupported"};
    static const char *const numa[] = {"local", "interleaved", "node"};
    struct shmview_segment *handle = segment_use((struct segment *)op);
    struct shmview_placed p;
    if (!handle)
        return NULL;
    shmview_placement_get(handle, &p);
    return Py_BuildValue("{s:N,s:N,s:N,s:K,s:N,s:N}", "huge", name_of(huge, 2, p.huge), "huge_by",
                         name_of(by, 2, p.huge_by), "huge_missing",
                         name_of(missing, 4, p.huge_missing), "huge_bytes",
                         (unsigned long long)p.huge_bytes, "numa", name_of(numa, 3, p.numa),
                         "nodes", list_of_nodes(p.nodes));
}
