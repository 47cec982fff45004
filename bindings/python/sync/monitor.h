/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - shared memory that processes change and wait for, and that survives the death of each
 * of them at any instant: the state of Semaphore, Barrier and the queues.
 *
 * A monitor is a mutex of the family, words that it guards, bells to wait on, and a table of the
 * processes that own a part of the state. Three rules make it survive deaths:
 *
 *   A change is one step. Its writes are noted first, and carried out after their number was
 *   stored. If a process dies in between, the next one in the monitor carries them out again. A
 *   process that dies earlier has changed nothing.
 *
 *   A wait is bounded. It ends after 0.1 s at the latest, and the waiter looks at the words again.
 *   So a wake-up that dies with a process delays the others, and stops none.
 *
 *   A part has an owner. What a process has taken and not given back is in its own entry of the
 *   table. A waiter for which nothing has changed for 0.1 s asks the kernel about these processes,
 *   and gives back the parts of those that have ended.
 *
 * tests/model/monitor.pml is a model of these rules. All words are native-endian u32, except the
 * names of processes. Processes of a family trust each other, but wrong bytes must not harm one:
 * each number that serves as an index or a size is checked after it was read.
 *
 *     0  kind                 MONITOR_...
 *     4  n_writes             of the change that is being carried out; 0: none
 *     8  asked_ms             when a waiter last asked the kernel about the table; modulo 2^32
 *    16  bells[4]             {sequence, waiting}: each ring adds 1 to sequence, on which waiters
 *                             park; waiting is 0 if no thread can be parked
 *    64  mutex                of processes: shmview/mutex_layout.h
 *   128  writes[10]           {offset, value}
 *   208  words[12]            of the kind
 *   256  parties[n]           {process u64, a u32, b u32}; n follows from the size of the memory
 */
#ifndef SYNC_MONITOR_H
#define SYNC_MONITOR_H

#include "shared.h"

/* The kinds: letters, so that other memory is refused. */
#define MONITOR_SEMAPHORE 0x736d6553u
#define MONITOR_BARRIER   0x72726142u
#define MONITOR_QUEUE     0x65756551u

#define MONITOR_BELLS   4
#define MONITOR_WRITES  10
#define MONITOR_WORDS   12
#define MONITOR_PARTIES 256 /* their offset */

struct party {
    uint64_t process; /* shmview_process_name(); 0: a free entry */
    uint32_t a, b;    /* of the kind: how many parts the process owns. Both 0: a free entry */
};

struct bell {
    uint32_t sequence, waiting;
};

/* A monitor in shared memory. */
struct monitor_memory {
    uint32_t kind, n_writes, asked_ms, reserved;
    struct bell bells[MONITOR_BELLS];
    uint32_t reserved_too[4];
    struct shmview_mutex mutex;
    struct {
        uint32_t offset, value;
    } writes[MONITOR_WRITES];
    uint32_t words[MONITOR_WORDS];
    struct party parties[];
};
_Static_assert(offsetof(struct monitor_memory, bells) == 16, "as above");
_Static_assert(offsetof(struct monitor_memory, mutex) == 64, "as above");
_Static_assert(offsetof(struct monitor_memory, writes) == 128, "as above");
_Static_assert(offsetof(struct monitor_memory, words) == 208, "as above");
_Static_assert(offsetof(struct monitor_memory, parties) == MONITOR_PARTIES, "as above");

/* The object of one process for a monitor. */
struct monitor {
    struct shared base;
    struct monitor_memory *memory;
    uint32_t n_parties;
    uint32_t mine;     /* where the entry of this process was last; a guess */
    uint32_t n_writes; /* of the change that is being noted. Only the thread inside uses it */
};

/* Makes a monitor; args as in shared_new(). table: the bytes of the table; 0: all that follows. */
PyObject *monitor_new(PyTypeObject *type, PyObject *args, uint32_t kind, uint32_t table);

/* Enter and leave. monitor_enter() first completes the change of a process that died inside. It
 * waits without the GIL, for moments only, and runs no signal handlers. Returns 0, or -1 with an
 * exception and outside. The thread inside has the GIL already, so that the others never wait for
 * the GIL of its process, and must not run Python code. */
int monitor_enter(struct monitor *m);
/* Like monitor_enter(), but returns MONITOR_OUT and is outside if the deadline has passed, and
 * another process has been inside for 0.1 s: it is stopped, or gets no processor. */
int monitor_enter_until(struct monitor *m, int64_t deadline);
void monitor_leave(struct monitor *m);

/* Inside: notes that a word of the memory gets a value; monitor_commit() carries all of it out. A
 * change has at most MONITOR_WRITES writes. */
void monitor_note(struct monitor *m, uint32_t *word, uint32_t value);
void monitor_commit(struct monitor *m);
/* Inside: wakes n threads, or all for 0, that wait for this bell. */
void monitor_ring(struct monitor *m, int bell, int n);

enum monitor_waited {
    MONITOR_RUNG,    /* the bell was rung */
    MONITOR_QUIET,   /* it was not, for 0.1 s */
    MONITOR_EXPIRED, /* the deadline has passed */
    MONITOR_OUT,     /* likewise, and the caller is outside: see monitor_enter_until() */
};
/* Inside: leaves, waits without the GIL until the bell is rung, and enters again. Returns how the
 * wait ended, or -1 with an exception and outside. Without a deadline it never returns MONITOR_OUT.
 */
int monitor_wait(struct monitor *m, int bell, int64_t deadline);

/* Inside: returns the entry of this process, or the one that it may take; then the entry is noted
 * as its own. Returns NULL if all entries belong to others: its parts have no owner then. */
struct party *monitor_own(struct monitor *m);
/* Inside: returns an entry with parts of a process that has ended, or NULL. With `now` asks the
 * kernel in any case, otherwise at most every 20 ms for all processes together. */
struct party *monitor_dead(struct monitor *m, bool now);

static inline uint32_t monitor_load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}
static inline uint32_t monitor_word(const struct monitor *m, int word)
{
    return monitor_load(&m->memory->words[word]);
}
static inline void monitor_note_word(struct monitor *m, int word, uint32_t value)
{
    monitor_note(m, &m->memory->words[word], value);
}

/* Outside: issues OwnerDiedWarning with a text that is not about a lock. Returns 0, or -1 if a
 * filter has made it an exception. */
int monitor_warn(struct monitor *m, uint32_t pid, const char *text);

#endif
