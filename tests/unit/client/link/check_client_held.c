/* SPDX-License-Identifier: Apache-2.0 */
/* Checks held.c and socket.c of the library: requests that are sent without waiting for a reply,
 * and the descriptors that come with a claim. The test serves the socket itself, so that it can
 * delay or cut each reply. */
#include "client/link/connection.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "common/base/util.h"
#include "unit/faults.h"
#include "unit/stub.h"

#define CLAIMED     "{\"parameters\":{\"held\":[]}}"
#define CLAIMED_ONE "{\"parameters\":{\"held\":[],\"descriptors\":1,\"presence\":0}}"
#define CLAIMED_ALL "{'parameters':{'held':[],'descriptors':2,'presence':0,'bell':1}}"

static struct stub stub;
static struct shmview_connection *conn;
static int listener, presence, bell[2];

static void assert_fails(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

/* --- A daemon that does what the test does ------------------------------- */

static const char *listen_here(void)
{
    static struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/here", unit_directory());
    unlink(address.sun_path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 64), 0);
    return address.sun_path;
}

/* Returns the next connection after reading its claim. */
static int accept_claim(void)
{
    char text[8192];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ssize_t n = recv(fd, text, sizeof text, 0);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(text[n - 1], '\0');
    unit_assert_holds(text, "io.shmview.Claim");
    return fd;
}

static void *greet(void *ret_fd)
{
    int *fd = ret_fd, file = *fd;
    faults_spare_thread();
    *fd = accept_claim();
    ssize_t n = file < 0 ? frame_send(*fd, CLAIMED, sizeof CLAIMED, NULL, 0)
                         : frame_send(*fd, CLAIMED_ONE, sizeof CLAIMED_ONE, &file, 1);
    ck_assert_int_gt(n, 0);
    return NULL;
}

/* Connects, and receives file as the presence unless that is -1. Returns the daemon's end, from
 * which nothing is read. */
static int connect_here(int file)
{
    const char *path = listen_here();
    pthread_t thread;
    int fd = file;
    ck_assert_int_eq(pthread_create(&thread, NULL, greet, &fd), 0);
    ck_assert_int_eq(shmview_connect(path, 0, &conn), 0);
    pthread_join(thread, NULL);
    return fd;
}

static int end_wait(void *arg)
{
    return ++*(int *)arg;
}

/* --- Descriptors that come with a claim ---------------------------------- */

static struct stub_step begin_descriptors(void)
{
    presence = memfd_create("shmview-unit", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(presence, 1), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bell), 0);
    return (struct stub_step){
        .method = "Claim", .reply = CLAIMED_ALL, .fds = {presence, bell[1]}, .n_fds = 2};
}

static void end_descriptors(void)
{
    close(presence);
    close(bell[0]);
    close(bell[1]);
}

/* Without its presence a client would lose its locks with its connection, so the library must
 * notice. */
START_TEST(no_room_for_descriptors)
{
    const struct stub_step step = begin_descriptors();
    const struct stub_step steps[] = {step, step};
    struct rlimit old;
    stub_start(&stub, steps, 2);
    /* as many as the two ends of a connection need */
    int first = dup(presence), second = dup(presence);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit few = {(rlim_t)second + 1, old.rlim_max};
    close(first);
    close(second);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int r = shmview_connect(stub.path, 0, &conn);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_fails(r, SHMVIEW_ERR_SYSTEM, "descriptors of the connection");
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ck_assert_ptr_nonnull(conn->presence);
    ck_assert_int_ge(conn->bell, 0);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    end_descriptors();
}
END_TEST

