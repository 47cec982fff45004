/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of the C library that ours is compared with, next to each other in shared memory. */
#ifndef BENCH_LOCKS_H
#define BENCH_LOCKS_H

#include <pthread.h>
#include <semaphore.h>

#include "bench.h"

enum mutex_kind {
    MUTEX_PLAIN,
    MUTEX_RECURSIVE,
    MUTEX_ROBUST,
    MUTEX_ROBUST_RECURSIVE,
    MUTEX_KINDS,
};

/* WRITERS: readers queue after a waiting writer, so that they do not starve it. */
enum rwlock_kind {
    RWLOCK_WRITERS,
    RWLOCK_DEFAULT,
    RWLOCK_KINDS,
};

/* Each on lines of its own: 128 bytes, for prefetchers fetch lines in pairs. */
struct locks {
    struct {
        _Alignas(128) pthread_mutex_t mutex;
    } mutex[MUTEX_KINDS];
    struct {
        _Alignas(128) pthread_rwlock_t rwlock;
    } rwlock[RWLOCK_KINDS];
    _Alignas(128) sem_t semaphore;
};

/* Maps and initialises them, process-shared. Returns NULL after failed(). */
struct locks *locks_new(void);
void locks_free(struct locks *locks);

/* A run of a contest: time of one of LOCKS_PAIRS pairs of the mutex `arg`, in ns. */
#define LOCKS_PAIRS 200000
int run_mutex_pairs(void *arg, double *ret);

/* Likewise of two locked instructions on a line of their own: no lock of two words that are written
 * by each pair costs less. arg is ignored. */
#define TWO_LOCKED "two locked instructions"
int run_two_locked(void *arg, double *ret);

const char *mutex_name(enum mutex_kind kind);
const char *rwlock_name(enum rwlock_kind kind);

#endif
