/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that lose their connection and live on: what they have stays theirs until they end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;

/* --- The holder ---------------------------------------------------------- */

/* How it loses its connection. */
enum way {
    CLOSES,  /* the program closes descriptors that are not its own */
    REUSES,  /* and gives the number to a file */
    TALKS,   /* and gives the number to a socket of its own */
    BABBLES, /* the daemon hangs up, because of what the program has written there */
    LENDS,   /* closes, but a child that ran no fork handlers has the socket */
    N_WAYS
};

struct holder {
    enum way way;
    int socket; /* the number that it had */
    int peer;   /* of the program's own socket of that number */
    struct shmview_connection *connection;
    struct shmview_segment *segment;
};

/* That of the connection. */
static int find_socket(void)
{
    for (int fd = 3; fd < 100; fd++) {
        struct sockaddr_un peer = {0};
        socklen_t n = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &n) == 0 &&
            strcmp(peer.sun_path, d.socket) == 0)
            return fd;
    }
    ck_abort_msg("no socket");
}

static void put_file_at(int fd)
{
    int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    if (file == fd)
        return;
    ck_assert_int_eq(dup2(file, fd), fd);
    close(file);
}

static void expect_file_at(int fd)
{
    char byte = 1;
    ck_assert_int_eq(read(fd, &byte, 1), 1);
    ck_assert_int_eq(byte, 0);
}

/* Returns its peer. */
static int put_socket_at(int fd)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(dup2(pair[0], fd), fd);
    close(pair[0]);
    return pair[1];
}

