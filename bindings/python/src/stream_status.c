/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a stream: its attributes, deaths, slots and readers; and one wait for several streams,
 * changes and phases. Tuples are plain here; shmview._streams gives their members names. */
#include "stream.h"

#include <string.h>

#include <shmview/wait.h>

#define READERS_MAX SHMVIEW_SLOTS_MAX

/* Calls a function of a module of the package with args, a new reference that it takes over.
 * Returns NULL with an exception; also if args is NULL. */
static PyObject *call(const char *module, const char *name, PyObject *args)
{
    PyObject *from = args ? PyImport_ImportModule(module) : NULL;
    PyObject *function = from ? PyObject_GetAttrString(from, name) : NULL;
    PyObject *done = function ? PyObject_CallObject(function, args) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(from);
    Py_XDECREF(args);
    return done;
}

/* --- Deaths -------------------------------------------------------------- */

PyObject *stream_death(struct stream *self)
{
    struct shmview_death death;
    struct shmview_stream *handle = stream_use(self);
    if (!handle)
        return NULL;
    if (shmview_stream_death(handle, &death))
        Py_RETURN_NONE;
    return call("shmview._errors", "make_writer_death",
                Py_BuildValue("OINd", self->name, death.pid,
                              PyUnicode_DecodeFSDefault(death.command),
                              (double)death.when_ns / 1e9));
}

/* --- Attributes ---------------------------------------------------------- */

static PyObject *get_name(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(((struct stream *)op)->name);
}

static PyObject *get_access(PyObject *op, void *Py_UNUSED(closure))
{
    int access = ((struct stream *)op)->access;
    return PyUnicode_FromString(access == SHMVIEW_WRITE  ? "write"
                                : access == SHMVIEW_READ ? "read"
                                                         : "peek");
}

static PyObject *get_closed(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(!((struct stream *)op)->line);
}

static PyObject *get_connection(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)((struct stream *)op)->connection);
}

static PyObject *get_views(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(((struct stream *)op)->views);
}

static PyObject *get_info(PyObject *op, void *Py_UNUSED(closure))
{
    const struct shmview_stream_info *i = &((struct stream *)op)->info;
    return call("shmview._streams", "StreamInfo",
                Py_BuildValue("NIIIINK", PyBool_FromLong(i->mode == SHMVIEW_LOSSLESS), i->n_slots,
                              i->history, i->n_stages, i->stage,
                              PyBool_FromLong(i->flags & SHMVIEW_MANY_WRITERS),
                              (unsigned long long)i->frame_bytes));
}

static PyObject *get_death(PyObject *op, void *Py_UNUSED(closure))
{
    return stream_death((struct stream *)op);
}

