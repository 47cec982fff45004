/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: a process whose threads take locks, and call the library while they hold them. */
#ifndef EXCLUSION_WORKER_H
#define EXCLUSION_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <shmview/shmview.h>

#include "exclusion/arena.h"

/* Names of segments; each has the layouts "a" and "b". */
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
    /* held exclusively while descriptors of the library are closed. Otherwise another thread in
     * a call could get the number of a closed one */
    pthread_rwlock_t descriptors;
    atomic_bool forks; /* one child at a time */
    struct thread threads[THREADS_MAX];
};

/* The life of a worker. Exits with status 0 at the end of the run. */
__attribute__((noreturn)) void worker_run(unsigned party, uint64_t seed);

/* While this process holds the lock, lets each allocation and each system call of each call
 * fail: alone, and then together with all later ones. */
void turns_run(void);

/* Creates the segments. Returns 0, or -1 after it has printed the reason. */
int worker_found(void);

uint64_t draw(uint64_t *random, uint64_t n);

/* --- calls.c ------------------------------------------------------------- */

/* Makes a call of the library that talks to the daemon, with or without a mishap, and checks its
 * result. The thread must hold the segment, exclusively or shared. */
void calls_any(struct thread *thread, struct shmview_segment *held, bool exclusive);

/* How many such calls there are; makes one of them, and returns its result. */
unsigned calls_number(void);
int calls_make(unsigned which, struct thread *thread, struct shmview_segment *held);
const char *calls_name(unsigned which);

/* Returns whether a call may return r; reports a violation if it may not. unrest is the value of
 * arena->unrest before the call. failed: an injected failure struck, which was one of memory if
 * out_of_memory. */
bool calls_judge(const char *what, int r, uint32_t unrest, bool out_of_memory, bool failed);

#endif
