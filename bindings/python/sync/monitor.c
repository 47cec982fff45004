/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors: monitor.h has the layout and the rules. */
#include "monitor.h"

#include <string.h>
#include <time.h>

/* How often the processes of a table are asked about, for all waiters together. */
#define ASK_MS 20

/* How long monitor_enter() waits with the GIL: a few times as long as a thread is inside, so that
 * the processes that use a monitor much do not keep one out. */
#define BRIEF_NS 50000

/* How long monitor_enter_until() waits in any case. Processes are inside for moments, so a call
 * that does not wait for anything else must not fail because of them. */
#define PATIENCE_NS 100000000

static void store(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* --- Inside -------------------------------------------------------------- */

/* Carries out the first n noted writes. Skips a write outside the words, because another process
 * may have overwritten the notes. */
static void carry_out(struct monitor *m, uint32_t n)
{
    struct monitor_memory *memory = m->memory;
    for (uint32_t i = 0; i < n && i < MONITOR_WRITES; i++) {
        uint32_t offset = monitor_load(&memory->writes[i].offset);
        if (offset % 4 == 0 && offset >= offsetof(struct monitor_memory, words) &&
            offset < m->base.bytes - 3)
            store((uint32_t *)((char *)memory + offset), monitor_load(&memory->writes[i].value));
    }
    store(&memory->n_writes, 0);
}

void monitor_note(struct monitor *m, uint32_t *word, uint32_t value)
{
    uint32_t i = m->n_writes++;
    store(&m->memory->writes[i].offset, (uint32_t)((char *)word - (char *)m->memory));
    store(&m->memory->writes[i].value, value);
}

void monitor_commit(struct monitor *m)
{
    uint32_t n = m->n_writes;
    m->n_writes = 0;
    store(&m->memory->n_writes, n);
    carry_out(m, n);
}

void monitor_ring(struct monitor *m, int bell, int n)
{
    struct bell *b = &m->memory->bells[bell];
    store(&b->sequence, monitor_load(&b->sequence) + 1);
    /* a thread that is not parked yet will find the new sequence, and set waiting again */
    if (monitor_load(&b->waiting) && shmview_word_wake(&b->sequence, n) < (n > 0 ? n : INT32_MAX))
        store(&b->waiting, 0);
}

/* After a death inside: completes the change, and lets all waiters look. */
static void repair(struct monitor *m)
{
    carry_out(m, monitor_load(&m->memory->n_writes));
    for (int bell = 0; bell < MONITOR_BELLS; bell++)
        monitor_ring(m, bell, 0);
}

/* Waits without the GIL until the mutex is free. Repairs after a death, and gives the mutex back: a
 * thread that took the GIL inside could wait long for it, and so would all processes. Returns 0 or
 * an error. */
static int pass_through(struct monitor *m, int64_t deadline)
{
    int r = shmview_mutex_lock(&m->memory->mutex, deadline);
    if (r == SHMVIEW_OWNER_DIED)
        repair(m);
    return r < 0 ? r : shmview_mutex_unlock(&m->memory->mutex);
}

int monitor_enter_until(struct monitor *m, int64_t deadline)
{
    int r = shmview_mutex_trylock(&m->memory->mutex);
    int64_t end = LIKELY(r >= 0) ? 0 : shmview_deadline(PATIENCE_NS);
    end = deadline > end ? deadline : end;
    while (UNLIKELY(r == -SHMVIEW_ERR_TIMED_OUT)) {
        Py_BEGIN_ALLOW_THREADS;
        r = pass_through(m, end);
        Py_END_ALLOW_THREADS;
        if (r == -SHMVIEW_ERR_TIMED_OUT)
            return MONITOR_OUT;
        if (r == 0)
            r = shmview_mutex_lock(&m->memory->mutex, shmview_deadline(BRIEF_NS));
    }
    if (UNLIKELY(r < 0)) {
        PyErr_SetString(PyExc_RuntimeError, shmview_error_text());
        return -1;
    }
    if (UNLIKELY(r == SHMVIEW_OWNER_DIED))
        repair(m);
    m->n_writes = 0;
    return 0;
}

int monitor_enter(struct monitor *m)
{
    return monitor_enter_until(m, SHMVIEW_FOREVER);
}

void monitor_leave(struct monitor *m)
{
    shmview_mutex_unlock(&m->memory->mutex);
}

int monitor_wait(struct monitor *m, int bell, int64_t deadline)
{
    struct bell *b = &m->memory->bells[bell];
    uint32_t seen = monitor_load(&b->sequence);
    PyThreadState *thread;
    store(&b->waiting, 1);
    monitor_leave(m);
    unlocked_begin(&thread);
    int r = shmview_word_wait(&b->sequence, seen, deadline);
    if (unlocked_end(&thread, r) == -SHMVIEW_ERR_INTERRUPTED)
        return -1;
    int entered = monitor_enter_until(m, deadline);
    if (UNLIKELY(entered))
        return entered;
    return monitor_load(&b->sequence) != seen ? MONITOR_RUNG
           : r == -SHMVIEW_ERR_TIMED_OUT      ? MONITOR_EXPIRED
                                              : MONITOR_QUIET;
}

/* --- Parties ------------------------------------------------------------- */

static bool is_free(const struct party *p)
{
    return !__atomic_load_n(&p->process, __ATOMIC_RELAXED) ||
           (!monitor_load(&p->a) && !monitor_load(&p->b));
}

struct party *monitor_own(struct monitor *m)
{
    struct party *parties = m->memory->parties, *found = NULL;
    uint64_t me;
    if (shmview_process_name(&me))
        return NULL;
    if (LIKELY(m->mine < m->n_parties && parties[m->mine].process == me))
        return &parties[m->mine];
    for (uint32_t i = 0; i < m->n_parties; i++) {
        if (parties[i].process == me) {
            m->mine = i;
            return &parties[i];
        }
        if (!found && is_free(&parties[i]))
            found = &parties[i];
    }
    if (found) {
        m->mine = (uint32_t)(found - parties);
        uint32_t halves[2];
        memcpy(halves, &me, sizeof me);
        monitor_note(m, (uint32_t *)&found->process, halves[0]);
        monitor_note(m, (uint32_t *)&found->process + 1, halves[1]);
    }
    return found;
}

struct party *monitor_dead(struct monitor *m, bool now)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint32_t ms = (uint32_t)t.tv_sec * 1000 + (uint32_t)t.tv_nsec / 1000000;
    if (!now && ms - monitor_load(&m->memory->asked_ms) < ASK_MS)
        return NULL;
    store(&m->memory->asked_ms, ms);
    for (uint32_t i = 0; i < m->n_parties; i++) {
        struct party *p = &m->memory->parties[i];
        if (!is_free(p) && shmview_process_has_ended(p->process))
            return p;
    }
    return NULL;
}

/* --- Objects ------------------------------------------------------------- */

int monitor_warn(struct monitor *m, uint32_t pid, const char *text)
{
    PyObject *done = PyObject_CallMethod(m->base.state->helpers, "_tell_death", "Is", pid, text);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Initializes new memory. Returns 0, or -1 with an exception. */
static int init(struct monitor *m, PyObject *words)
{
    if (shmview_mutex_init(&m->memory->mutex, SHMVIEW_MUTEX_OF_PROCESSES)) {
        PyErr_SetString(PyExc_OSError, shmview_error_text());
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(words) && i < MONITOR_WORDS; i++)
        m->memory->words[i] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(words, i));
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *monitor_new(PyTypeObject *type, PyObject *args, uint32_t kind, uint32_t table)
{
    PyObject *words;
    struct monitor *m =
        (struct monitor *)shared_new(type, args, kind, MONITOR_PARTIES + table, &words);
    if (!m)
        return NULL;
    m->memory = m->base.memory;
    m->n_parties =
        (table ? table : m->base.bytes - MONITOR_PARTIES) / (uint32_t)sizeof(struct party);
    if (words && init(m, words))
        Py_CLEAR(m);
    return (PyObject *)m;
}
