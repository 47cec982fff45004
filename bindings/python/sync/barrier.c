/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier: the words of one, and the processes that belong to it.
 *
 * A generation is one filling of the barrier. It ends when the last party opens the barrier, or by
 * a failure: abort(), reset(), a timeout, or the death of a process that belongs to the barrier.
 * Each waiter knows its generation, and finds in a word of bits how its generation has ended,
 * whatever happened since. A process belongs to the barrier from its first wait, or from join(), to
 * leave(). If it ends in between, it was killed, and its partners cannot wait for it. */
#include "monitor.h"

/* The words of a barrier. */
enum {
    TOTAL,      /* how many parties open the barrier */
    COUNT,      /* how many have arrived in this generation. TOTAL: the last one runs the action */
    GENERATION, /* of this filling */
    FAILED,     /* a bit of each of the last 32 generations: it has failed */
    BROKEN,     /* until reset() */
};
#define MOVED 0 /* the bell */

/* Inside: ends the generation. */
static void end_generation(struct monitor *m, bool failed, bool broken)
{
    uint32_t generation = monitor_word(m, GENERATION), bit = UINT32_C(1) << generation % 32,
             bits = monitor_word(m, FAILED);
    monitor_note_word(m, FAILED, failed ? bits | bit : bits & ~bit);
    monitor_note_word(m, GENERATION, generation + 1);
    monitor_note_word(m, COUNT, 0);
    monitor_note_word(m, BROKEN, broken);
    monitor_commit(m);
    monitor_ring(m, MOVED, 0);
}

/* Inside, after a wait that was not ended by the bell: breaks the barrier if a process that belongs
 * to it was killed, or if the deadline has passed. */
static void judge(struct monitor *m, int how)
{
    bool failed = how == MONITOR_EXPIRED;
    for (struct party *p; (p = monitor_dead(m, failed)); failed = true) {
        monitor_note(m, &p->a, 0);
        monitor_commit(m);
    }
    if (failed && !monitor_word(m, BROKEN))
        end_generation(m, true, true);
}

/* Inside: like monitor_wait(), but is inside again unless it returns -1, because a party that gives
 * up breaks the barrier, and can do that only inside. */
static int wait_for_move(struct monitor *m, int64_t deadline)
{
    int how = monitor_wait(m, MOVED, deadline);
    if (how != MONITOR_OUT)
        return how;
    return monitor_enter(m) ? -1 : MONITOR_EXPIRED;
}

/* Inside: waits until the barrier takes parties again, or is broken. Returns 0, or -1 with an
 * exception and outside. */
static int wait_for_turn(struct monitor *m, int64_t deadline)
{
    while (!monitor_word(m, BROKEN) && monitor_word(m, COUNT) >= monitor_word(m, TOTAL)) {
        int how = wait_for_move(m, deadline);
        if (how < 0)
            return -1;
        if (how != MONITOR_RUNG)
            judge(m, how);
    }
    return 0;
}

/* After an exception during the wait: this party has not arrived. */
static void withdraw(struct monitor *m, uint32_t generation)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (monitor_enter(m) == 0) {
        uint32_t count = monitor_word(m, COUNT);
        if (monitor_word(m, GENERATION) == generation && count && count < monitor_word(m, TOTAL)) {
            monitor_note_word(m, COUNT, count - 1);
            monitor_commit(m);
        }
        monitor_leave(m);
    }
    PyErr_Restore(type, value, trace);
}

/* Inside: counts this party. */
static void count_in(struct monitor *m, uint32_t index)
{
    struct party *own = monitor_own(m);
    if (own)
        monitor_note(m, &own->a, 1);
    monitor_note_word(m, COUNT, index + 1);
    monitor_commit(m);
}

/* arrive(timeout): returns (index, generation), for the last party at once, for the others when it
 * has opened the barrier; or None if the barrier is broken. */
static PyObject *arrive(PyObject *op, PyObject *timeout)
{
    struct monitor *m = (struct monitor *)op;
    int64_t deadline;
    if (deadline_of(timeout, &deadline) || monitor_enter(m) || wait_for_turn(m, deadline))
        return NULL;
    if (monitor_word(m, BROKEN)) {
        monitor_leave(m);
        Py_RETURN_NONE;
    }
    uint32_t index = monitor_word(m, COUNT), generation = monitor_word(m, GENERATION);
    count_in(m, index);
    bool is_last = index + 1 >= monitor_word(m, TOTAL);
    while (!is_last && monitor_word(m, GENERATION) == generation) {
        int how = wait_for_move(m, deadline);
        if (how < 0) {
            withdraw(m, generation);
            return NULL;
        }
        if (how != MONITOR_RUNG && monitor_word(m, GENERATION) == generation)
            judge(m, how);
    }
    bool failed = !is_last && monitor_word(m, FAILED) >> generation % 32 & 1;
    monitor_leave(m);
    if (failed)
        Py_RETURN_NONE;
    return Py_BuildValue("II", index, generation);
}

/* open(generation): the last party lets all go. Returns whether the generation had not failed. */
static PyObject *open_(PyObject *op, PyObject *arg)
{
    struct monitor *m = (struct monitor *)op;
    unsigned long generation = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred() || monitor_enter(m))
        return NULL;
    bool fits = monitor_word(m, GENERATION) == generation && !monitor_word(m, BROKEN);
    if (fits)
        end_generation(m, false, false);
    monitor_leave(m);
    return PyBool_FromLong(fits);
}

static PyObject *end(PyObject *op, bool broken)
{
    struct monitor *m = (struct monitor *)op;
    if (monitor_enter(m))
        return NULL;
    end_generation(m, true, broken);
    monitor_leave(m);
    Py_RETURN_NONE;
}

static PyObject *abort_(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return end(op, true);
}

static PyObject *reset(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return end(op, false);
}

/* Notes whether this process belongs to the barrier. */
static PyObject *belong(PyObject *op, bool belongs)
{
    struct monitor *m = (struct monitor *)op;
    if (monitor_enter(m))
        return NULL;
    struct party *own = monitor_own(m);
    if (own) {
        monitor_note(m, &own->a, belongs);
        monitor_commit(m);
    }
    monitor_leave(m);
    Py_RETURN_NONE;
}

static PyObject *join(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return belong(op, true);
}

static PyObject *leave(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return belong(op, false);
}

/* state(): (parties, n_waiting, broken) */
static PyObject *state(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct monitor *m = (struct monitor *)op;
    return Py_BuildValue("IIN", monitor_word(m, TOTAL), monitor_word(m, COUNT),
                         PyBool_FromLong(monitor_word(m, BROKEN)));
}

static PyObject *barrier_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return monitor_new(type, args, MONITOR_BARRIER, 0);
}

static PyMethodDef methods[] = {
    {"arrive", arrive, METH_O, NULL},     {"open", open_, METH_O, NULL},
    {"abort", abort_, METH_NOARGS, NULL}, {"reset", reset, METH_NOARGS, NULL},
    {"join", join, METH_NOARGS, NULL},    {"leave", leave, METH_NOARGS, NULL},
    {"state", state, METH_NOARGS, NULL},  {NULL, NULL, 0, NULL},
};
SHARED_SPEC(barrier, "Barrier", struct monitor);
