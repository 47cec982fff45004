/* SPDX-License-Identifier: Apache-2.0 */
/* Changes for event loops: descriptors of those who want to hear of them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/await.h"
#include "support/change.h"
#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#include "one_segment.h"

static void notify(struct child *me, void *arg)
{
    (void)me;
    OK(shmview_notify(arg));
}

static void run_child(void (*run)(struct child *me, void *arg), void *arg)
{
    struct child child;
    child_start(&child, run, arg);
    child_wait(&child);
}

/* --- One watcher --------------------------------------------------------- */

START_TEST(readable_when_another_process_notifies)
{
    struct child child;
    open_segment();
    int fd = watch(seg);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ck_assert(!is_readable(fd));
    for (unsigned i = 1; i <= 3; i++) {
        child_start(&child, notify, seg);
        await_readable(fd);
        child_wait(&child); /* its end is heard as well: it may not have come to tell */
        ck_assert_uint_eq(shmview_change(seg), i);
        AWAIT(is_readable(fd));
        drain(fd);
    }
    close_segment();
}
END_TEST

START_TEST(each_handle_has_one)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    int fd = watch(seg), other_fd = watch(other);
    ck_assert_int_ne(fd, other_fd);
    ck_assert_int_eq(watch(seg), fd);
    ck_assert_int_eq(watch(other), other_fd);
    for (int i = 0; i < 3; i++) {
        OK(i % 2 ? shmview_notify(seg) : shmview_notify_one(other));
        AWAIT(is_readable(other_fd) && is_readable(fd));
        drain(fd);
        drain(other_fd);
    }
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

/* The program closes the number by accident, and gives it to a file of its own: the number
 * is then not the library's. */
START_TEST(number_that_the_program_has_closed)
{
    open_segment();
    int fd = watch(seg);
    close(fd);
    int file = dup3(STDIN_FILENO, fd, O_CLOEXEC);
    ck_assert_int_eq(file, fd);
    int other = watch(seg);
    ck_assert_int_ne(other, file);
    OK(shmview_notify(seg));
    await_readable(other);
    close(other);
    ck_assert_int_eq(dup3(STDIN_FILENO, other, O_CLOEXEC), other);
    OK(shmview_detach(seg));
    ck_assert_int_eq(close(file), 0);
    ck_assert_int_eq(close(other), 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

/* The only socket of that kind here. */
static int find_bell(void)
{
    int type;
    for (int fd = 0; fd < 1024; fd++) {
        socklen_t n = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET)
            return fd;
    }
    return -1;
}

static void expect_heard(int fd)
{
    drain(fd);
    OK(shmview_notify(seg));
    await_readable(fd);
}

/* What a short lack of descriptors costs is over with it, and the connection stays. */
START_TEST(no_bell_and_no_descriptors)
{
    struct rlimit old;
    open_segment();
    int fd = watch(seg), bell = find_bell();
    ck_assert_int_ge(bell, 0);
    expect_heard(fd);
    close(bell);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit few = {3, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 3; i++) {
        expect_heard(fd);
        OK(shmview_ping(conn));
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    expect_heard(fd);
    OK(shmview_ping(conn));
    ck_assert_int_ge(find_bell(), 0);
    expect_heard(fd);
    close_segment();
}
END_TEST

START_TEST(many_changes_unread)
{
    open_segment();
    int fd = watch(seg);
    /* whatever a watcher does to its end, a notifier must not block */
    int flags = fcntl(fd, F_GETFL);
    ck_assert(flags & O_NONBLOCK);
    ck_assert_int_eq(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK), 0);
    for (int i = 0; i < 10000; i++)
        OK(shmview_notify(seg));
    ck_assert_uint_eq(shmview_change(seg), 10000);
    AWAIT(is_readable(fd));
    int unread = 0;
    ck_assert_int_eq(ioctl(fd, FIONREAD, &unread), 0);
    ck_assert_int_eq(unread, sizeof(uint64_t)); /* the daemon repeats no ring that is unread */
    ck_assert_int_eq(fcntl(fd, F_SETFL, flags), 0);
    drain(fd);
    OK(shmview_notify(seg));
    AWAIT(is_readable(fd));
    close_segment();
}
END_TEST

/* --- Many watchers ------------------------------------------------------- */

#define LOOPS   3
#define CHANGES 500

/* An event loop of its own: the counter must come to CHANGES, and nothing but the
 * descriptor tells that it moves. */
static void follow(struct child *me, void *arg)
{
    struct epoll_event event = {.events = EPOLLIN};
    int loop = epoll_create1(EPOLL_CLOEXEC), fd = watch(arg);
    ck_assert_int_ge(loop, 0);
    ck_assert_int_eq(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
    child_tell(me, 1);
    while (shmview_change(arg) < CHANGES) {
        ck_assert_int_eq(epoll_wait(loop, &event, 1, (int)(AWAIT_NS / 1000000)), 1);
        drain(fd);
    }
}

START_TEST(event_loops_in_several_processes)
{
    struct child child[LOOPS];
    open_segment();
    for (int i = 0; i < LOOPS; i++) {
        child_start(&child[i], follow, seg);
        child_hear(&child[i], 1);
    }
    for (int i = 0; i < CHANGES; i++)
        OK(shmview_notify(seg));
    for (int i = 0; i < LOOPS; i++)
        child_wait(&child[i]);
    close_segment();
}
END_TEST

START_TEST(watchers_come_and_go)
{
    struct child child[LOOPS];
    open_segment();
    int fd = watch(seg);
    OK(shmview_notify(seg));
    unsigned before = process_descriptors(getpid());
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LOOPS; i++) {
            child_start(&child[i], watch_and_tell, seg);
            child_hear(&child[i], 1);
        }
        drain(fd);
        OK(shmview_notify(seg)); /* heard by all, however new */
        AWAIT(is_readable(fd));
        for (int i = 0; i < LOOPS; i++)
            child_hear(&child[i], 2);
        child_kill(&child[0]);
        for (int i = 1; i < LOOPS; i++) {
            child_cue(&child[i]);
            child_wait(&child[i]);
        }
        OK(shmview_notify(seg));
        AWAIT(is_readable(fd));
    }
    /* the dead are forgotten, sooner or later */
    AWAIT(shmview_notify(seg) == 0 && process_descriptors(getpid()) <= before);
    close_segment();
}
END_TEST

