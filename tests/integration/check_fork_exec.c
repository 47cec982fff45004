/* SPDX-License-Identifier: Apache-2.0 */
/* Fork, exec, the end of threads and their cancellation, in every state of a lock. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/raw.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

static void run_child(void (*run)(struct child *me, void *arg), void *arg)
{
    struct child child;
    child_start(&child, run, arg);
    child_wait(&child);
}

static pthread_t start_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static void *join_thread(pthread_t thread)
{
    void *result;
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    return result;
}

static void expect_done(pthread_t thread)
{
    const char *failed = join_thread(thread);
    if (failed)
        ck_abort_msg("a thread: %s", failed);
}

/* --- Fork ---------------------------------------------------------------- */

static void hold_nothing(struct child *me, void *arg)
{
    (void)me;
    REFUSED(shmview_unlock(arg), NOT_OWNER, "");
    REFUSED(shmview_unlock_not_repaired(arg), NOT_OWNER, "");
    REFUSED(shmview_trylock(arg), TIMED_OUT, "");
}

START_TEST(fork_while_holding)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    for (int shared = 0; shared < 2; shared++) {
        OK(shared ? shmview_lock_shared(seg) : shmview_lock(seg));
        OK(shmview_lock_shared(seg));
        run_child(hold_nothing, seg);
        run_child(hold_nothing, other); /* by another handle of the segment */
        REFUSED(shmview_trylock(other), TIMED_OUT, "");
        OK(shmview_unlock(seg));
        REFUSED(shmview_trylock(other), TIMED_OUT, "");
        OK(shmview_unlock(seg));
        OK(shmview_trylock(other));
        OK(shmview_unlock(other));
    }
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

static void detach_unused(struct child *me, void *arg)
{
    (void)me;
    OK(shmview_detach(arg)); /* nobody here holds it, and the attachment is its parent's */
    OK(shmview_disconnect(conn));
}

