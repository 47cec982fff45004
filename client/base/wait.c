/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the caller's function during waits, and spins before them. */
#include "client/base/wait.h"

#include <errno.h>
#include <time.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "common/base/spin.h"

/* The number of looks in a spin: 2 to 4 us. A cache line comes from another core in about 100 ns,
 * and many critical sections are as short. */
#define SPINS 100

#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 30)
#define HAS_CLOCKLOCK
#endif
#endif

/* The function that ends the waits of this thread. */
static __thread struct asked {
    int (*is_over)(void *arg); /* of shmview_on_wait(); NULL: nothing ends a wait */
    void *arg;
    bool is_asking; /* is_over() runs in this thread */
} self __attribute__((tls_model("initial-exec")));

void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

int spins_allowed(void)
{
    return spin_is_possible() ? SPINS : 0;
}

void shmview_on_wait(int (*is_over)(void *arg), void *arg)
{
    self.is_over = is_over;
    self.arg = arg;
}

bool wait_is_asking(void)
{
    return self.is_asking;
}

int wait_refuse(void)
{
    if (!self.is_asking)
        return 0;
    return fail(
        SHMVIEW_ERR_DEADLOCK,
        "this thread already waits for a daemon, and the function of shmview_on_wait() runs");
}

bool wait_has_caller(void)
{
    return self.is_over;
}

/* Runs the function of this thread, and removes it while it runs, so that a wait inside it does not
 * run it again. is_asking then makes calls that need the daemon fail, if asks_nobody is set.
 * Returns 0 or -SHMVIEW_ERR_INTERRUPTED. */
static int ask(bool asks_nobody)
{
    int (*is_over)(void *) = self.is_over;
    void *arg = self.arg;
    if (!is_over)
        return 0;
    /* the function, or a signal handler that it runs, may call the library and change errno */
    int saved = errno;
    uint32_t epoch = process_epoch();
    bool was_asking = self.is_asking;
    self.is_over = NULL;
    self.is_asking = was_asking || asks_nobody;
    int over = is_over(arg);
    errno = saved;
    self.is_asking = was_asking;
    if (process_epoch() != epoch) /* the function has forked: the wait belongs to the parent */
        return fail(SHMVIEW_ERR_INTERRUPTED, "this process was forked during a call of its parent");
    shmview_on_wait(is_over, arg);
    return over ? fail(SHMVIEW_ERR_INTERRUPTED, "the caller has ended the wait") : 0;
}

int wait_ask(void)
{
    return ask(false);
}

int wait_go_on(void)
{
    return ask(true);
}

/* Locks the mutex within WAIT_NS. Returns 0 or an errno. A step of the time of day does not
 * lengthen the wait, where the C library can wait by another clock. */
static int lock_for_a_while(pthread_mutex_t *mutex)
{
    struct timespec t;
#ifdef HAS_CLOCKLOCK
    const clockid_t clock = CLOCK_MONOTONIC;
#else
    const clockid_t clock = CLOCK_REALTIME; /* pthread_mutex_timedlock() has no other */
#endif
    clock_gettime(clock, &t);
    t.tv_nsec += WAIT_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
#ifdef HAS_CLOCKLOCK
    return pthread_mutex_clocklock(mutex, clock, &t);
#else
    return pthread_mutex_timedlock(mutex, &t);
#endif
}

int wait_for_mutex(pthread_mutex_t *mutex)
{
    if (!self.is_over) {
        pthread_mutex_lock(mutex);
        return 0;
    }
    for (;;) {
        int r = lock_for_a_while(mutex);
        if (r == 0)
            return 0;
        r = wait_go_on();
        if (r)
            return r;
    }
}

int wait_a_moment(int64_t ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
    return wait_go_on();
}

void wait_forget(void)
{
    self = (struct asked){0};
}
