/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/family.h - memory without a name, and mutexes in it, for a family of processes. No call
 * here needs a daemon.
 *
 *     struct results { struct shmview_mutex mutex; double sum; } *results;
 *     struct shmview_anonymous memory;
 *     shmview_anonymous_create(sizeof *results, &memory);
 *     results = memory.data;
 *     shmview_mutex_init(&results->mutex, SHMVIEW_MUTEX_OF_THREADS);
 *     if (fork() == 0) {
 *         shmview_mutex_lock(&results->mutex, SHMVIEW_FOREVER);
 *         results->sum += part;
 *         shmview_mutex_unlock(&results->mutex);
 *     }
 *
 * shmview_wrap() makes the memory a segment, for views of it.
 *
 * Every call may be made by any thread, and by a forked child at once. No call is a cancellation
 * point. Each that fails returns a negative SHMVIEW_ERR_*, whose text is in shmview_error_text().
 */
#ifndef SHMVIEW_FAMILY_H
#define SHMVIEW_FAMILY_H

#include <stdint.h>

#include <shmview/mutex_layout.h>
#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Memory -------------------------------------------------------------- */

/* Memory that exists as long as a process has it mapped or has its descriptor open. A child gets
 * it by fork; another process gets the descriptor, by SCM_RIGHTS for example, and opens that.
 * Whoever has the descriptor may truncate the memory, after which a touch of it raises SIGBUS. */
struct shmview_anonymous {
    void *data; /* byte 0; page-aligned, readable and writable */
    uint64_t bytes;
    int fd; /* close-on-exec; owned by this struct */
    int reserved;
};

/* Creates bytes of zeroed memory, all of it committed: an unlinked file in /dev/shm, whose limit
 * it counts against, or a memfd where /dev/shm takes no such file. The caller owes
 * shmview_anonymous_close(). Takes some 0.3 s for each GiB;
 * a signal lets shmview_on_wait() end it.
 * Returns 0, -SHMVIEW_ERR_INVALID (0 bytes, or more than a process can map), _NO_SPACE, _NO_MEMORY,
 * _SYSTEM or _INTERRUPTED; but for _INVALID and _INTERRUPTED errno has the cause. */
int shmview_anonymous_create(uint64_t bytes, struct shmview_anonymous *ret_memory);

/* Maps the memory that fd is of. On success fd belongs to *ret_memory, and the caller owes
 * shmview_anonymous_close(); on failure it stays the caller's. Does not block.
 * Returns 0, -SHMVIEW_ERR_INVALID (fd is of no memory, or of 0 bytes), _NO_MEMORY or _SYSTEM; but
 * for _INVALID errno has the cause. */
int shmview_anonymous_open(int fd, struct shmview_anonymous *ret_memory);

/* Unmaps the memory, closes its descriptor, and zeroes *memory, of which the descriptor is then -1.
 * Does not block. Never fails. */
void shmview_anonymous_close(struct shmview_anonymous *memory);

/* --- Mutex --------------------------------------------------------------- */

/* A mutex, which survives the death of its owner at any instant. struct shmview_mutex is 64 bytes
 * of shared memory, aligned to 64 for speed, and copied to no other place. There is nothing to be
 * given back with the memory. An uncontended pair of calls makes no system call.
 *
 * The owner is a thread or a process. If it has died, the next locker owns the mutex and is told so
 * by SHMVIEW_OWNER_DIED: the bytes that the mutex guards may be half written. A waiter asks the
 * kernel for the owner 4 ms after it began to wait and every 40 ms from then on, so that it
 * learns of a death that much later. A stopped owner is alive. A process that replaces itself by
 * exec is alive as well: a mutex of processes that it owns stays its own until it ends.
 *
 * All processes that use a mutex must be in one pid namespace, because ids of another one name
 * other processes, and in one time namespace, because the times at which they began are read from
 * its clock. */

/* The owner is a thread, which may lock again, and only the owner may unlock. A thread that ends
 * has died. Like multiprocessing.RLock. */
#define SHMVIEW_MUTEX_OF_THREADS 1
/* The owner is a process, for which the mutex is not recursive: a second lock waits for the
 * unlock. Any process may unlock. Like multiprocessing.Lock. */
#define SHMVIEW_MUTEX_OF_PROCESSES 2

/* Makes 64 bytes of shared memory an unlocked mutex. Only one process may do so, before others use
 * it. Does not block.
 * Returns 0, -SHMVIEW_ERR_INVALID (kind is unknown, mutex not aligned to 8), _NO_MEMORY or
 * _SYSTEM. */
int shmview_mutex_init(struct shmview_mutex *mutex, int kind);

/* Locks, waiting until deadline_ns at the latest: absolute nanoseconds of CLOCK_MONOTONIC, see
 * shmview_deadline(). SHMVIEW_FOREVER waits as long as it takes, 0 tries once. shmview_on_wait()
 * ends the wait.
 * Returns 0; SHMVIEW_OWNER_DIED (1): the mutex is locked, and an owner died inside whose damage no
 * unlock has settled; or, holding nothing, -SHMVIEW_ERR_TIMED_OUT, _INTERRUPTED, _TOO_DEEP (2^32
 * nested), _INVALID (no mutex, or one of another pid or time namespace), _LAYOUT_VERSION,
 * _NO_MEMORY or _SYSTEM (both from a process' first call only). A nested call returns 0 in any
 * case. */
int shmview_mutex_lock(struct shmview_mutex *mutex, int64_t deadline_ns);

/* Like shmview_mutex_lock(), but never waits and makes no system call: -SHMVIEW_ERR_TIMED_OUT if
 * the mutex is another's, even if that is dead. shmview_mutex_lock() with 0 asks the kernel for it.
 */
int shmview_mutex_trylock(struct shmview_mutex *mutex);

/* Unlocks, of a recursive mutex once. Does not block.
 * Returns 0, -SHMVIEW_ERR_NOT_OWNER (nothing is changed: this thread does not own a mutex of
 * threads, or no process owns a mutex of processes), or as shmview_mutex_lock() _INVALID,
 * _LAYOUT_VERSION, _NO_MEMORY or _SYSTEM. */
int shmview_mutex_unlock(struct shmview_mutex *mutex);

/* Like shmview_mutex_unlock(), but the next owner gets SHMVIEW_OWNER_DIED: the bytes are not in
 * order. Of a recursive mutex it must be the last unlock that is made by this call. */
int shmview_mutex_unlock_not_repaired(struct shmview_mutex *mutex);

struct shmview_mutex_status {
    int is_held;
    int is_mine;    /* by this thread, or of a mutex of processes by this process */
    uint32_t depth; /* while it is mine: how many times it is locked; else 0 */
    uint32_t pid;   /* of the owner's process; 0: not held, or not known yet */
    uint32_t died;  /* process id of the owner that died inside, until an unlock settles it; or 0 */
    uint32_t reserved;
};

/* Reports who owns the mutex, without locking it. Does not block.
 * Returns 0, or as shmview_mutex_lock() -SHMVIEW_ERR_INVALID, _LAYOUT_VERSION, _NO_MEMORY or
 * _SYSTEM. */
int shmview_mutex_query(struct shmview_mutex *mutex, struct shmview_mutex_status *ret_status);

#ifdef __cplusplus
}
#endif
#endif