START_TEST(sixty_four_watches)
{
    struct shmview_segment *s[65];
    int fd[64], one_more = 77;
    open_segment();
    for (int i = 0; i < 65; i++)
        s[i] = client_attach(conn, "s", i % 2 ? SHMVIEW_READ : SHMVIEW_WRITE);
    for (int i = 0; i < 64; i++)
        fd[i] = watch(s[i]);
    REFUSED(shmview_change_fd(s[64], &one_more), LIMIT, "'s' has 64 watches");
    ck_assert_int_eq(one_more, 77);
    for (int i = 0; i < 64; i++)
        drain(fd[i]);
    OK(shmview_notify(s[64]));
    for (int i = 0; i < 64; i++)
        AWAIT(is_readable(fd[i]));
    OK(shmview_detach(s[7]));
    one_more = watch(s[64]);
    drain(one_more);
    OK(shmview_notify(seg));
    AWAIT(is_readable(one_more));
    for (int i = 0; i < 65; i++)
        if (i != 7)
            OK(shmview_detach(s[i]));
    close_segment();
}
END_TEST

/* --- Deaths -------------------------------------------------------------- */

/* It may have died between the change and telling of it. */
START_TEST(death_of_a_user_is_heard)
{
    struct child child;
    open_segment();
    int fd = watch(seg);
    child_start(&child, notify_and_stay, seg);
    child_hear(&child, 1);
    drain(fd);
    child_kill(&child);
    await_readable(fd);
    drain(fd);
    close_segment();
}
END_TEST

/* --- Fork ---------------------------------------------------------------- */

static void watch_of_its_own(struct child *me, void *arg)
{
    int fd = watch(arg);
    child_tell(me, 1);
    child_pause(me);
    await_readable(fd);
    drain(fd); /* must not take away what its parent is told */
}

START_TEST(forked_child_has_its_own)
{
    struct child child;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    int fd = watch(seg);
    child_start(&child, watch_of_its_own, seg);
    child_hear(&child, 1);
    drain(fd);
    OK(shmview_notify(other));
    AWAIT(is_readable(fd));
    child_cue(&child);
    child_wait(&child);
    AWAIT(is_readable(fd));
    drain(fd);
    OK(shmview_notify(other));
    AWAIT(is_readable(fd));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

/* The parent has a bell; the child closes that and gets its own. */
START_TEST(forked_child_of_a_notifier_is_heard)
{
    struct child child;
    open_segment();
    int fd = watch(seg);
    OK(shmview_notify(seg));
    drain(fd);
    child_start(&child, notify_and_stay, seg);
    child_hear(&child, 1);
    AWAIT(is_readable(fd));
    child_cue(&child);
    child_wait(&child);
    close_segment();
}
END_TEST

/* --- Threads ------------------------------------------------------------- */

static void *notify_cancelled(void *arg)
{
    pthread_cancel(pthread_self()); /* takes effect at the next chance */
    if (shmview_notify(arg))
        return "notify failed";
    pthread_testcancel();
    return "not cancelled";
}

/* Where a thread is cancelled in the middle, nobody else may be stuck behind it. */
static void use_after_a_cancelled_notifier(struct child *me, void *arg)
{
    pthread_t thread;
    void *result;
    OK(shmview_notify(arg)); /* its own attachment */
    ck_assert_int_eq(pthread_create(&thread, NULL, notify_cancelled, arg), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    OK(shmview_notify(arg));
    OK(shmview_ping(conn));
    child_tell(me, 1);
}

START_TEST(cancelled_notifier_stops_nobody)
{
    struct child child;
    open_segment();
    int fd = watch(seg);
    child_start(&child, use_after_a_cancelled_notifier, seg);
    child_hear(&child, 1);
    child_wait(&child);
    ck_assert_uint_eq(shmview_change(seg), 3);
    AWAIT(is_readable(fd));
    close_segment();
}
END_TEST

START_TEST(descriptors_go_with_the_handle)
{
    open_segment();
    unsigned before = process_descriptors(getpid());
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    watch(other);
    OK(shmview_notify(other));
    ck_assert_uint_gt(process_descriptors(getpid()), before);
    OK(shmview_detach(other));
    ck_assert_uint_eq(process_descriptors(getpid()), before);
    run_child(notify, seg);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(readable_when_another_process_notifies),
        SUITE_TEST(each_handle_has_one),
        SUITE_TEST(number_that_the_program_has_closed),
        SUITE_TEST(no_bell_and_no_descriptors),
        SUITE_TEST(many_changes_unread),
        SUITE_TEST(event_loops_in_several_processes),
        SUITE_TEST(watchers_come_and_go),
        SUITE_TEST(sixty_four_watches),
        SUITE_TEST(death_of_a_user_is_heard),
        SUITE_TEST(forked_child_has_its_own),
        SUITE_TEST(forked_child_of_a_notifier_is_heard),
        SUITE_TEST(cancelled_notifier_stops_nobody),
        SUITE_TEST(descriptors_go_with_the_handle),
        SUITE_END,
    };
    return suite_main("change_fd", tests);
}
