/* SPDX-License-Identifier: Apache-2.0 */
/* Holders that the kernel has begun to end but not ended, and holders that only look like it. */
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#include "one_segment.h"

#define HEAP_BYTES   ((size_t)256 << 20)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define LONG_NS  (INT64_C(60) * 1000000000)
#define SHORT_NS (INT64_C(200) * 1000000)

static void touch_heap(void)
{
    char *heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(heap, MAP_FAILED);
    memset(heap, 1, HEAP_BYTES);
}

static void hold(struct child *me, void *arg)
{
    touch_heap();
    int r = shmview_lock(arg);
    ck_assert_int_ge(r, 0);
    child_tell(me, 1);
    child_pause(me);
}

static void hold_shared(struct child *me, void *arg)
{
    touch_heap();
    OK(shmview_lock_shared(arg));
    child_tell(me, 1);
    child_pause(me);
}

static int lock_for(int64_t ns)
{
    return shmview_lock_until(seg, shmview_deadline(ns));
}

/* The kernel closes the descriptors of a process after it has freed its memory. */
static bool has_sockets(const struct child *child)
{
    struct pollfd p = {.fd = child->fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

static void *kill_later(void *arg)
{
    usleep(20000);
    kill(*(pid_t *)arg, SIGKILL);
    return NULL;
}

/* Kills a holder while this process waits. Returns whether the lock came before the kernel had
 * freed the holder's memory. */
static bool lock_comes_early(void (*holder)(struct child *, void *), int outcome)
{
    struct child child;
    pthread_t killer;
    child_start(&child, holder, seg);
    child_hear(&child, 1);
    ck_assert_int_eq(pthread_create(&killer, NULL, kill_later, &child.pid), 0);
    int r = lock_for(LONG_NS);
    bool is_early = has_sockets(&child);
    ck_assert_int_eq(r, outcome);
    OK(shmview_unlock(seg));
    pthread_join(killer, NULL);
    child_kill(&child);
    return is_early;
}

/* This process may be suspended for longer than the kernel frees memory, so it tries again. */
static void must_come_early(void (*holder)(struct child *, void *), int outcome)
{
    bool is_early = false;
    open_segment();
    for (int i = 0; i < 20 && !is_early; i++)
        is_early = lock_comes_early(holder, outcome);
    ck_assert(is_early);
    close_segment();
}

START_TEST(an_owner_is_dead_before_its_memory_is_freed)
{
    must_come_early(hold, SHMVIEW_OWNER_DIED);
}
END_TEST

START_TEST(a_reader_is_dead_before_its_memory_is_freed)
{
    must_come_early(hold_shared, 0);
}
END_TEST

/* Its connection is gone, so the daemon knows it only as a survivor. */
static void hold_without_connection(struct child *me, void *arg)
{
    touch_heap();
    OK(shmview_lock(arg));
    for (int fd = 3; fd < 100; fd++)
        if (fd != me->fd)
            close(fd);
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(a_survivor_is_dead_before_its_memory_is_freed)
{
    must_come_early(hold_without_connection, SHMVIEW_OWNER_DIED);
}
END_TEST

static void *hold_in_thread(void *arg)
{
    OK(shmview_lock(arg));
    for (;;)
        pause();
    return NULL;
}

/* The first thread ends and leaves the holder to another one. */
static void lose_leader(struct child *me, void *arg)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_in_thread, arg), 0);
    while (shmview_trylock(arg) == 0)
        shmview_unlock(arg);
    child_tell(me, 1);
    syscall(SYS_exit, 0);
}

static void hold_in_vfork(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
}

static void hold_stopped(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    raise(SIGSTOP);
    child_pause(me);
}

static void (*const living[])(struct child *, void *) = {lose_leader, hold_in_vfork, hold_stopped};

START_TEST(a_holder_that_lives_keeps_the_lock)
{
    open_segment();
    for (size_t i = 0; i < ARRAY_LEN(living); i++) {
        struct child child;
        child_start(&child, living[i], seg);
        child_hear(&child, 1);
        ck_assert_int_eq(lock_for(SHORT_NS), -SHMVIEW_ERR_TIMED_OUT);
        kill(child.pid, SIGKILL);
        ck_assert_int_eq(lock_for(LONG_NS), SHMVIEW_OWNER_DIED);
        OK(shmview_unlock(seg));
        child_kill(&child);
    }
    close_segment();
}
END_TEST

/* Whether the kernel has futexes that wait for a thread of another process. */
static bool kernel_can_watch(void)
{
    struct timespec past = {0};
    uint32_t word = (uint32_t)getppid();
    return syscall(SYS_futex, &word, FUTEX_LOCK_PI2, 0, &past, NULL, 0) < 0 && errno == ETIMEDOUT;
}

/* Returns whether the daemon has a thread that watches a process. */
static bool daemon_watches(void)
{
    char path[64], name[32];
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)d.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; !is_found && (e = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.10s/comm", (int)d.pid, e->d_name);
        FILE *f = fopen(path, "re");
        is_found = f && fgets(name, sizeof name, f) && strcmp(name, "exit-watch\n") == 0;
        if (f)
            fclose(f);
    }
    closedir(dir);
    return is_found;
}

static void *wait_in_thread(void *arg)
{
    *(int *)arg = lock_for(LONG_NS);
    if (*(int *)arg == SHMVIEW_OWNER_DIED)
        OK(shmview_unlock(seg));
    return NULL;
}

/* Also until the daemon ends, for which it does not wait. */
START_TEST(a_holder_is_watched_while_a_thread_waits)
{
    struct child child;
    pthread_t thread;
    int r = 0;
    if (!kernel_can_watch())
        return;
    open_segment();
    child_start(&child, hold, seg);
    child_hear(&child, 1);
    ck_assert_int_eq(lock_for(0), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert(!daemon_watches());
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_thread, &r), 0);
    while (!daemon_watches())
        usleep(1000);
    sleep(2); /* longer than the daemon watches without a further report */
    while (!daemon_watches())
        usleep(1000);
    child_kill(&child);
    pthread_join(thread, NULL);
    ck_assert_int_eq(r, SHMVIEW_OWNER_DIED);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(an_owner_is_dead_before_its_memory_is_freed),
        SUITE_TEST(a_reader_is_dead_before_its_memory_is_freed),
        SUITE_TEST(a_survivor_is_dead_before_its_memory_is_freed),
        SUITE_TEST(a_holder_that_lives_keeps_the_lock),
        SUITE_TEST(a_holder_is_watched_while_a_thread_waits),
        SUITE_END,
    };
    return suite_main("exiting_holder", tests);
}
