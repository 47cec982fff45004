/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/exit_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/base/hurry.h"
#include "daemon/base/loop.h"
#include "daemon/clients/exiting.h"

#define STACK_BYTES ((size_t)256 << 10)
/* After the end of a thread the loop comes first, on the same processor too. Most processes have
 * ended then. */
#define PAUSE_US 200

/* One thread. It alone uses pidfd and first; the lock guards the rest. */
struct exit_watch {
    struct exit_watches *watches;
    struct store_holder holder;
    int pidfd;       /* owned */
    int first;       /* owned: from process_open_first() */
    bool is_exiting; /* the last news was that the process is exiting */
    bool is_used;
    bool has_news;
    unsigned n_moves; /* since the watch was kept last */
    int64_t until_ns; /* of CLOCK_MONOTONIC */
};

/* Belongs to the loop and to the threads: the last one of them frees it. */
struct exit_watches {
    uv_poll_t poll;
    exit_watch_noticed *noticed;
    void *arg;
    int news; /* an eventfd, readable while a watch has news */
    struct hurry loop;
    pthread_mutex_t lock;
    unsigned n_users; /* the loop, and each thread */
    bool is_closed;
    bool is_useless; /* the kernel, or a filter of system calls, does not permit such waits */
    struct exit_watch list[EXIT_WATCHES_MAX];
};

/* --- On a thread --------------------------------------------------------- */

enum outcome {
    THREAD_ENDS,
    TIMED_OUT,
    UNKNOWN,
    USELESS
};

/* Sleeps until the thread begins to end. The kernel refuses a private futex whose word names a
 * thread of another process. Nothing needs to be unlocked afterwards, because the kernel keeps no
 * state of a futex for which nobody waits. */
static enum outcome wait_for_end(long tid, int64_t until)
{
    struct timespec t = {until / 1000000000, until % 1000000000};
    uint32_t word = (uint32_t)tid;
    if (syscall(SYS_futex, &word, FUTEX_LOCK_PI2, 0, &t, NULL, 0) == 0 || errno == ESRCH)
        return THREAD_ENDS;
    if (errno == ETIMEDOUT)
        return TIMED_OUT;
    return errno == ENOSYS || errno == EPERM ? USELESS : UNKNOWN;
}

/* Lets this thread have a usual priority. The kernel gives the owner of such a futex the priority
 * of a thread that waits for it, and a client must not get that of a daemon that runs in real time.
 * By system calls, because musl's functions always fail. */
static bool is_ordinary(void)
{
    struct sched_param p = {0};
    long policy = syscall(SYS_sched_getscheduler, 0);
    if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE)
        return true;
    return syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &p) == 0;
}

/* Tells the loop to look at the process, or that this look has found it exiting: it opens no files,
 * which takes long while the kernel ends the process. */
static void tell(struct exit_watch *w)
{
    struct exit_watches *all = w->watches;
    uint64_t one = 1;
    bool is_exiting = process_first_is_exiting(w->first);
    pthread_mutex_lock(&all->lock);
    w->has_news = true;
    w->is_exiting = is_exiting;
    w->n_moves++;
    if (!all->is_closed) /* after that the id of the loop's thread may be that of another one */
        hurry(&all->loop, true);
    pthread_mutex_unlock(&all->lock);
    if (write(all->news, &one, sizeof one) < 0)
        return; /* only if it has been written very often, and then it is readable */
}

/* Returns whether the watch goes on, and until when. */
static bool goes_on(struct exit_watch *w, int64_t *ret_until)
{
    struct exit_watches *all = w->watches;
    pthread_mutex_lock(&all->lock);
    *ret_until = w->until_ns;
    bool r = !all->is_closed && now_ns() < w->until_ns && w->n_moves < EXIT_WATCH_MOVES;
    pthread_mutex_unlock(&all->lock);
    return r;
}

/* Takes the lock, and lets go of it. */
static void leave(struct exit_watches *all)
{
    bool is_last = --all->n_users == 0;
    pthread_mutex_unlock(&all->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&all->lock);
    close(all->news);
    free(all);
}

/* Watches one thread of the process after the other. A thread that is exiting already cannot be
 * waited for, so the loop looks at once if there is no other one. */
static void *run(void *arg)
{
    struct exit_watch *w = arg;
    struct exit_watches *all = w->watches;
    enum outcome r = is_ordinary() ? TIMED_OUT : UNKNOWN;
    int64_t until;
    struct hurry own;
    prctl(PR_SET_NAME, EXIT_WATCH_THREAD);
    hurry_init(&own);
    hurry(&own, true);
    w->first = process_open_first(w->pidfd);
    while ((r == THREAD_ENDS || r == TIMED_OUT) && goes_on(w, &until)) {
        long tid = process_living_thread(w->pidfd);
        r = tid ? wait_for_end(tid, until) : UNKNOWN;
        if (r == THREAD_ENDS || !tid)
            tell(w);
        if (r == THREAD_ENDS)
            usleep(PAUSE_US);
    }
    close(w->pidfd);
    close_fdp(&w->first);
    pthread_mutex_lock(&all->lock);
    w->is_used = false;
    all->is_useless |= r == USELESS;
    leave(all);
    return NULL;
}

