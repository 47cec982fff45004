/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/family.h - memory without a name, mutexes in it, and words to wait on, for a family of
 * processes: a program and its children, or programs that pass each other a descriptor.
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
 * No call here needs a daemon. A segment of shmview.h has a name, rights, and a lock whose waiters
 * learn from the daemon that the owner has died. Use segments for programs that do not know each
 * other. shmview_wrap() makes a segment of the memory, so that views of it can be made.
 *
 * Trust. All processes that have the memory trust each other. Each of them can overwrite its bytes
 * and its mutexes, or truncate it, and then an access to a missing page raises SIGBUS. Wrong bytes
 * can make a mutex useless, but they hold no address that the library would follow.
 *
 * Results. The calls return 0 on success and a negated enum shmview_error on failure. _NAME is
 * short for -SHMVIEW_ERR_NAME. After a failure the out parameters are unchanged, and
 * shmview_error_text() returns a sentence.
 *
 * Threads and fork. Any thread may make any call at any time, and so may a forked child at once. No
 * call is a cancellation point. As with the calls of shmview.h, a program must make none of them
 * after vfork() or in a signal handler. */
#ifndef SHMVIEW_FAMILY_H
#define SHMVIEW_FAMILY_H

#include <stdint.h>

#include <shmview/mutex_layout.h>
#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Memory -------------------------------------------------------------- */

/* Memory that exists as long as a process has it mapped or has its descriptor open. A child
 * inherits it by fork. Another process gets the descriptor, for example by SCM_RIGHTS, and passes
 * it to shmview_anonymous_open(). */
struct shmview_anonymous {
    void *data; /* byte 0; page-aligned, readable and writable */
    uint64_t bytes;
    int fd; /* close-on-exec; owned by this struct */
    int reserved;
};

/* Creates bytes of memory, filled with zeros. All of it is allocated before the call returns, so
 * that no later access can fail for lack of memory. The memory is an unlinked file in /dev/shm and
 * counts against the limit of that file system. If /dev/shm takes no such file, it is a memfd.
 *
 * The caller must pass *ret_memory to shmview_anonymous_close(). Blocks until the memory is
 * allocated, about 0.3 s for each GiB. If a signal interrupts that, the call runs the function
 * given to shmview_on_wait(), which may end it.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_SPACE if there is not enough shared memory,
 * _INVALID for 0 bytes or more than a process can map, _INTERRUPTED by shmview_on_wait(),
 * _NO_MEMORY or _SYSTEM. Except after _INVALID and _INTERRUPTED, errno has the cause. */
int shmview_anonymous_create(uint64_t bytes, struct shmview_anonymous *ret_memory);

/* Maps all of the memory to which the descriptor fd belongs. On success *ret_memory owns fd, and
 * the caller must pass it to shmview_anonymous_close(). On failure the caller keeps fd. Does not
 * block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID if fd is not memory or has 0 bytes, _NO_MEMORY
 * or _SYSTEM. Except after _INVALID, errno has the cause. */
int shmview_anonymous_open(int fd, struct shmview_anonymous *ret_memory);

/* Unmaps the memory and closes its descriptor. Sets *memory to zeros and its descriptor to -1, so
 * that it may be closed again. Other processes keep the memory. Does not block. Never fails. */
void shmview_anonymous_close(struct shmview_anonymous *memory);

/* --- Mutex --------------------------------------------------------------- */

/* A mutex survives the death of its owner at any instant. struct shmview_mutex is 64 bytes of
 * shared memory, see mutex_layout.h. It must be aligned to 8, and should be aligned to 64, so that
 * it lies in one cache line. It must not be copied to another place. Nothing has to be released
 * before its memory. Locking and unlocking a mutex that nobody else uses makes no system call.
 *
 * Death. If the owner has died, the next locker gets the mutex and SHMVIEW_OWNER_DIED, because the
 * bytes that the mutex guards may be half written. It must repair them and unlock, or call
 * shmview_mutex_unlock_not_repaired(), after which the next owner gets SHMVIEW_OWNER_DIED again. No
 * daemon notices the death here. Instead a waiter asks the kernel for the owner 4 ms after it began
 * to wait, and every 40 ms from then on, so that it learns of a death that much later.
 *
 * A stopped owner is alive. So is a process that replaces its program by exec: it keeps a mutex of
 * processes until it ends.
 *
 * All processes that use a mutex must be in one pid namespace, because the ids of owners name other
 * processes in another one, and in one time namespace, because the times at which owners began are
 * read from its clock. */

/* Kinds of mutexes. */

/* The owner is a thread. It may lock the mutex again, and must unlock it as often; no other thread
 * may unlock it. A thread that has ended counts as dead. Like multiprocessing.RLock. */
#define SHMVIEW_MUTEX_OF_THREADS 1
/* The owner is a process. If one of its threads locks the mutex again, that call waits for the
 * unlock. Any process may unlock it. Like multiprocessing.Lock. */
#define SHMVIEW_MUTEX_OF_PROCESSES 2

/* Makes 64 bytes of shared memory an unlocked mutex. kind is one of the above. Only one process may
 * do so, before others use the mutex. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID for an unknown kind or a mutex that is not
 * aligned to 8, _NO_MEMORY or _SYSTEM. */
