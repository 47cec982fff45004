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

/* The facts of a process or thread that /proc shows. */
struct record {
    uint64_t birth; /* in clock ticks since the machine started */
    bool is_zombie;
    unsigned long n_threads; /* of its process; a zombie that leads it counts */
};

/* Returns 0 or -errno. */
static int ask_kernel(uint32_t id, struct record *ret)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", id);
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
    ret->is_zombie = *p == 'Z' || *p == 'X';
    for (int field = 3; field < 22; field++) {
        p = strchr(p, ' ');
        if (!p)
            return -EINVAL;
        p++;
        if (field + 1 == 20)
            ret->n_threads = strtoul(p, NULL, 10);
    }
    ret->birth = strtoull(p, NULL, 10);
    return 0;
}

static uint64_t owner_of(uint32_t id)
{
    struct record found;
    return ask_kernel(id, &found) ? id : found.birth << 32 | id;
}

void self_look_up(void)
{
    int error = errno;
    struct self me = {.tid = (uint32_t)gettid(), .pid = (uint32_t)getpid()};
    me.thread = owner_of(me.tid);
    me.process = owner_of(me.pid);
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

/* A process whose first thread has ended is a zombie by its id, and lives while it has
 * another thread. */
static bool is_dead(uint64_t owner, bool of_threads)
{
    struct record found;
    uint32_t id = owner & WORD_ID, birth = (uint32_t)(owner >> 32);
    if (ask_kernel(id, &found)) /* /proc may hide those of other users, or not be there at all */
        return kill((pid_t)id, 0) < 0 && errno == ESRCH;
    if (birth && (uint32_t)found.birth != birth)
        return true;
    return found.is_zombie && (of_threads || found.n_threads < 2);
}

/* --- Waiting ------------------------------------------------------------- */

int64_t word_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* The half of the word that has the id and W: the kernel compares 32 bits. A birth that has
 * changed besides costs the sleeper at most one pause. */
static uint32_t *waited_half(struct word *w)
{
    return (uint32_t *)&w->owner + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static int futex_wait(struct word *w, uint64_t seen, int64_t ns)
{
    struct timespec t = {.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
    return syscall(SYS_futex, waited_half(w), FUTEX_WAIT, (uint32_t)seen, &t, NULL, 0) ? -errno : 0;
}

void word_wake(struct word *w)
{
    syscall(SYS_futex, waited_half(w), FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Takes the word from a dead owner, if that owner is still in it. */
static bool take_over(struct word *w, uint64_t seen, uint64_t me, bool of_threads)
{
    uint32_t pid = atomic_load(&w->pid);
    if (!is_dead(seen, of_threads) ||
        !atomic_compare_exchange_strong(&w->owner, &seen, me | WORD_WAITERS))
        return false;
    atomic_store(&w->died, pid ? pid : (uint32_t)(seen & WORD_ID));
    return true;
}

static bool spin(struct word *w, uint64_t me)
{
    static _Atomic long n_processors;
    if (!atomic_load(&n_processors))
        atomic_store(&n_processors, sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = 0; atomic_load(&n_processors) > 1 && i < SPINS; i++) {
        uint64_t free = 0;
        if (!atomic_load_explicit(&w->owner, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&w->owner, &free, me))
            return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return false;
}

static int wait_for_word(struct word *w, uint64_t me, bool of_threads, int64_t deadline)
{
    int64_t pause = FIRST_NS;
    if (deadline && spin(w, me))
        return 0;
    for (;;) {
        uint64_t v = atomic_load(&w->owner);
        if (!v) {
            if (atomic_compare_exchange_strong(&w->owner, &v, me | WORD_WAITERS))
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
            return take_over(w, v, me, of_threads) ? 0 : -ETIMEDOUT;
        int r = futex_wait(w, v, left < pause ? left : pause);
        if (r == -EINTR)
            return r;
        if (r == -ETIMEDOUT) {
            if (take_over(w, v, me, of_threads))
                return 0;
            pause = AGAIN_NS;
        }
    }
}

int word_wait(struct word *w, const struct self *me, bool of_threads, int64_t deadline_ns)
{
    int r = wait_for_word(w, self_owner(me, of_threads), of_threads, deadline_ns);
    if (r == 0)
        atomic_store_explicit(&w->pid, me->pid, memory_order_relaxed);
    return r;
}