/* --- On the loop --------------------------------------------------------- */

static void on_news(uv_poll_t *poll, int status, int events)
{
    struct exit_watches *all = poll->data;
    struct store_holder holders[EXIT_WATCHES_MAX];
    bool are_exiting[EXIT_WATCHES_MAX];
    unsigned n = 0;
    uint64_t count;
    (void)status;
    (void)events;
    if (read(all->news, &count, sizeof count) != sizeof count)
        return;
    pthread_mutex_lock(&all->lock);
    for (struct exit_watch *w = all->list; w < all->list + EXIT_WATCHES_MAX; w++) {
        if (w->has_news) {
            are_exiting[n] = w->is_exiting;
            holders[n++] = w->holder;
        }
        w->has_news = false;
    }
    pthread_mutex_unlock(&all->lock);
    for (unsigned i = 0; i < n; i++)
        all->noticed(all->arg, &holders[i], are_exiting[i]);
    hurry(&all->loop, false);
}

/* Whether /proc has the numbers by which the kernel would take the threads that this process names.
 * It may belong to another pid namespace. */
static bool has_own_proc(void)
{
    char text[32], own[32];
    snprintf(own, sizeof own, "%ld", (long)getpid());
    ssize_t n = readlink("/proc/self", text, sizeof text - 1);
    text[n < 0 ? 0 : n] = '\0';
    return strcmp(own, text) == 0;
}

struct exit_watches *exit_watches_open(uv_loop_t *loop, exit_watch_noticed *noticed, void *arg)
{
    struct exit_watches *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    *all = (struct exit_watches){.noticed = noticed,
                                 .arg = arg,
                                 .news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                 .n_users = 1,
                                 .is_useless = !has_own_proc()};
    int r = all->news < 0 ? -errno : loop_poll_init(loop, &all->poll, all->news);
    if (r == 0)
        r = -pthread_mutex_init(&all->lock, NULL);
    if (r) {
        close_fdp(&all->news);
        free(all);
        errno = -r;
        return NULL;
    }
    all->poll.data = all;
    hurry_init(&all->loop);
    uv_poll_start(&all->poll, UV_READABLE, on_news); /* cannot fail: it is a new descriptor */
    return all;
}

void exit_watches_close(struct exit_watches *watches)
{
    if (!watches)
        return;
    pthread_mutex_lock(&watches->lock);
    watches->is_closed = true;
    leave(watches);
}

/* Starts a thread that runs no handlers of signals. */
static bool start(struct exit_watch *w)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    if (pthread_attr_init(&attr))
        return false;
    sigfillset(&all);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool is_started = pthread_create(&thread, &attr, run, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return is_started;
}

/* Under the lock. */
static bool add(struct exit_watches *all, struct exit_watch *w, const struct store_holder *holder,
                int pidfd)
{
    *w = (struct exit_watch){.watches = all,
                             .holder = *holder,
                             .pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0),
                             .first = -1,
                             .until_ns = now_ns() + EXIT_WATCH_KEEP_NS};
    if (w->pidfd < 0)
        return false;
    if (!start(w)) {
        close_fdp(&w->pidfd);
        return false;
    }
    w->is_used = true;
    all->n_users++;
    return true;
}

static bool is_same(const struct store_holder *a, const struct store_holder *b)
{
    return a->client == b->client && a->uid == b->uid && a->pid == b->pid && a->birth == b->birth;
}

/* Under the lock. */
static bool keep(struct exit_watches *all, const struct store_holder *holder, int pidfd)
{
    struct exit_watch *room = NULL;
    unsigned n_of_user = 0;
    for (struct exit_watch *w = all->list; w < all->list + EXIT_WATCHES_MAX; w++) {
        if (w->is_used && is_same(&w->holder, holder)) {
            w->until_ns = now_ns() + EXIT_WATCH_KEEP_NS;
            w->n_moves = 0;
            return true;
        }
        n_of_user += w->is_used && w->holder.uid == holder->uid;
        if (!w->is_used && !w->has_news)
            room = w;
    }
    return room && n_of_user < EXIT_WATCHES_MAX_USER && add(all, room, holder, pidfd);
}

bool exit_watch_keep(struct exit_watches *watches, const struct store_holder *holder, int pidfd)
{
    if (!watches || pidfd < 0)
        return false;
    pthread_mutex_lock(&watches->lock);
    bool is_kept = !watches->is_useless && keep(watches, holder, pidfd);
    pthread_mutex_unlock(&watches->lock);
    return is_kept;
}

unsigned exit_watches_count(struct exit_watches *watches)
{
    unsigned n = 0;
    pthread_mutex_lock(&watches->lock);
    for (unsigned i = 0; i < EXIT_WATCHES_MAX; i++)
        n += watches->list[i].is_used;
    pthread_mutex_unlock(&watches->lock);
    return n;
}