int shmview_mutex_init(struct shmview_mutex *mutex, int kind);

/* Locks the mutex and waits until deadline_ns, an absolute time of CLOCK_MONOTONIC in nanoseconds,
 * see shmview_deadline(). SHMVIEW_FOREVER waits as long as that takes; 0 tries once, and asks the
 * kernel whether the owner is alive.
 *
 * Returns 0 on success, or SHMVIEW_OWNER_DIED (1), which is a success too: an owner died inside, or
 * called shmview_mutex_unlock_not_repaired(), and nobody has repaired the bytes since. A thread
 * that owns the mutex already gets 0 in any case. Returns -SHMVIEW_ERR_TIMED_OUT after the
 * deadline, _INTERRUPTED by shmview_on_wait(), _TOO_DEEP if the thread holds the mutex 2^32 - 1
 * times, _INVALID if the memory is no mutex or a mutex of another pid or time namespace,
 * _LAYOUT_VERSION if another version of shmview made it, and, in a process' first call, _NO_MEMORY
 * or _SYSTEM. */
int shmview_mutex_lock(struct shmview_mutex *mutex, int64_t deadline_ns);

/* Like shmview_mutex_lock(), but never waits and makes no system call. Therefore it returns
 * -SHMVIEW_ERR_TIMED_OUT even if the owner is dead; shmview_mutex_lock() with deadline 0 finds that
 * out. */
int shmview_mutex_trylock(struct shmview_mutex *mutex);

/* Unlocks the mutex, or, if the calling thread has locked it more than once, undoes one of its
 * locks. The unlock that frees the mutex declares the bytes to be in order. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_OWNER and changes nothing if this thread does not
 * own a mutex of threads, or no process owns a mutex of processes; or _INVALID, _LAYOUT_VERSION,
 * _NO_MEMORY or _SYSTEM as shmview_mutex_lock() does. */
int shmview_mutex_unlock(struct shmview_mutex *mutex);

/* Like shmview_mutex_unlock(), for an owner whose bytes are not in order: the next owner gets
 * SHMVIEW_OWNER_DIED. This takes effect only if the call frees the mutex. So a thread that has
 * locked it more than once must use it for the last unlock. */
int shmview_mutex_unlock_not_repaired(struct shmview_mutex *mutex);

/* The state of a mutex. */
struct shmview_mutex_status {
    int is_held;
    int is_mine;    /* this thread owns it, or this process a mutex of processes */
    uint32_t depth; /* if it is mine: how many times it is locked; else 0 */
    uint32_t pid;   /* of the owner's process; 0: not held, or not known yet */
    /* Process id of the last owner that died inside or called shmview_mutex_unlock_not_repaired();
     * 0 after an unlock that declares the bytes to be in order. */
    uint32_t died;
    uint32_t reserved;
};

/* Reports who owns the mutex, without locking it. The words are read one after the other, so that
 * they may not fit each other exactly. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID, _LAYOUT_VERSION, _NO_MEMORY or _SYSTEM as
 * shmview_mutex_lock() does. */
int shmview_mutex_query(struct shmview_mutex *mutex, struct shmview_mutex_status *ret_status);

/* --- Words --------------------------------------------------------------- */

/* The parts of further protocols: a word of shared memory that threads wait on, and a word that
 * names a process. The caller reads and writes words as C11 atomics. */

/* Waits while the word, which is aligned to 4, has the value, but not longer than 0.1 s: the
 * process that should wake the caller may have been killed. So the caller must look at its words
 * again after each return, and wait again if they demand it. deadline_ns is an absolute time of
 * CLOCK_MONOTONIC, see shmview_deadline(); SHMVIEW_FOREVER never passes, and 0 has passed.
 *
 * Returns 0 if the caller was woken, if the word has another value, or after 0.1 s. Returns
 * -SHMVIEW_ERR_TIMED_OUT after the deadline if the word still has the value, _INTERRUPTED by
 * shmview_on_wait(), or, in a process' first call, _NO_MEMORY or _SYSTEM. A call that took a
 * wake-up of shmview_word_wake() returns 0. */
int shmview_word_wait(const uint32_t *word, uint32_t value, int64_t deadline_ns);

/* Wakes up to n threads, or all for 0, that wait on the word. Returns how many threads it has
 * woken. One system call. Does not block. Never fails. */
int shmview_word_wake(const uint32_t *word, int n);

/* Returns in *ret_name a number that names the calling process: its kernel id and its birth, as in
 * the owner of a mutex of processes. It is never 0, and no other process of this pid namespace has
 * it until the machine is started again. A forked child has another one. Does not block.
 *
 * Returns 0 on success. In a process' first call, returns -SHMVIEW_ERR_NO_MEMORY or _SYSTEM. */
int shmview_process_name(uint64_t *ret_name);

/* Returns 1 if the process with this name has ended, otherwise 0. A process about which the kernel
 * gives no information, and a name that shmview_process_name() cannot have returned, count as
 * alive. Makes a few system calls, about 10 us. Does not block. */
int shmview_process_has_ended(uint64_t name);

#ifdef __cplusplus
}
#endif
#endif