PyGetSetDef stream_getset[] = {
    {"name", get_name, NULL, "Its name, with ':1' for a stage; it stays after close().", NULL},
    {"access", get_access, NULL, "'peek', 'read' or 'write'.", NULL},
    {"closed", get_closed, NULL, "Whether close() was called.", NULL},
    {"connection", get_connection, NULL, "The Connection through which it was opened.", NULL},
    {"views", get_views, NULL, "A tuple of the names of the views of a frame.", NULL},
    {"info", get_info, NULL, "A StreamInfo: the facts that do not change.", NULL},
    {"death", get_death, NULL,
     "The last WriterDied that a call of this Stream has raised; None if there was none.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- Status -------------------------------------------------------------- */

static PyObject *stages(const uint64_t *numbers, uint32_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (uint32_t k = 0; tuple && k < n; k++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[k]);
        if (number)
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)k, number);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *slot_of(const struct shmview_stream_slot_status *s, uint32_t n_stages)
{
    static const char *const states[] = {"free", "loaned", "published", "held"};
    return Py_BuildValue("sIINdN", states[s->state & 3], s->n_holders, s->pid,
                         PyUnicode_DecodeFSDefault(s->command), (double)s->time_ns / 1e9,
                         stages(s->sequence, n_stages));
}

static PyObject *reader_of(const struct shmview_stream_reader_status *r, uint32_t n_slots)
{
    uint64_t held[SHMVIEW_STREAM_SLOTS_MAX];
    uint32_t n = 0;
    for (uint32_t f = 0; f < n_slots; f++)
        if (r->holds[f / 64] >> f % 64 & 1)
            held[n++] = f;
    return Py_BuildValue("INIIKKKN", r->pid, PyUnicode_DecodeFSDefault(r->command), r->slot,
                         r->stage, (unsigned long long)r->next, (unsigned long long)r->lag,
                         (unsigned long long)r->missed, stages(held, n));
}

/* What one query reports; on the heap, because it is large. */
struct report {
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[SHMVIEW_STREAM_SLOTS_MAX];
    struct shmview_stream_reader_status readers[READERS_MAX];
};

static PyObject *build_report(const struct report *report, const struct shmview_stream_info *info)
{
    const struct shmview_stream_status *s = &report->status;
    uint64_t ended[SHMVIEW_STREAM_STAGES_MAX];
    size_t n_readers = s->n_readers < READERS_MAX ? (size_t)s->n_readers : READERS_MAX;
    PyObject *slots = PyList_New(0), *readers = PyList_New(0);
    bool built = slots && readers;
    for (uint32_t k = 0; k < info->n_stages; k++)
        ended[k] = s->has_ended[k];
    for (uint32_t f = 0; built && f < info->n_slots; f++) {
        PyObject *slot = slot_of(&report->slots[f], info->n_stages);
        built = slot && PyList_Append(slots, slot) == 0;
        Py_XDECREF(slot);
    }
    for (size_t i = 0; built && i < n_readers; i++) {
        PyObject *reader = reader_of(&report->readers[i], info->n_slots);
        built = reader && PyList_Append(readers, reader) == 0;
        Py_XDECREF(reader);
    }
    PyObject *args = NULL;
    if (built)
        args = Py_BuildValue(
            "NNINIOO", stages(s->published, info->n_stages), stages(ended, info->n_stages),
            s->writer_pid, PyUnicode_DecodeFSDefault(s->writer_command), s->deaths, slots, readers);
    Py_XDECREF(slots);
    Py_XDECREF(readers);
    return call("shmview._streams", "make_status", args);
}

PyObject *stream_status(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct stream *self = (struct stream *)op;
    struct shmview_stream *handle = stream_use(self);
    struct report *report = handle ? PyMem_Calloc(1, sizeof *report) : NULL;
    PyObject *status = NULL;
    int r;
    if (!report)
        return handle ? PyErr_NoMemory() : NULL;
    stream_call_begins(self);
    UNLOCKED_CALL(r, shmview_stream_query(handle, &report->status, report->slots,
                                          self->info.n_slots, report->readers, READERS_MAX));
    stream_call_ends(self);
    if (r)
        raise_error(self->state, r, "{s:O}", "name", self->name);
    else
        status = build_report(report, &self->info);
    PyMem_Free(report);
    return status;
}

/* --- Waiting for one of several ------------------------------------------ */

/* Converts ('change', segment, seen) or ('phase', segment, generation), except the handle. Returns
 * 0, or -1 with an exception. */
static int parse_tuple(struct state *state, PyObject *tuple, struct shmview_wait *ret)
{
    PyObject *segment, *number;
    const char *kind;
    if (!PyArg_ParseTuple(tuple, "sO!O:wait_any", &kind, state->segment_type, &segment, &number))
        return -1;
    PyObject *index = PyNumber_Index(number);
    if (!index)
        return -1;
    unsigned long long seen = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    PyErr_Clear(); /* one that does not fit is the largest */
    bool is_phase = kind[0] == 'p';
    if ((strcmp(kind, "phase") != 0 && strcmp(kind, "change") != 0) || seen > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError,
                        "wait_any(): ('change', segment, seen) or ('phase', segment, generation)");
        return -1;
    }
    ret->kind = is_phase ? SHMVIEW_WAIT_PHASE : SHMVIEW_WAIT_CHANGE;
    ret->seen = (uint32_t)seen;
    return 0;
}

