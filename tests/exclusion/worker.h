/* SPDX-License-Identifier: Apache-2.0 */
/* A process whose threads take locks, and call the library while they hold them. */
#ifndef EXCLUSION_WORKER_H
#define EXCLUSION_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <shmview/shmview.h>

#include "exclusion/arena.h"

/* Of each segment; there are the layouts "a" and "b". */
#define SEGMENT_NAME  "exclusion.%u"
#define SEGMENT_BYTES 4096

struct thread {
    struct worker *worker;
    unsigned number;
    uint64_t random;
};

struct worker {
    unsigned party;
    struct shmview_connection *connection;
    struct shmview_segment *segments[SEGMENTS];
    /* held for writing while descriptors of the library are closed: another thread that is in a
     * call could otherwise get the number of the one that was closed */
    pthread_rwlock_t descriptors;
    atomic_bool forks; /* one child at a time */
    struct thread threads[THREADS_MAX];
};

/* Runs until the end; exits with 0. */
__attribute__((noreturn)) void worker_run(unsigned party, uint64_t seed);

/* One after the other: each call, each allocation and system call of it, once and from there on,
 * while the lock is held. */
void turns_run(void);

/* Creates the segments. Returns 0, or -1 after it has said why not. */
int worker_found(void);

uint64_t draw(uint64_t *random, uint64_t n);

/* --- calls.c ------------------------------------------------------------- */

/* Makes a call of the library that talks to the daemon, with a mishap or not, and judges what it
 * returns. The thread holds the segment exclusively, or shared. */
void calls_any(struct thread *thread, struct shmview_segment *held, bool exclusive);

/* The number of those calls; makes one of them, and returns what it returned. */
unsigned calls_number(void);
int calls_make(unsigned which, struct thread *thread, struct shmview_segment *held);
const char *calls_name(unsigned which);

/* Whether r is what the call may return. unrest is what arena->unrest was before; failed: an
 * injected failure struck. Reports a violation if it is not. */
bool calls_judge(const char *what, int r, uint32_t unrest, bool out_of_memory, bool failed);

#endif
