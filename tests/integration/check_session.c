/* SPDX-License-Identifier: Apache-2.0 */
/* The session daemon that the library starts where it finds none: one for all clients, which
 * inherits nothing and exits when no client needs it. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "session.h"

/* --- Starting one -------------------------------------------------------- */

START_TEST(the_first_program_starts_one)
{
    struct stat st;
    char cwd[8] = "";
    char path[64];
    begin("600");
    struct shmview_connection *conn = connect_default();
    daemon_adopt(&d, session);
    ck_assert_uint_eq(place_daemons(), 1);
    struct shmview_segment *seg = client_create(conn, "first", 100);
    struct shmview_connection *second = connect_default();
    OK(shmview_detach(client_attach(second, "first", SHMVIEW_READ)));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(second));
    OK(shmview_disconnect(conn));
    ck_assert_uint_eq(place_daemons(), 1);

    ck_assert_int_eq(stat(session, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    *strrchr(session, '/') = '\0';
    ck_assert_int_eq(stat(session, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0700);
    ck_assert_int_ne(getsid(d.pid), getsid(0));
    snprintf(path, sizeof path, "/proc/%d/cwd", d.pid);
    ck_assert_int_eq(readlink(path, cwd, sizeof cwd - 1), 1);
    ck_assert_str_eq(cwd, "/");
    daemon_stop(&d);
    end();
}
END_TEST

#define CROWD 8

/* Everybody creates a segment and finds those of all others. */
static void take_part(struct child *me, void *arg)
{
    const int *number = arg;
    char name[16];
    child_pause(me);
    struct shmview_connection *conn = connect_default();
    snprintf(name, sizeof name, "seg-%d", *number);
    struct shmview_segment *mine = client_create(conn, name, 100);
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof name, "seg-%d", i);
        OK(shmview_detach(client_attach(conn, name, SHMVIEW_READ)));
    }
    child_tell(me, 2);
    child_pause(me);
    OK(shmview_detach(mine));
    OK(shmview_disconnect(conn));
}

START_TEST(a_crowd_starts_one)
{
    struct child children[CROWD];
    int numbers[CROWD];
    begin("600");
    for (int i = 0; i < CROWD; i++) {
        numbers[i] = i;
        child_start(&children[i], take_part, &numbers[i]);
    }
    for (int what = 1; what <= 2; what++) {
        for (int i = 0; i < CROWD; i++)
            child_cue(&children[i]);
        for (int i = 0; i < CROWD; i++)
            child_hear(&children[i], what);
    }
    daemon_adopt(&d, session);
    AWAIT(place_daemons() == 1);
    for (int i = 0; i < CROWD; i++)
        child_cue(&children[i]);
    for (int i = 0; i < CROWD; i++)
        child_wait(&children[i]);
    daemon_stop(&d);
    end();
}
END_TEST

START_TEST(it_inherits_nothing)
{
    int ends[2];
    sigset_t mask, old;
    begin("600");
    ck_assert_int_eq(pipe(ends), 0); /* without O_CLOEXEC */
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    int high = fcntl(ends[1], F_DUPFD, 500);
    sigfillset(&mask);
    sigprocmask(SIG_SETMASK, &mask, &old);
    signal(SIGINT, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* nor may it matter that nobody waits */
    struct shmview_connection *conn = connect_default();
    signal(SIGCHLD, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    daemon_adopt(&d, session);
    close(ends[1]);
    close(high);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 10000), 1);
    ck_assert_int_eq(p.revents & (POLLIN | POLLHUP), POLLHUP);
    close(ends[0]);
    OK(shmview_disconnect(conn));
    daemon_stop(&d); /* hears SIGINT */
    end();
}
END_TEST

START_TEST(a_socket_left_by_the_dead_is_replaced)
{
    begin("600");
    struct shmview_connection *conn = connect_default();
    daemon_adopt(&d, session);
    OK(shmview_disconnect(conn));
    daemon_kill(&d);
    ck_assert_int_eq(access(session, F_OK), 0);
    conn = connect_default();
    daemon_adopt(&d, session);
    OK(shmview_ping(conn));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    end();
}
END_TEST

/* --- Leaving ------------------------------------------------------------- */

START_TEST(it_leaves_when_nobody_needs_it)
{
    begin("1");
    struct shmview_connection *conn = connect_default();
    daemon_adopt(&d, session);
    OK(shmview_detach(client_create_with(conn, "kept", 100, SHMVIEW_MANUAL, 0)));
    pause_ms(1200);
    ck_assert(process_lives(d.pid)); /* for its client */
    OK(shmview_disconnect(conn));
    pause_ms(1200);
    ck_assert(process_lives(d.pid)); /* for the segment */
    conn = connect_default();
    OK(shmview_remove(conn, "kept"));
    OK(shmview_disconnect(conn));
    daemon_await_end(&d);
    end();
}
END_TEST

/* The one that serves now; the one before must have left in good order. */
static void follow(void)
{
    pid_t before = d.pid;
    daemon_adopt(&d, session);
    if (before && before != d.pid)
        ck_assert_int_eq(process_wait(before), 0);
}

/* Connects at the moment at which the one before leaves, a second after its last
 * client: once its socket goes, or just then. */
static void connect_again(int64_t leaves_at, bool socket_goes)
{
    while (await_again(leaves_at - 50000000))
        continue;
    while (socket_goes ? access(session, F_OK) == 0 : await_now_ns() < leaves_at)
        continue;
    struct shmview_connection *conn = connect_default();
    OK(shmview_detach(client_create(conn, "next", 100)));
    follow(); /* before the daemon may leave again */
    OK(shmview_disconnect(conn));
}

START_TEST(one_that_leaves_is_followed_by_another)
{
    begin("1");
    struct shmview_connection *conn = connect_default();
    follow();
    OK(shmview_disconnect(conn));
    for (int i = 0; i < 2; i++) {
        connect_again(await_now_ns() + 1000000000, true);
        connect_again(await_now_ns() + 999000000 + i * 700000, false);
    }
    daemon_stop(&d);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(the_first_program_starts_one),
        SUITE_TEST(a_crowd_starts_one),
        SUITE_TEST(it_inherits_nothing),
        SUITE_TEST(a_socket_left_by_the_dead_is_replaced),
        SUITE_TEST(it_leaves_when_nobody_needs_it),
        SUITE_TEST(one_that_leaves_is_followed_by_another),
        SUITE_END,
    };
    return session_main("session", tests);
}
