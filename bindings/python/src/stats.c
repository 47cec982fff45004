/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of segments, for list(), exists() and stats(). Returns plain tuples; shmview._stats gives
 * their members names. */
#include <shmview/access.h>
#include <shmview/stats.h>

#include "core.h"

static const char *mode_of_lock(uint32_t mode)
{
    return mode == SHMVIEW_EXCLUSIVE ? "exclusive" : mode == SHMVIEW_SHARED ? "shared" : NULL;
}

static PyObject *party_tuple(const void *item)
{
    const struct shmview_party_stats *p = item;
    return Py_BuildValue("LLLsIzzLd", (long long)p->attachment, (long long)p->pid,
                         (long long)p->uid, p->command, p->access, mode_of_lock(p->holds),
                         mode_of_lock(p->waits), (long long)p->slot, (double)p->since_us / 1e6);
}

/* Returns a new tuple of make() of each item, or NULL with an exception. */
static PyObject *tuple_of(const void *const *items, size_t n, PyObject *(*make)(const void *))
{
    PyObject *all = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; all && i < n; i++) {
        PyObject *item = make(items[i]);
        if (item)
            PyTuple_SET_ITEM(all, (Py_ssize_t)i, item);
        else
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *segment_tuple(const void *item)
{
    const struct shmview_segment_stats *s = item;
    PyObject *parties =
        tuple_of((const void *const *)s->parties, s->n_parties, party_tuple); /* N steals it */
    return parties ? Py_BuildValue("sLLNNIILLLLdLLzLLNsIIL", s->name, (long long)s->id,
                                   (long long)s->size, PyBool_FromLong(s->is_named != 0),
                                   PyBool_FromLong(s->has_lock != 0), s->lifetime, s->mode,
                                   (long long)s->owner, (long long)s->group,
                                   (long long)s->attachments, (long long)s->layouts,
                                   (double)s->created_us / 1e6, (long long)s->resident,
                                   (long long)s->generation, s->layout[0] ? s->layout : NULL,
                                   (long long)s->changes, (long long)s->owner_deaths, parties,
                                   s->label, s->backing, s->frozen, (long long)s->paid_by)
                   : NULL;
}

static PyObject *all_of(const struct shmview_stats *s)
{
    PyObject *segments = tuple_of((const void *const *)s->segments, s->n_segments, segment_tuple);
    return segments ? Py_BuildValue("sLddLLLLLLLN", s->version, (long long)s->pid,
                                    (double)s->started_us / 1e6, (double)s->uptime_us / 1e6,
                                    (long long)s->starts, (long long)s->connections,
                                    (long long)s->attachments, (long long)s->n_all_segments,
                                    (long long)s->allocated_bytes, (long long)s->memory_free,
                                    (long long)s->memory_limit, segments)
                    : NULL;
}

PyObject *module_stats(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *connection_arg;
    const char *name;
    const struct shmview_stats *stats = NULL;
    int r;
    if (!PyArg_ParseTuple(args, "zO:stats", &name, &connection_arg))
        return NULL;
    struct connection *connection = connection_take(state, connection_arg);
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    PyObject *result = NULL;
    if (handle) {
        const struct shmview_stats_options options = {
            .struct_bytes = sizeof options,
            .limit = SHMVIEW_STATS_ALL,
            .names = &name,
            .n_names = name ? 1 : 0,
        };
        CONNECTION_CALL(connection, r, shmview_stats_get(handle, &options, &stats));
        result = r ? raise_error(state, r, name ? "{s:s}" : NULL, "name", name) : all_of(stats);
        shmview_stats_free(stats);
    }
    Py_XDECREF((PyObject *)connection);
    return result;
}
