/* SPDX-License-Identifier: Apache-2.0 */
/* Checks peer.c: it finds the client of a socket, also if the client has died and its pid was used
 * again. */
#include "unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/clients/peer.h"
#include "unit/faults.h"

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1 && p.revents & POLLIN;
}

static int listen_at(struct sockaddr_un *ret)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret->sun_path, sizeof ret->sun_path, "%s/s", unit_directory());
    ck_assert_int_eq(bind(fd, (struct sockaddr *)ret, sizeof *ret), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

/* A child that connects and stays until the test ends it. */
struct client {
    pid_t pid;
    int go;
};

static struct client client_start(const struct sockaddr_un *address, int listener, int *ret_socket)
{
    int go[2];
    ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        close(go[1]);
        if (connect(fd, (const struct sockaddr *)address, sizeof *address))
            _exit(1);
        _exit(read(go[0], &byte, 1) == 0 ? 0 : 2);
    }
    close(go[0]);
    *ret_socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(*ret_socket, 0);
    return (struct client){pid, go[1]};
}

static void client_end(struct client *c)
{
    int status;
    close(c->go);
    ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
    ck_assert_int_eq(status, 0);
}

/* Kernels before 6.5 do not have SO_PEERPIDFD, which is the second query. */
static void begin_old_kernel(bool old)
{
    if (old)
        faults_begin_call("getsockopt", 2, ENOPROTOOPT, false);
}

START_TEST(a_living_peer)
{
    struct sockaddr_un address;
    int listener = listen_at(&address);
    for (int old = 0; old < 2; old++) {
        int fd;
        struct peer peer;
        struct client c = client_start(&address, listener, &fd);
        begin_old_kernel(old);
        int r = peer_of(fd, &peer);
        ck_assert_int_eq(faults_end() || !old, 1);
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(peer.pid, c.pid);
        ck_assert_uint_eq(peer.uid, geteuid());
        ck_assert_uint_eq(peer.gid, getegid());
        ck_assert_int_eq(fcntl(peer.pidfd, F_GETFD), FD_CLOEXEC);
        ck_assert(!readable(peer.pidfd, 0));
        client_end(&c);
        ck_assert(readable(peer.pidfd, 10000)); /* that it died */
        close(peer.pidfd);
        close(fd);
    }
    close(listener);
}
END_TEST

START_TEST(a_dead_peer)
{
    struct sockaddr_un address;
    int listener = listen_at(&address);
    for (int old = 0; old < 2; old++) {
        int fd;
        struct peer peer = {.pidfd = -7};
        struct client c = client_start(&address, listener, &fd);
        client_end(&c);
        begin_old_kernel(old);
        int r = peer_of(fd, &peer);
        faults_end();
        /* newer kernels still name it, and report at once that it is dead */
        ck_assert(r == -ESRCH || (r == 0 && !old));
        if (r == 0) {
            ck_assert_int_eq(peer.pid, c.pid);
            ck_assert(readable(peer.pidfd, 0));
            close(peer.pidfd);
        } else {
            ck_assert_int_eq(peer.pidfd, -7);
        }
        close(fd);
    }
    close(listener);
}
END_TEST

/* The pid was reused between its owner's death and the query. The socket is closed by then, so the
 * pidfd of another process is not believed. */
START_TEST(a_pid_that_was_used_again)
{
    int ends[2];
    struct peer peer = {.pidfd = -7};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[1]); /* its pid is ours, so it still names a process */
    begin_old_kernel(true);
    ck_assert_int_eq(peer_of(ends[0], &peer), -ESRCH);
    ck_assert(faults_end());
    ck_assert_int_eq(peer.pidfd, -7);
    close(ends[0]);
}
END_TEST

START_TEST(what_is_no_peer)
{
    struct peer peer = {.pidfd = -7};
    ck_assert_int_eq(peer_of(-1, &peer), -EBADF);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(peer_of(null, &peer), -ENOTSOCK);
    close(null);
    ck_assert_int_eq(peer.pidfd, -7);
}
END_TEST

START_TEST(every_call_fails)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct peer peer = {.pidfd = -7};
    faults_begin_call("getsockopt", 1, EIO, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EIO);
    ck_assert(faults_end());
    faults_begin_call("getsockopt", 2, EMFILE, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EMFILE);
    ck_assert(faults_end());
    faults_begin_call("getsockopt", 2, EINVAL, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -ESRCH); /* the result of 6.5 for a dead peer */
    ck_assert(faults_end());
    ck_assert_int_eq(peer.pidfd, -7);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void pidfd_open_fails(void)
{
    faults_begin_call("syscall", 1, EMFILE, false);
}

START_TEST(no_pidfd_to_be_had)
{
    int ends[2];
    struct peer peer = {.pidfd = -7};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    begin_old_kernel(true);
    faults_hook("syscall", pidfd_open_fails);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EMFILE);
    ck_assert(faults_end());
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* Stands for the one of the kernel, which is wrong as often as this has. */
static int n_wrong;

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec t = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    if (n_wrong == 0)
        return (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &t, NULL, (size_t)0);
    n_wrong--;
    fds[0].revents = POLLIN;
    return 1;
}

START_TEST(a_living_process_has_not_ended)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    ck_assert(!peer_has_ended(pidfd));
    n_wrong = 1; /* while a thread calls exec */
    ck_assert(!peer_has_ended(pidfd));
    ck_assert_int_eq(n_wrong, 0);
    close(pidfd);
    ck_assert(!peer_has_ended(-1));
}
END_TEST

UNIT_MAIN("peer", UNIT_TEST(a_living_process_has_not_ended), UNIT_TEST(a_living_peer),
          UNIT_TEST(a_dead_peer), UNIT_TEST(a_pid_that_was_used_again), UNIT_TEST(what_is_no_peer),
          UNIT_TEST(every_call_fails), UNIT_TEST(no_pidfd_to_be_had))