/* Nothing was sent to it, and it was not closed. */
static void expect_silence(int peer)
{
    char byte;
    ck_assert_int_eq(recv(peer, &byte, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

static void lose_connection(struct child *me, struct holder *h)
{
    char byte;
    h->socket = find_socket();
    switch (h->way) {
    case LENDS:
        if (_Fork() == 0) {
            struct pollfd test = {.fd = me->fd};
            _exit(poll(&test, 1, -1) < 0); /* until it hangs up */
        }
        close(h->socket);
        break;
    case REUSES:
        put_file_at(h->socket);
        break;
    case TALKS:
        h->peer = put_socket_at(h->socket);
        break;
    case BABBLES:
        ck_assert_int_eq(send(h->socket, "{", 2, MSG_NOSIGNAL), 2);
        AWAIT(recv(h->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
        break;
    default:
        close(h->socket);
    }
}

static void hold(struct child *me, void *arg)
{
    struct holder *h = arg;
    h->connection = client_connect(&d);
    h->segment = client_create_with(h->connection, "s", 100, SHMVIEW_CREATOR, 0);
    OK(shmview_lock(h->segment));
    lose_connection(me, h);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_ping(h->connection));
    if (h->way == REUSES)
        expect_file_at(h->socket);
    if (h->way == TALKS)
        expect_silence(h->peer);
    child_tell(me, 2);
    child_pause(me);
    OK(shmview_unlock(h->segment));
    OK(shmview_lock(h->segment));
    OK(shmview_unlock(h->segment));
    OK(shmview_detach(h->segment));
    OK(shmview_disconnect(h->connection));
}

/* --- The others ---------------------------------------------------------- */

static unsigned attachments(struct shmview_connection *c)
{
    const struct shmview_stats *stats;
    OK(shmview_stats_get(c, NULL, &stats));
    unsigned n = (unsigned)stats->attachments;
    shmview_stats_free(stats);
    return n;
}

START_TEST(returns)
{
    for (enum way way = 0; way < N_WAYS; way++) {
        struct holder h = {.way = way};
        struct child child;
        daemon_start(&d);
        child_start(&child, hold, &h);
        child_hear(&child, 1);
        struct shmview_connection *c = client_connect(&d);
        struct shmview_segment *s = client_attach(c, "s", SHMVIEW_WRITE);
        REFUSED(shmview_trylock(s), TIMED_OUT, "");
        ck_assert_uint_eq(attachments(c), 2);
        child_cue(&child);
        child_hear(&child, 2);
        REFUSED(shmview_trylock(s), TIMED_OUT, "");
        ck_assert_uint_eq(attachments(c), 2);
        child_cue(&child);
        OK(shmview_lock(s)); /* its owner did not die */
        OK(shmview_unlock(s));
        child_wait(&child);
        OK(shmview_detach(s));
        AWAIT(daemon_objects(&d) == 0); /* its creator has disconnected */
        OK(shmview_disconnect(c));
        daemon_stop(&d);
    }
}
END_TEST

static void hold_and_exec(struct child *me, void *arg)
{
    struct holder *h = arg;
    h->connection = client_connect(&d);
    h->segment = client_create_with(h->connection, "s", 100, SHMVIEW_CREATOR, 0);
    OK(shmview_lock(h->segment));
    lose_connection(me, h);
    child_tell(me, 1);
    child_pause(me);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

/* Without another word to the daemon. */
static void end_it(bool execs)
{
    for (enum way way = 0; way < N_WAYS; way++) {
        struct holder h = {.way = way};
        struct child child;
        daemon_start(&d);
        child_start(&child, hold_and_exec, &h);
        child_hear(&child, 1);
        struct shmview_connection *c = client_connect(&d);
        struct shmview_segment *s = client_attach(c, "s", SHMVIEW_WRITE);
        if (execs)
            child_cue(&child);
        else
            child_kill(&child);
        ck_assert_int_eq(shmview_lock(s), SHMVIEW_OWNER_DIED);
        OK(shmview_unlock(s));
        OK(shmview_detach(s));
        AWAIT(daemon_objects(&d) == 0);
        OK(shmview_disconnect(c));
        if (execs)
            child_kill(&child);
        daemon_stop(&d);
    }
}

START_TEST(is_killed)
{
    end_it(false);
}
END_TEST

START_TEST(becomes_another_program)
{
    end_it(true);
}
END_TEST

/* --- Without a presence -------------------------------------------------- */

/* The mapping fails, for want of address space. */
static void hold_without(struct child *me, void *arg)
{
    struct holder *h = arg;
    const struct rlimit none = {0, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    OK(shmview_disconnect(client_connect(&d))); /* what the library maps once is mapped */
    free(malloc(60000));                        /* stays in the heap */
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    ck_assert_ptr_eq(mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    h->connection = client_connect(&d);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &all), 0);
    h->segment = client_create(h->connection, "s", 100);
    OK(shmview_lock(h->segment));
    child_tell(me, 1);
    child_pause(me);
    lose_connection(me, h);
    child_pause(me);
}

START_TEST(has_no_presence)
{
    struct holder h = {.way = CLOSES};
    struct child child;
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__)
    return; /* malloc() of musl maps memory for each new size, and that of the sanitizer at times */
#endif
    daemon_start(&d);
    child_start(&child, hold_without, &h);
    child_hear(&child, 1);
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "s", SHMVIEW_WRITE);
    REFUSED(shmview_trylock(s), TIMED_OUT, "");
    child_cue(&child);
    ck_assert_int_eq(shmview_lock(s), SHMVIEW_OWNER_DIED); /* it has hung up */
    OK(shmview_unlock(s));
    child_kill(&child);
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
    daemon_stop(&d);
}
END_TEST

/* --- Forked children ----------------------------------------------------- */

/* Gives the number of the inherited socket to a file before it asks the daemon. */
static void use_number(struct child *me, void *arg)
{
    struct holder *h = arg;
    (void)me;
    put_file_at(h->socket);
    OK(shmview_lock(h->segment));
    OK(shmview_unlock(h->segment));
    OK(shmview_ping(h->connection));
    expect_file_at(h->socket);
}

START_TEST(children_have_files_of_their_own)
{
    struct child me = {.fd = -1};
    struct holder h = {0};
    daemon_start(&d);
    h.connection = client_connect(&d);
    h.segment = client_create(h.connection, "s", 100);
    h.socket = find_socket();
    for (int handlers = 0; handlers < 2; handlers++) {
        pid_t pid = handlers ? fork() : _Fork();
        if (pid == 0) {
            use_number(&me, &h);
            _exit(0);
        }
        ck_assert_int_eq(process_wait(pid), 0);
    }
    OK(shmview_ping(h.connection)); /* over the socket that it had */
    ck_assert_int_eq(find_socket(), h.socket);
    OK(shmview_detach(h.segment));
    OK(shmview_disconnect(h.connection));
    daemon_stop(&d);
}
END_TEST

/* A child that the thread inside shared has forked does not have this hold, and its own hold
 * counts. */
static void use_own_hold(struct shmview_segment *segment)
{
    OK(shmview_notify(segment)); /* attaches, and opens no record of holds */
    REFUSED(shmview_unlock(segment), NOT_OWNER, "");
    for (int i = 0; i < 2; i++)
        OK(shmview_lock_shared(segment));
    for (int i = 0; i < 2; i++)
        OK(shmview_unlock(segment));
    REFUSED(shmview_unlock(segment), NOT_OWNER, "");
}

START_TEST(children_have_holds_of_their_own)
{
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *segment = client_create(conn, "s", 100);
    for (int i = 0; i < 4; i++) {
        bool shares = i & 1, handlers = i & 2;
        OK(shmview_lock_shared(segment)); /* the thread has a record also if it shares nothing */
        if (!shares)
            OK(shmview_unlock(segment));
        pid_t pid = handlers ? fork() : _Fork();
        if (pid == 0) {
            use_own_hold(segment);
            _exit(0);
        }
        ck_assert_int_eq(process_wait(pid), 0);
        if (shares)
            OK(shmview_unlock(segment));
        OK(shmview_lock(segment));
        OK(shmview_unlock(segment));
    }
    OK(shmview_detach(segment));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(returns),
        SUITE_TEST(is_killed),
        SUITE_TEST(becomes_another_program),
        SUITE_TEST(has_no_presence),
        SUITE_TEST(children_have_files_of_their_own),
        SUITE_TEST(children_have_holds_of_their_own),
        SUITE_END,
    };
    return suite_main("survivors", tests);
}