/* Converts an entry of wait_any(), except the handle. Returns 0, or -1 with an exception. */
static int parse_entry(struct state *state, PyObject *entry, struct shmview_wait *ret)
{
    *ret = (struct shmview_wait){.kind = SHMVIEW_WAIT_FRAME};
    if (PyObject_TypeCheck(entry, state->stream_type))
        return 0;
    if (PyObject_TypeCheck(entry, state->segment_type)) {
        ret->kind = SHMVIEW_WAIT_CHANGE;
        return 0;
    }
    if (PyTuple_Check(entry))
        return parse_tuple(state, entry, ret);
    PyErr_Format(PyExc_TypeError, "wait_any() waits for a Stream, a Segment or a tuple, not %.100s",
                 Py_TYPE(entry)->tp_name);
    return -1;
}

/* Finds the handle of an entry, and of a Segment the change up to which the caller has seen it.
 * Returns 0, or -1 with an exception. */
static int find_handle(PyObject *entry, struct shmview_wait *ret)
{
    bool is_tuple = PyTuple_Check(entry);
    if (ret->kind == SHMVIEW_WAIT_FRAME) {
        ret->stream = stream_use((struct stream *)entry);
        return ret->stream ? 0 : -1;
    }
    ret->segment = segment_use((struct segment *)(is_tuple ? PyTuple_GET_ITEM(entry, 1) : entry));
    if (ret->segment && !is_tuple)
        ret->seen = shmview_change(ret->segment);
    return ret->segment ? 0 : -1;
}

/* Counts the objects of all entries as used, or ends that. */
static void use_all(struct state *state, PyObject *entries, bool begins)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i);
        if (PyTuple_Check(entry))
            entry = PyTuple_GET_ITEM(entry, 1);
        if (PyObject_TypeCheck(entry, state->stream_type))
            (begins ? stream_call_begins : stream_call_ends)((struct stream *)entry);
        else
            (begins ? call_begins : call_ends)((struct segment *)entry);
    }
}

/* Waits for one of the entries, and returns it; or NULL with an exception. The search for a handle
 * may give the GIL away, so the entries are in use before the first one is found. */
static PyObject *wait_for(struct state *state, PyObject *entries, struct shmview_wait *waits,
                          int64_t deadline)
{
    Py_ssize_t n = PyTuple_GET_SIZE(entries);
    PyObject *found = NULL;
    size_t index;
    bool are_open = true;
    use_all(state, entries, true);
    for (Py_ssize_t i = 0; are_open && i < n; i++)
        are_open = find_handle(PyTuple_GET_ITEM(entries, i), &waits[i]) == 0;
    if (are_open) {
        int r;
        UNLOCKED_CALL(r, shmview_wait_any(waits, (size_t)n, deadline, &index));
        if (r == 0)
            found = Py_NewRef(PyTuple_GET_ITEM(entries, (Py_ssize_t)index));
        else
            raise_error(state, r, NULL);
    }
    use_all(state, entries, false);
    return found;
}

PyObject *module_wait_any(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"entries", "timeout", NULL};
    struct state *state = PyModule_GetState(module);
    struct shmview_wait waits[SHMVIEW_WAIT_MAX];
    PyObject *sequence, *timeout = Py_None, *found = NULL;
    int64_t deadline;
    int r = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:wait_any", keywords, &sequence, &timeout) ||
        parse_timeout(timeout, &deadline))
        return NULL;
    PyObject *entries = PySequence_Tuple(sequence);
    if (!entries)
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(entries);
    if (n < 1 || n > SHMVIEW_WAIT_MAX) {
        PyErr_Format(PyExc_ValueError, "wait_any() waits for 1 to %d objects, not %zd",
                     SHMVIEW_WAIT_MAX, n);
        r = -1;
    }
    for (Py_ssize_t i = 0; r == 0 && i < n; i++)
        r = parse_entry(state, PyTuple_GET_ITEM(entries, i), &waits[i]);
    if (r == 0)
        found = wait_for(state, entries, waits, deadline);
    Py_DECREF(entries);
    return found;
}
