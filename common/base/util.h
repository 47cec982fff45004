/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers: cleanup at the end of a scope, and transfer of ownership.
 *
 * A variable that is declared with CLEANUP_FD or CLEANUP_FREE owns its descriptor or memory: it is
 * released at every exit from the scope. To pass the object on, a function returns steal_fd() or
 * STEAL(), which leaves nothing to release. */
#ifndef COMMON_UTIL_H
#define COMMON_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_LEN(a)                  (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

#define CLEANUP(f)   __attribute__((cleanup(f)))
#define CLEANUP_FD   CLEANUP(close_fdp)
#define CLEANUP_FREE CLEANUP(free_pp)

/* Closes *fd unless it is negative, and sets it to -1. Keeps errno, because a function may return
 * -errno while its scope ends. */
static inline void close_fdp(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

static inline void free_pp(void *pp)
{
    free(*(void **)pp);
}

/* Returns *fd and sets it to -1: the caller owns the descriptor then. */
static inline int steal_fd(int *fd)
{
    int r = *fd;
    *fd = -1;
    return r;
}

/* Like steal_fd(), for a pointer. Use STEAL(), which keeps the type. */
static inline void *steal_pp(void *pp)
{
    void *r = *(void **)pp;
    *(void **)pp = NULL;
    return r;
}
#define STEAL(p) ((__typeof__(p))steal_pp(&(p)))

/* Nanoseconds of CLOCK_MONOTONIC, the clock of all deadlines. */
static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