/* A restarted daemon sends another bell, and the older one must no longer be used. */
START_TEST(number_of_a_bell_above_the_limit)
{
    int one[2], two[2];
    struct rlimit old;
    struct shmview_connection c = {.bell = -1};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, two), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, one), 0);
    int first = one[1], second = two[1];
    bell_take(&c, &one[1]);
    ck_assert_int_eq(c.bell, first);
    close(one[0]);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit few = {(rlim_t)first, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    bell_take(&c, &two[1]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_int_eq(c.bell, second);
    ck_assert(bell_ring(&c, 9));
    bell_close(&c);
    close(two[0]);
    close(first);
}
END_TEST

/* The received bell is used without a duplicate, which would need another descriptor. */
START_TEST(room_for_what_comes_and_no_more)
{
    const struct stub_step step = begin_descriptors();
    struct rlimit old;
    int fd[4];
    stub_start(&stub, &step, 1);
    for (int i = 0; i < 4; i++) /* both ends of a connection, a presence, a bell */
        fd[i] = dup(presence);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit few = {(rlim_t)fd[3] + 1, old.rlim_max};
    for (int i = 0; i < 4; i++)
        close(fd[i]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int r = shmview_connect(stub.path, 0, &conn);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_int_eq(r, 0);
    ck_assert_ptr_nonnull(conn->presence);
    ck_assert(bell_ring(conn, 9));
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    end_descriptors();
}
END_TEST

/* A claim over the same socket brings a bell and reports the change. No new socket is made. */
START_TEST(a_bell_that_was_lost)
{
    const struct stub_step step = begin_descriptors();
    const struct stub_step steps[] = {step, step, STUB_PONG};
    stub_start(&stub, steps, 3);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ino_t inode = conn->socket_inode;
    bell_close(conn);
    faults_begin_call("socket", 1, EMFILE, true);
    connection_ring(conn, 9);
    ck_assert_int_eq(shmview_ping(conn), 0); /* reads the reply, unless the ring has */
    ck_assert(!faults_end());
    ck_assert(conn->socket_inode == inode);
    ck_assert(!conn->rings);
    ck_assert(bell_ring(conn, 9));
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    end_descriptors();
}
END_TEST

/* A hang-up would end the attachments. */
START_TEST(no_bell_and_no_presence)
{
    const struct stub_step steps[] = {STUB_GREETING, STUB_GREETING, STUB_PONG};
    stub_start(&stub, steps, 3);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ino_t inode = conn->socket_inode;
    connection_ring(conn, 9);
    ck_assert_int_ge(conn->fd, 0);
    ck_assert_int_eq(shmview_ping(conn), 0);
    ck_assert(conn->socket_inode == inode);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}
END_TEST

/* --- Changes ------------------------------------------------------------- */

START_TEST(a_change_that_cannot_be_told_yet)
{
    const struct stub_step step = begin_descriptors();
    const struct stub_step steps[] = {step, step, STUB_PONG, STUB_PONG};
    stub_start(&stub, steps, 4);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    connection_hang_up(conn);
    bell_close(conn);
    faults_begin_call("socket", 1, EMFILE, true);
    connection_ring(conn, 9);
    ck_assert(faults_end());
    ck_assert_int_eq(conn->fd, -1);
    ck_assert(conn->rings);
    ck_assert(!conn->owes); /* it is not tried again and again */
    ck_assert_int_eq(shmview_ping(conn), 0);
    ck_assert(!conn->rings);
    /* without a daemon there are no watchers */
    connection_hang_up(conn);
    bell_close(conn);
    faults_begin_call("connect", 1, ECONNREFUSED, true);
    connection_ring(conn, 9);
    ck_assert(faults_end());
    ck_assert(!conn->rings);
    ck_assert_int_eq(shmview_ping(conn), 0);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    end_descriptors();
}
END_TEST

/* --- A daemon that does not answer --------------------------------------- */

/* A call that frees a handle does not call the daemon, because it could not report that the caller
 * ended the wait. */
static void fill_the_socket(int file)
{
    int fd = connect_here(file), asked = 0;
    int64_t began = now_ns();
    ino_t inode = conn->socket_inode;
    for (int64_t id = 1; id <= 1000; id++) {
        ck_assert_int_eq(connection_reserve(conn, 1), 0);
        connection_hold(conn, id);
    }
    shmview_on_wait(end_wait, &asked);
    for (int64_t id = 1; id <= 1000; id++)
        connection_detach(conn, id);
    ck_assert_int_lt(now_ns() - began, 10000000000);
    ck_assert_int_eq(asked, 0);
    if (file >= 0)
        ck_assert_uint_eq(conn->n_held, 0); /* a claim reports the rest */
    else
        ck_assert(conn->socket_inode == inode); /* a hang-up would end its attachments */
    assert_fails(shmview_ping(conn), SHMVIEW_ERR_INTERRUPTED, "");
    ck_assert_int_eq(asked, 1);
    shmview_on_wait(NULL, NULL);
    ck_assert_uint_eq(conn->n_held, 0);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    close(fd);
    close(listener);
}

START_TEST(a_full_socket)
{
    int file = memfd_create("shmview-unit", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(file, 1), 0);
    fill_the_socket(file);
    fill_the_socket(-1);
    close(file);
}
END_TEST

/* The rest of a partial reply arrives later. */
START_TEST(a_claim_that_is_answered_in_part)
{
    const char reply[] = CLAIMED_ONE;
    const size_t half = 20;
    int fd = connect_here(-1), asked = 0;
    int file = memfd_create("shmview-unit", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(file, 1), 0);
    connection_hang_up(conn);
    connection_reopen(conn);
    ck_assert(conn->greets);
    int again = accept_claim();
    ck_assert_int_eq(frame_send(again, reply, half, &file, 1), (ssize_t)half);
    shmview_on_wait(end_wait, &asked);
    connection_reopen(conn);
    ck_assert_int_eq(asked, 0);
    ck_assert(conn->greets);
    ck_assert_ptr_null(conn->presence);
    ck_assert_int_eq(frame_send(again, reply + half, sizeof reply - half, NULL, 0),
                     (ssize_t)(sizeof reply - half));
    connection_reopen(conn);
    ck_assert_int_eq(asked, 0);
    ck_assert(!conn->greets);
    ck_assert_int_ge(conn->fd, 0);
    ck_assert_ptr_nonnull(conn->presence);
    /* and if the rest never arrives, the descriptors are closed */
    unsigned before = unit_fds();
    connection_hang_up(conn);
    connection_reopen(conn);
    int last = accept_claim();
    ck_assert_int_eq(frame_send(last, reply, half, &file, 1), (ssize_t)half);
    connection_reopen(conn);
    close(last);
    connection_reopen(conn);
    ck_assert_int_eq(conn->fd, -1);
    ck_assert(!conn->greets);
    ck_assert_uint_eq(unit_fds(), before - 1);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    close(again);
    close(file);
    close(fd);
    close(listener);
}
END_TEST

/* The program has closed the socket, and its number now belongs to the program. */
START_TEST(a_claims_number_is_given_away)
{
    char byte;
    int fd = connect_here(-1), pair[2], asked = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    for (int call = 0; call < 2; call++) {
        connection_hang_up(conn);
        connection_reopen(conn);
        ck_assert(conn->greets);
        int number = dup2(pair[0], conn->fd);
        ck_assert_int_ge(number, 0);
        ck_assert_int_eq(send(pair[1], "x", 1, MSG_NOSIGNAL), 1);
        if (call) {
            shmview_on_wait(end_wait, &asked);
            assert_fails(shmview_ping(conn), SHMVIEW_ERR_INTERRUPTED, "");
            shmview_on_wait(NULL, NULL);
        } else {
            connection_reopen(conn);
        }
        ck_assert_int_eq(recv(number, &byte, 1, MSG_DONTWAIT), 1);
        ck_assert_int_eq(byte, 'x');
        close(number);
    }
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    close(pair[0]);
    close(pair[1]);
    close(fd);
    close(listener);
}
END_TEST

UNIT_MAIN("client_held", UNIT_TEST(no_room_for_descriptors),
          UNIT_TEST(number_of_a_bell_above_the_limit), UNIT_TEST(room_for_what_comes_and_no_more),
          UNIT_TEST(a_bell_that_was_lost), UNIT_TEST(no_bell_and_no_presence),
          UNIT_TEST(a_change_that_cannot_be_told_yet), UNIT_TEST(a_full_socket),
          UNIT_TEST(a_claim_that_is_answered_in_part), UNIT_TEST(a_claims_number_is_given_away))
