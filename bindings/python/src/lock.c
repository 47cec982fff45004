/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a segment.
 *
 * Calls that neither wait nor send a request run with the GIL held, because releasing and taking
 * the GIL costs more than the lock itself. So each way to take the lock first tries it with the
 * GIL, and waits without the GIL only if that fails. is_entered() decides when the first attempt
 * must be skipped.
 *
 * One rule holds for every method: a call that raises does not hold the lock. OwnerDied is an
 * exception, so a caller that gets it has to use recover(), which declares that it will repair the
 * bytes. lock_take() itself returns with the lock held, because recover() needs it so. */
#include "segment.h"

#include <stddef.h>
#include <string.h>

/* --- Taking and giving --------------------------------------------------- */

/* Tries to take the lock, with the GIL held. */
static int try_lock(struct shmview_segment *handle, int mode)
{
    return mode == SHMVIEW_SHARED ? shmview_trylock_shared(handle) : shmview_trylock(handle);
}

/* Stands for the result of try_lock() if it was not called, because the call might send a request.
 * It equals the result of a failed attempt, since the same step follows: wait_lock() without the
 * GIL. */
#define NOT_TRIED (-SHMVIEW_ERR_TIMED_OUT)

/* Takes the lock, and waits for it until the deadline. Stores the result in *ret as well, because
 * UNLOCKED_CALL() replaces the returned one if a signal handler has raised. */
static int wait_lock(struct shmview_segment *handle, int mode, int64_t deadline, int *ret)
{
    return *ret = mode == SHMVIEW_SHARED ? shmview_lock_shared_until(handle, deadline)
                                         : shmview_lock_until(handle, deadline);
}

/* Gives back a lock that was taken in vain. taken is the result of taking it. */
static void give_as_it_was(struct shmview_segment *handle, int taken)
{
    if (taken == SHMVIEW_OWNER_DIED)
        shmview_unlock_not_repaired(handle); /* so that the next owner gets the report as well */
    else
        shmview_unlock(handle);
}

/* Returns an OwnerDied with the facts of the last death, which is not raised, or NULL with an
 * exception. The calling thread must hold the lock: the facts are valid until it unlocks. */
static PyObject *describe_death(struct segment *segment)
{
    struct shmview_segment *handle = segment->handle;
    struct shmview_death death = {0};
    struct shmview_phase phase = {0};
    shmview_owner_died(handle, &death);
    shmview_phase_read(handle, &phase); /* sends no request, because the lock is held */
    if (phase.generation != death.phase)
        phase.name[0] = '\0'; /* another phase has begun since, so this is not its name */
    PyObject *command = PyUnicode_DecodeFSDefault(death.command);
    if (!command)
        return NULL;
    return PyObject_CallFunction(segment->state->make_death, "sIIzNd", shmview_name(handle),
                                 death.pid, death.phase, phase.name[0] ? phase.name : NULL, command,
                                 (double)death.when_ns / 1e9);
}

/* Takes the lock without the GIL. Returns the result of wait_lock(); or -SHMVIEW_ERR_INTERRUPTED
 * with the exception of a signal handler, and does not hold the lock then. */
static int take_unlocked(struct segment *segment, int mode, int64_t deadline)
{
    struct shmview_segment *handle = segment->handle;
    int r, taken;
    SEGMENT_CALL(segment, r, wait_lock(handle, mode, deadline, &taken));
    if (taken >= 0 || taken == -SHMVIEW_ERR_TIMED_OUT)
        segment->entered = n_forks;
    if (r == -SHMVIEW_ERR_INTERRUPTED && taken >= 0)
        give_as_it_was(handle, taken);
    return r;
}

/* Does the rest of lock_take() after an attempt that returned r; or without one, if r is NOT_TRIED.
 * Returns what lock_take() does. */
static int take_after(struct segment *segment, int mode, int64_t deadline, int r,
                      PyObject **ret_died)
{
    if (r == -SHMVIEW_ERR_TIMED_OUT && (deadline != 0 || !is_entered(segment)))
        r = take_unlocked(segment, mode, deadline);
    if (LIKELY(r == 0))
        return 0;
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        return LOCK_TIMED_OUT;
    if (r < 0) {
        raise_error(segment->state, r, NULL);
        return -1;
    }
    call_begins(segment); /* describe_death() runs Python code, so another thread may close() */
    *ret_died = describe_death(segment);
    call_ends(segment);
    if (*ret_died)
        return SHMVIEW_OWNER_DIED;
    shmview_unlock_not_repaired(segment->handle);
    return -1;
}

int lock_take(struct segment *segment, int mode, int64_t deadline, PyObject **ret_died)
{
    struct shmview_segment *handle = segment_use(segment);
    if (UNLIKELY(!handle))
        return -1;
    int r = is_entered(segment) ? try_lock(handle, mode) : NOT_TRIED;
    return LIKELY(r == 0) ? 0 : take_after(segment, mode, deadline, r, ret_died);
}

static int give(struct shmview_segment *handle, bool repaired)
{
    return repaired ? shmview_unlock(handle) : shmview_unlock_not_repaired(handle);
}

