/* SPDX-License-Identifier: Apache-2.0 */
#include "word.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS     200
#define FIRST_NS  4000000  /* until the holder is looked at first */
#define AGAIN_NS  40000000 /* and then */
#define SECOND_NS 1000000000

/* --- Who is it ----------------------------------------------------------- */

_Thread_local struct self self_of_thread __attribute__((tls_model("initial-exec")));

/* What the kernel says of a process or thread: when it was born, in clock ticks since boot.
 * Returns 0; -ESRCH if it is a zombie; -errno if it cannot be told, or is not there. */
static int ask_kernel(const char *path, uint64_t *ret_birth)
{
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, sizeof text - 1);
    int r = n < 0 ? -errno : 0;
    close(fd);
    if (r)
        return r;
    text[n] = '\0';
    const char *p = strrchr(text, ')'); /* a command may contain anything */
    if (!p || !p[1])
        return -EINVAL;
    p += 2;
    if (*p == 'Z' || *p == 'X')
        return -ESRCH;
    for (int field = 3; field < 22; field++) {
        p = strchr(p, ' ');
        if (!p)
            return -EINVAL;
        p++;
    }
    *ret_birth = strtoull(p, NULL, 10);
    return 0;
}

static int birth_of(uint32_t id, uint64_t *ret_birth)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%u/stat", id);
    return ask_kernel(path, ret_birth);
}

void self_look_up(void)
{
    int error = errno;
    struct self me = {.tid = (uint32_t)gettid(), .pid = (uint32_t)getpid()};
    if (birth_of(me.tid, &me.tid_birth))
        me.tid_birth = 0;
    if (birth_of(me.pid, &me.pid_birth))
        me.pid_birth = 0;
    self_of_thread = me;
    errno = error;
}

static void forget_self(void)
{
    self_of_thread.tid = 0;
}

int self_init(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    return atomic_flag_test_and_set(&done) ? 0 : -pthread_atfork(NULL, NULL, forget_self);
}

/* birth 0: nobody knows, and its id must do. */
static bool is_dead(uint32_t id, uint64_t birth)
{
    uint64_t now;
    int r = birth_of(id, &now);
    if (r == 0)
        return birth && now != birth;
    /* /proc may hide those of other users, or not be there at all */
    return r == -ESRCH || (kill((pid_t)id, 0) < 0 && errno == ESRCH);
}

/* --- Waiting ------------------------------------------------------------- */

int64_t word_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static int futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ns)
{
    struct timespec t = {.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0) ? -errno : 0;
}

void word_wake(struct word *w)
{
    syscall(SYS_futex, &w->owner, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Takes the word from owner seen if that one is dead. */
static bool take_over(struct word *w, uint32_t seen, uint32_t id)
{
    uint64_t birth = atomic_load(&w->birth);
    uint32_t pid = atomic_load(&w->pid);
    if (atomic_load(&w->owner) != seen || !is_dead(seen & WORD_ID, birth))
        return false;
    if (birth && !atomic_compare_exchange_strong(&w->birth, &birth, 0))
        return false;
    if (!atomic_compare_exchange_strong(&w->owner, &seen, id | WORD_WAITERS))
        return false;
    atomic_store(&w->died, pid ? pid : seen & WORD_ID);
    return true;
}

static bool spin(struct word *w, uint32_t id)
{
    static _Atomic long n_processors;
    if (!atomic_load(&n_processors))
        atomic_store(&n_processors, sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = 0; atomic_load(&n_processors) > 1 && i < SPINS; i++) {
        uint32_t free = 0;
        if (!atomic_load_explicit(&w->owner, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&w->owner, &free, id))
            return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return false;
}

static int wait_for_word(struct word *w, uint32_t id, int64_t deadline)
{
    int64_t pause = FIRST_NS;
    if (deadline && spin(w, id))
        return 0;
    for (;;) {
        uint32_t v = atomic_load(&w->owner);
        if (!(v & WORD_ID)) {
            if (atomic_compare_exchange_strong(&w->owner, &v, id | WORD_WAITERS))
                return 0;
            continue;
        }
        if (deadline &&
            !(v & WORD_WAITERS)) { /* also before leaving: a wake-up may be spent here */
            if (!atomic_compare_exchange_strong(&w->owner, &v, v | WORD_WAITERS))
                continue;
            v |= WORD_WAITERS;
        }
        int64_t left = deadline ? deadline - word_now() : 0;
        if (left <= 0)
            return take_over(w, v, id) ? 0 : -ETIMEDOUT;
        int r = futex_wait(&w->owner, v, left < pause ? left : pause);
        if (r == -EINTR)
            return r;
        if (r == -ETIMEDOUT) {
            if (take_over(w, v, id))
                return 0;
            pause = AGAIN_NS;
        }
    }
}

int word_wait(struct word *w, uint32_t id, uint64_t birth, uint32_t pid, int64_t deadline_ns)
{
    int r = wait_for_word(w, id, deadline_ns);
    if (r == 0) {
        atomic_store_explicit(&w->birth, birth, memory_order_relaxed);
        atomic_store_explicit(&w->pid, pid, memory_order_relaxed);
    }
    return r;
}
