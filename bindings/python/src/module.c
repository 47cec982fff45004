/* SPDX-License-Identifier: Apache-2.0 */
/* The module shmview._core: its state, its types and its functions.
 *
 * The module uses multi-phase initialisation and types on the heap, so that each interpreter of a
 * process gets a module of its own, with its own GIL from CPython 3.12 on. */
#include <pthread.h>

#include "access.h"
#include "events.h"
#include "guard.h"
#include "segment.h"
#include "special.h"
#include "stream.h"
#include "view.h"

static struct PyModuleDef definition;

struct state *state_of_type(PyTypeObject *type)
{
    PyObject *module = PyType_GetModule(type);
    return module ? PyModule_GetState(module) : NULL;
}

PyObject *refuse_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    PyErr_Format(PyExc_TypeError, "a %.100s is made by the functions and methods of shmview",
                 type->tp_name);
    return NULL;
}

/* --- Filling it ---------------------------------------------------------- */

/* Makes a type and adds it to the module. Returns a new reference, or NULL with an exception. */
static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddObject(module, name, Py_NewRef(type))) {
        Py_DECREF(type);
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

/* Imports an attribute of a module. Returns a new reference, or NULL with an exception. */
static PyObject *take_attribute(const char *module, const char *name)
{
    PyObject *from = PyImport_ImportModule(module);
    PyObject *found = from ? PyObject_GetAttrString(from, name) : NULL;
    Py_XDECREF(from);
    return found;
}

/* Fills a new module object. The modules that it imports must not import this one, except inside
 * functions: this one is not complete yet. Returns 0, or -1 with an exception. */
static int module_exec(PyObject *module)
{
    static int counts_forks; /* whether count_fork() is registered; once for all interpreters */
    struct state *s = PyModule_GetState(module);
    if (!counts_forks && pthread_atfork(NULL, NULL, count_fork)) {
        PyErr_NoMemory();
        return -1;
    }
    counts_forks = 1;
    s->make_error = take_attribute("shmview._errors", "make");
    s->make_death = take_attribute("shmview._errors", "make_death");
    s->types = PyImport_ImportModule("shmview._types");
    s->misaligned = take_attribute("shmview._errors", "Misaligned");
    s->format_text = take_attribute("shmview._formats", "format_text");
    if (!s->format_text || !s->misaligned || !s->make_error || !s->make_death || !s->types)
        return -1;
    s->special_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &special_spec, NULL);
    s->bound_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &bound_spec, NULL);
    if (!s->special_type || !s->bound_type)
        return -1;
    s->connection_type = add_type(module, &connection_spec, "Connection");
    s->segment_type = add_type(module, &segment_spec, "Segment");
    s->guard_type = add_type(module, &guard_spec, "Guard");
    s->reading_type = add_type(module, &reading_spec, "Reading");
    s->monitor_type = add_type(module, &monitor_spec, "Monitor");
    s->view_type = add_type(module, &view_spec, "View");
    s->lease_type = add_type(module, &lease_spec, "Lease");
    s->stream_type = add_type(module, &stream_spec, "Stream");
    s->frame_type = add_type(module, &frame_spec, "Frame");
    if (!s->stream_type || !s->frame_type || !s->view_type || !s->lease_type ||
        !s->connection_type || !s->segment_type || !s->guard_type || !s->reading_type ||
        !s->monitor_type)
        return -1;
    if (special_add(s, s->guard_type, "__enter__", guard_enter) ||
        special_add(s, s->guard_type, "__exit__", guard_exit) ||
        special_add(s, s->frame_type, "__enter__", frame_enter) ||
        special_add(s, s->frame_type, "__exit__", frame_exit))
        return -1;
    return PyModule_AddStringConstant(module, "version", shmview_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct state *s = PyModule_GetState(module);
    Py_VISIT((PyObject *)s->connection_type);
    Py_VISIT((PyObject *)s->segment_type);
    Py_VISIT((PyObject *)s->guard_type);
    Py_VISIT((PyObject *)s->reading_type);
    Py_VISIT((PyObject *)s->monitor_type);
    Py_VISIT((PyObject *)s->special_type);
    Py_VISIT((PyObject *)s->bound_type);
    Py_VISIT((PyObject *)s->view_type);
    Py_VISIT((PyObject *)s->lease_type);
    Py_VISIT((PyObject *)s->stream_type);
    Py_VISIT((PyObject *)s->frame_type);
    Py_VISIT(s->misaligned);
    Py_VISIT(s->format_text);
    Py_VISIT(s->make_error);
    Py_VISIT(s->make_death);
    Py_VISIT(s->types);
    Py_VISIT(s->default_connection);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct state *s = PyModule_GetState(module);
    Py_CLEAR(s->default_connection);
    Py_CLEAR(s->connection_type);
    Py_CLEAR(s->segment_type);
    Py_CLEAR(s->guard_type);
    Py_CLEAR(s->reading_type);
    Py_CLEAR(s->monitor_type);
    Py_CLEAR(s->special_type);
    Py_CLEAR(s->bound_type);
    Py_CLEAR(s->view_type);
    Py_CLEAR(s->lease_type);
    Py_CLEAR(s->stream_type);
    Py_CLEAR(s->frame_type);
    Py_CLEAR(s->misaligned);
    Py_CLEAR(s->format_text);
    Py_CLEAR(s->make_error);
    Py_CLEAR(s->make_death);
    Py_CLEAR(s->types);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

/* --- Its table ----------------------------------------------------------- */

#define WITH_KEYWORDS(f) (PyCFunction)(void (*)(void))(f)

static PyMethodDef functions[] = {
    {"create", WITH_KEYWORDS(module_create), METH_VARARGS | METH_KEYWORDS, NULL},
    {"attach", WITH_KEYWORDS(module_attach), METH_VARARGS | METH_KEYWORDS, NULL},
    {"attach_many", module_attach_many, METH_VARARGS, NULL},
    {"remove", WITH_KEYWORDS(module_remove), METH_VARARGS | METH_KEYWORDS,
     "remove(name, *, connection=None)\n--\n\n"
     "Removes the name of a segment at once; the memory goes with the last attachment.\n\n"
     "Raises NotFound, Denied, Invalid, Disconnected."},
    {"trim", module_trim, METH_NOARGS,
     "trim()\n--\n\n"
     "Unmaps all segments that this process has closed. Without it at most 32 mappings with 4 MiB "
     "in\n"
     "all stay for a second or until the next attach() or close() after it, because attaching such "
     "a\n"
     "segment again takes half the time."},
    {"set_access", module_set_access, METH_VARARGS, NULL},
    {"get_access", module_get_access, METH_VARARGS, NULL},
    {"events", module_events, METH_VARARGS, NULL},
    {"wrap", module_wrap, METH_VARARGS, NULL},
    {"from_dlpack", module_from_dlpack, METH_O, NULL},
    {"create_stream", module_create_stream, METH_VARARGS, NULL},
    {"open_stream", module_open_stream, METH_VARARGS, NULL},
    {"wait_any", WITH_KEYWORDS(module_wait_any), METH_VARARGS | METH_KEYWORDS,
     "wait_any(entries, timeout=None)\n--\n\n"
     "Waits until one of several objects is ready, and returns the first one that is. An entry is\n"
     "a Stream (a take() would not wait), a Segment (its counter of changes changes from now on),\n"
     "('change', segment, seen) or ('phase', segment, generation). It takes nothing: another "
     "thread\n"
     "or process may be first. At most 64 entries; they may belong to several daemons.\n\n"
     "Waits for at most timeout seconds (None: as long as necessary), without the GIL. Signal\n"
     "handlers run during the wait.\n\n"
     "Raises TimedOut, NoLock, Lost."},
    {"stats", module_stats, METH_VARARGS, NULL},
    {"format_size", module_format_size, METH_O, NULL},
    {"await_creation", module_await_creation, METH_VARARGS, NULL},
    {"_adopt", module_adopt, METH_VARARGS, NULL},
    {"_default_connection", module_default_connection, METH_O, NULL},
    {"_own_connection", module_own_connection, METH_NOARGS, NULL},
    {"_forget_connections", module_forget_connections, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    /* segment_close() checks and clears the handle without a lock of its own: it relies on the GIL
     * to exclude other threads */
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "shmview._core",
    .m_doc = "The extension module that implements shmview.",
    .m_size = sizeof(struct state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