int lock_give(struct segment *segment, bool repaired)
{
    int r;
    if (UNLIKELY(!segment->handle))
        segment_settle(segment); /* a detach is refused because this thread holds the lock */
    /* Also if the segment was closed early since, or another thread is freezing it. */
    struct shmview_segment *handle = segment->parked ? segment->parked : segment_use(segment);
    if (UNLIKELY(!handle))
        return -1;
    if (is_entered(segment))
        r = give(handle, repaired);
    else
        SEGMENT_CALL(segment, r, give(handle, repaired));
    if (LIKELY(r == 0))
        return 0;
    raise_error(segment->state, r, NULL);
    return -1;
}

/* Gives the lock back not repaired, and raises the OwnerDied that lock_take() has made. Takes over
 * the reference to died. */
static void raise_death(struct segment *segment, PyObject *died)
{
    shmview_unlock_not_repaired(segment->handle);
    PyErr_SetObject((PyObject *)Py_TYPE(died), died);
    Py_DECREF(died);
}

/* Converts the result of lock_take() for a caller that does not repair: raises OwnerDied or
 * TimedOut. Returns 0, or -1 with an exception. */
static int raise_unless_held(struct segment *segment, int r, PyObject *died)
{
    if (r == SHMVIEW_OWNER_DIED)
        raise_death(segment, died);
    else if (r == LOCK_TIMED_OUT)
        raise_error(segment->state, -SHMVIEW_ERR_TIMED_OUT, NULL);
    return r ? -1 : 0;
}

int lock_hold(struct segment *segment, int mode, int64_t deadline)
{
    PyObject *died = NULL;
    int r = lock_take(segment, mode, deadline, &died);
    return LIKELY(r == 0) ? 0 : raise_unless_held(segment, r, died);
}

/* --- Methods ------------------------------------------------------------- */

PyObject *segment_lock(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"timeout", "shared", NULL};
    PyObject *timeout = Py_None;
    int shared = 0;
    int64_t deadline;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$p:lock", keywords, &timeout, &shared) ||
        parse_timeout(timeout, &deadline) ||
        lock_hold((struct segment *)op, shared ? SHMVIEW_SHARED : SHMVIEW_EXCLUSIVE, deadline))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *segment_trylock(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"shared", NULL};
    struct segment *self = (struct segment *)op;
    PyObject *died;
    int shared = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:trylock", keywords, &shared))
        return NULL;
    int r = lock_take(self, shared ? SHMVIEW_SHARED : SHMVIEW_EXCLUSIVE, 0, &died);
    if (r == SHMVIEW_OWNER_DIED) {
        raise_death(self, died);
        return NULL;
    }
    return r < 0 ? NULL : PyBool_FromLong(r == 0);
}

PyObject *segment_unlock(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"repaired", NULL};
    int repaired = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:unlock", keywords, &repaired) ||
        lock_give((struct segment *)op, repaired))
        return NULL;
    Py_RETURN_NONE;
}

/* --- Status -------------------------------------------------------------- */

static const char *role_name(uint32_t role)
{
    switch (role) {
    case SHMVIEW_HOLDS:
        return "holds";
    case SHMVIEW_HOLDS_SHARED:
        return "holds shared";
    case SHMVIEW_WAITS:
        return "waits";
    case SHMVIEW_WAITS_TO_SHARE:
        return "waits to share";
    default:
        return "unknown";
    }
}

/* Returns a tuple with a tuple of the members of a LockParty for each party, or NULL. */
static PyObject *build_parties(const struct shmview_lock_party *parties, size_t n)
{
    PyObject *list = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        const struct shmview_lock_party *p = &parties[i];
        PyObject *item =
            Py_BuildValue("sINId", role_name(p->role), p->pid,
                          PyUnicode_DecodeFSDefaultAndSize(
                              p->command, (Py_ssize_t)strnlen(p->command, sizeof p->command)),
                          p->slot, (double)p->since_ns / 1e9);
        if (!item)
            Py_CLEAR(list);
        else
            PyTuple_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

/* If the lock cannot be queried, it is not held: there is none, or this process has lost it. */
bool lock_is_held_here(struct shmview_segment *handle)
{
    struct shmview_lock_status status;
    return shmview_lock_query(handle, &status, NULL, 0) == 0 && status.is_held_here;
}

/* More parties than that are counted, but not listed. */
#define PARTIES_MAX 256

PyObject *segment_lock_status(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    struct shmview_lock_status status;
    if (!handle)
        return NULL;
    struct shmview_lock_party *parties = PyMem_Calloc(PARTIES_MAX, sizeof *parties);
    if (!parties)
        return PyErr_NoMemory();
    PyObject *told = NULL;
    int r;
    SEGMENT_CALL(self, r, shmview_lock_query(handle, &status, parties, PARTIES_MAX));
    if (r) {
        raise_error(self->state, r, NULL);
    } else {
        size_t n = status.n_parties < PARTIES_MAX ? status.n_parties : PARTIES_MAX;
        PyObject *list = build_parties(parties, n);
        if (list)
            told = PyObject_CallMethod(self->state->types, "make_lock_status", "iiiNn",
                                       status.is_held, status.owner_is_dead, status.is_dirty, list,
                                       (Py_ssize_t)status.n_parties);
    }
    PyMem_Free(parties);
    return told;
}