START_TEST(child_gives_up_what_it_never_used)
{
    open_segment();
    OK(shmview_lock(seg));
    run_child(detach_unused, seg);
    OK(shmview_unlock(seg));
    OK(shmview_lock_shared(seg));
    run_child(detach_unused, seg);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void leave(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
}

START_TEST(end_of_an_idle_child_is_nobodys_business)
{
    open_segment();
    OK(shmview_lock(seg));
    run_child(leave, seg);
    OK(shmview_unlock(seg));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void *wait_to_write(void *arg)
{
    return shmview_lock(arg) || shmview_unlock(arg) ? "lock failed" : NULL;
}

static void *wait_to_read(void *arg)
{
    return shmview_lock_shared(arg) || shmview_unlock(arg) ? "shared lock failed" : NULL;
}

static void lock_in_turn(struct child *me, void *arg)
{
    child_tell(me, 1);
    OK(shmview_lock(arg));
    OK(shmview_unlock(arg));
    OK(shmview_lock_shared(arg));
    OK(shmview_unlock(arg));
}

START_TEST(fork_while_other_threads_wait)
{
    struct child child;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(other));
    pthread_t writer = start_thread(wait_to_write, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    child_start(&child, lock_in_turn, seg);
    child_hear(&child, 1);
    OK(shmview_unlock(other));
    expect_done(writer);
    child_wait(&child);
    OK(shmview_lock(other));
    pthread_t reader = start_thread(wait_to_read, seg);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 1);
    child_start(&child, lock_in_turn, seg);
    child_hear(&child, 1);
    OK(shmview_unlock(other));
    expect_done(reader);
    child_wait(&child);
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

struct holder {
    _Atomic int stage; /* 1: held, 2: give it back */
    int (*take)(struct shmview_segment *);
};

static void *hold_in_thread(void *arg)
{
    struct holder *h = arg;
    if (h->take(seg))
        return "lock failed";
    atomic_store(&h->stage, 1);
    while (atomic_load(&h->stage) != 2)
        usleep(1000);
    return shmview_unlock(seg) ? "unlock failed" : NULL;
}

START_TEST(fork_while_another_thread_holds)
{
    static int (*const ways[])(struct shmview_segment *) = {shmview_lock, shmview_lock_shared};
    open_segment();
    for (int i = 0; i < 2; i++) {
        struct holder h = {.take = ways[i]};
        pthread_t thread = start_thread(hold_in_thread, &h);
        AWAIT(atomic_load(&h.stage) == 1);
        run_child(hold_nothing, seg);
        REFUSED(shmview_trylock(seg), TIMED_OUT, "");
        atomic_store(&h.stage, 2);
        expect_done(thread);
        OK(shmview_lock(seg));
        OK(shmview_unlock(seg));
    }
    close_segment();
}
END_TEST

/* The library keeps something for each of these: layouts, more segments, other watchers. */
static int change_segment(struct shmview_segment *s, const struct shmview_view_spec *many, size_t n)
{
    struct shmview_view v;
    int fd;
    int r = shmview_define(s, "many", many, n);
    if (r == 0)
        r = shmview_view_open(s, "many", many[n - 1].name, &v);
    if (r == 0)
        r = shmview_change_fd(s, &fd);
    if (r == 0)
        r = shmview_notify(s);
    return r;
}

/* Changes everything that a process keeps of its connection, its segments and their layouts.
 * Uses nothing of check: its mutex, held by this thread, would stay held in a forked child. */
static int change_connection(unsigned turn, const struct shmview_view_spec *many, size_t n)
{
    struct shmview_connection *c;
    struct shmview_segment *s;
    char name[32];
    int r = shmview_connect(d.socket, 0, &c);
    if (r)
        return r;
    /* each its own: a Detach of another connection may still be on its way to the daemon */
    snprintf(name, sizeof name, "brief-%u", turn);
    r = shmview_create(c, name, 4096, NULL, &s);
    if (r == 0) {
        r = change_segment(s, many, n);
        int detached = shmview_detach(s);
        r = r ? r : detached;
    }
    int disconnected = shmview_disconnect(c);
    return r ? r : disconnected;
}

static void *change_what_is_private(void *arg)
{
    _Atomic int *stop = arg;
    static char failed[256];
    const ptrdiff_t ten = 10;
    struct shmview_view_spec many[40];
    struct shmview_view v;
    char names[40][16];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "v%d", i);
        many[i] =
            (struct shmview_view_spec){.name = names[i], .format = "i", .ndim = 1, .shape = &ten};
    }
    for (unsigned turn = 0; !atomic_load(stop); turn++) {
        int r = change_connection(turn, many, 40);
        if (r == 0 && shmview_view_open(seg, "a", "b", &v) != -SHMVIEW_ERR_NO_LAYOUT)
            r = -1;
        if (r) {
            snprintf(failed, sizeof failed, "%d: %s", r, shmview_error_text());
            return failed;
        }
    }
    return NULL;
}

static void use_what_is_inherited(struct child *me, void *arg)
{
    (void)me;
    struct shmview_view v;
    OK(shmview_ping(conn));
    REFUSED(shmview_view_open(arg, "a", "b", &v), NO_LAYOUT, "");
    OK(shmview_lock(arg));
    OK(shmview_unlock(arg));
}

/* ASan's allocator is not to be used in the child of a process with threads. */
#ifdef __SANITIZE_ADDRESS__
#define FORKS 0
#else
#define FORKS 100
#endif

START_TEST(fork_in_the_middle_of_others_calls)
{
    _Atomic int stop = 0;
    open_segment();
    pthread_t thread = start_thread(change_what_is_private, &stop);
    for (int i = 0; i < FORKS; i++)
        run_child(use_what_is_inherited, seg);
    atomic_store(&stop, 1);
    expect_done(thread);
    close_segment();
}
END_TEST

/* What the early thread of a child looks at, and the lock that it knows already. */
struct early {
    struct shmview_slot *slot;
    struct shmview_segment *known;
};

/* Uses the handle at the very moment at which the slot becomes this process's. */
static void *use_early(void *arg)
{
    const struct early *e = arg;
    const _Atomic uint32_t *pid = (_Atomic uint32_t *)&e->slot->pid;
    uint32_t mine = (uint32_t)getpid();
    int64_t deadline = await_now_ns() + AWAIT_NS;
    if (shmview_lock_shared(e->known) || shmview_unlock(e->known))
        return "shared lock failed";
    while (atomic_load_explicit(pid, memory_order_relaxed) != mine)
        if (await_now_ns() > deadline)
            return "the slot is not this process's";
    if (shmview_lock_shared(seg))
        return "shared lock failed";
    usleep(100);
    if ((atomic_load((_Atomic uint32_t *)&e->slot->readers) & SHMVIEW_READER_COUNT_MASK) != 1)
        return "the share is not counted";
    return shmview_unlock(seg) ? "unlock failed" : NULL;
}

