/* SPDX-License-Identifier: Apache-2.0 */
/* Small tools for both sides: cleanup by scope, transfer by steal. */
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

/* Closes *fd if it is one, keeps errno, and marks it closed. */
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

/* Returns *fd and leaves -1 behind: ownership moves to the caller. */
static inline int steal_fd(int *fd)
{
    int r = *fd;
    *fd = -1;
    return r;
}

static inline void *steal_pp(void *pp)
{
    void *r = *(void **)pp;
    *(void **)pp = NULL;
    return r;
}
#define STEAL(p) ((__typeof__(p))steal_pp(&(p)))

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
