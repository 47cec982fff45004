/* SPDX-License-Identifier: Apache-2.0 */
#include "locks.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

const char *mutex_name(enum mutex_kind kind)
{
    static const char *const names[] = {"mutex", "recursive mutex", "robust mutex",
                                        "robust recursive mutex"};
    return names[kind];
}

const char *rwlock_name(enum rwlock_kind kind)
{
    static const char *const names[] = {"rwlock, writers first", "rwlock"};
    return names[kind];
}

static int mutex_init(pthread_mutex_t *mutex, enum mutex_kind kind)
{
    pthread_mutexattr_t a;
    bool recursive = kind == MUTEX_RECURSIVE || kind == MUTEX_ROBUST_RECURSIVE;
    bool robust = kind == MUTEX_ROBUST || kind == MUTEX_ROBUST_RECURSIVE;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_settype(&a, recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setrobust(&a, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    int r = pthread_mutex_init(mutex, &a);
    pthread_mutexattr_destroy(&a);
    return r;
}

static int rwlock_init(pthread_rwlock_t *rwlock, enum rwlock_kind kind)
{
    pthread_rwlockattr_t a;
    pthread_rwlockattr_init(&a);
    pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    if (kind == RWLOCK_WRITERS)
        pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int r = pthread_rwlock_init(rwlock, &a);
    pthread_rwlockattr_destroy(&a);
    return r;
}

struct locks *locks_new(void)
{
    struct locks *locks = mmap(NULL, sizeof *locks, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (locks == MAP_FAILED) {
        failed("mmap: %s", strerror(errno));
        return NULL;
    }
    int r = sem_init(&locks->semaphore, 1, 1);
    for (enum mutex_kind k = 0; k < MUTEX_KINDS && r == 0; k++)
        r = mutex_init(&locks->mutex[k].mutex, k);
    for (enum rwlock_kind k = 0; k < RWLOCK_KINDS && r == 0; k++)
        r = rwlock_init(&locks->rwlock[k].rwlock, k);
    if (r == 0)
        return locks;
    failed("a process-shared lock cannot be made");
    locks_free(locks);
    return NULL;
}

void locks_free(struct locks *locks)
{
    if (locks)
        munmap(locks, sizeof *locks);
}

int run_mutex_pairs(void *arg, double *ret)
{
    pthread_mutex_t *m = arg;
    int64_t start = now_ns();
    for (int i = 0; i < LOCKS_PAIRS; i++)
        if (pthread_mutex_lock(m) || pthread_mutex_unlock(m))
            return failed("a mutex refuses to be locked");
    *ret = (double)(now_ns() - start) / LOCKS_PAIRS;
    return 0;
}

int run_two_locked(void *arg, double *ret)
{
    static _Alignas(128) _Atomic uint32_t own;
    (void)arg;
    int64_t start = now_ns();
    for (int i = 0; i < LOCKS_PAIRS; i++) {
        atomic_fetch_add(&own, 1);
        atomic_fetch_sub(&own, 1);
    }
    *ret = (double)(now_ns() - start) / LOCKS_PAIRS;
    return 0;
}