static void first_use_by_two_threads(struct child *me, void *arg)
{
    (void)me;
    pthread_t early = start_thread(use_early, arg);
    usleep(500);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    expect_done(early);
}

START_TEST(first_use_in_a_child_by_two_threads)
{
    struct raw raw;
    open_segment();
    struct shmview_segment *known = client_create(conn, "known", 10);
    OK(shmview_lock_shared(seg)); /* readers in use */
    OK(shmview_unlock(seg));
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'s','access':'read'}"));
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw.fds[1], 0);
    const struct shmview_liveness *live = mmap(NULL, 4096, PROT_READ, MAP_SHARED, raw.fds[2], 0);
    ck_assert(p != MAP_FAILED && live != MAP_FAILED);
    const _Atomic uint32_t *in_use = (const _Atomic uint32_t *)&live->generation[2];
    /* slot 0 is ours, 1 the raw client's, 2 the child's: it is free again each time */
    struct early early = {
        .slot = (struct shmview_slot *)(void *)((struct shmview_control *)p + 1) + 2,
        .known = known,
    };
    for (int i = 0; i < 300; i++) {
        run_child(first_use_by_two_threads, &early);
        AWAIT(atomic_load(in_use) & SHMVIEW_GENERATION_DEAD); /* the daemon has heard of its end */
    }
    munmap(p, 4096);
    munmap((void *)(uintptr_t)live, 4096);
    raw_close(&raw);
    OK(shmview_detach(known));
    close_segment();
}
END_TEST

/* --- Exec ---------------------------------------------------------------- */

static void exec_while_sharing(struct child *me, void *arg)
{
    OK(shmview_lock_shared(arg));
    child_tell(me, 1);
    child_pause(me);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

START_TEST(exec_gives_shares_back)
{
    struct child child;
    open_segment();
    child_start(&child, exec_while_sharing, seg);
    child_hear(&child, 1);
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    child_cue(&child);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    child_kill(&child);
    close_segment();
}
END_TEST

/* --- The end of threads -------------------------------------------------- */

#define LIVING 4100

static _Atomic int n_refused;
static sem_t may_end; /* no thread polls: thousands that do leave the processor to nobody else */

static void *use_and_stay(void *arg)
{
    int r = shmview_lock_shared(arg);
    if (r == -SHMVIEW_ERR_LIMIT)
        atomic_fetch_add(&n_refused, 1);
    else if (r || shmview_unlock(arg))
        return "shared lock failed";
    while (sem_wait(&may_end))
        continue;
    return NULL;
}

/* 4095 threads of a process may use locks; those that ended do not count. */
START_TEST(threads_that_use_locks)
{
    static pthread_t thread[LIVING];
    pthread_attr_t small;
    open_segment();
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    for (int i = 0; i < 200; i++)
        expect_done(start_thread(wait_to_read, seg));
    sem_init(&may_end, 0, 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    for (int i = 0; i < LIVING; i++)
        if (pthread_create(&thread[i], &small, use_and_stay, seg))
            ck_abort_msg("%d threads and no more", i);
    AWAIT(atomic_load(&n_refused) == LIVING + 1 - 4095);
    for (int i = 0; i < LIVING; i++)
        sem_post(&may_end);
    for (int i = 0; i < LIVING; i++)
        expect_done(thread[i]);
    expect_done(start_thread(wait_to_write, seg));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    pthread_attr_destroy(&small);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(fork_while_holding),
        SUITE_TEST(child_gives_up_what_it_never_used),
        SUITE_TEST(end_of_an_idle_child_is_nobodys_business),
        SUITE_TEST(fork_while_other_threads_wait),
        SUITE_TEST(fork_while_another_thread_holds),
        SUITE_TEST(fork_in_the_middle_of_others_calls),
        SUITE_TEST(first_use_in_a_child_by_two_threads),
        SUITE_TEST(exec_gives_shares_back),
        SUITE_TEST(threads_that_use_locks),
        SUITE_END,
    };
    return suite_main("fork_exec", tests);
}
