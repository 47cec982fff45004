/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that clients send although no request takes any: however long closing one takes,
 * other clients are served in between. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define LINGER_S   10
#define AT_MOST_NS 5000000000 /* far less than a socket lingers, far more than a ping takes */

static struct daemon d;

/* From here on this process and its children have no SO_PASSRIGHTS, as before Linux 6.16. */
static void forget_passrights(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* A socket whose last close waits: what it sends does not fit into the other end, which nobody
 * reads. Returns -1 where there is no loopback. */
static int lingering(int *ret_other)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    static const char bytes[65536];
    const struct linger linger = {1, LINGER_S};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = bind(listener, (struct sockaddr *)&address, sizeof address) ||
                 listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &n) ||
                 connect(fd, (struct sockaddr *)&address, sizeof address);
    *ret_other = failed ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    if (failed) {
        fprintf(stderr, "no loopback: %s\n", strerror(errno));
        close(fd);
        return -1;
    }
    ck_assert_int_ge(*ret_other, 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    return fd;
}

/* Returns whether the kernel took it. flags may be MSG_OOB. */
static bool send_descriptor(int socket, const char *text, size_t n, int fd, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {(char *)text, n};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT | flags) == (ssize_t)n;
}

/* More replies than the socket takes, none of which is read: the daemon reads no further. */
static void clog_up(struct raw *raw)
{
    for (int i = 0; i < 200; i++)
        raw_send_call(raw, "org.varlink.service.GetInterfaceDescription",
                      "{'interface': 'io.shmview'}");
}

/* Sends the text n_before times, then with a descriptor that lingers, and closes its own.
 * possible: whether the kernel takes it. */
static void send_lingering(int socket, const char *text, size_t n, unsigned n_before, int fd,
                           int flags, bool possible)
{
    process_stop(d.pid); /* ours is not the last close */
    for (unsigned i = 0; i < n_before; i++)
        ck_assert_int_eq(send(socket, text, n, MSG_DONTWAIT), (ssize_t)n);
    bool sent = send_descriptor(socket, text, n, fd, flags);
    ck_assert_msg(sent == possible, "%s", strerror(errno));
    if (!sent)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof(struct linger));
    close(fd);
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
}

static void assert_no_delay(void)
{
    int64_t start = await_now_ns();
    struct shmview_connection *conn = client_connect(&d);
    for (int i = 0; i < 100; i++)
        OK(shmview_ping(conn));
    ck_assert_int_lt(await_now_ns() - start, AT_MOST_NS);
    OK(shmview_disconnect(conn));
}

/* Sends descriptors that linger in every way: to be received, and to be left unread. */
static void send_all(bool possible)
{
    static const char ping[] = "{\"method\": \"io.shmview.Ping\"}";
    int other[6];
    for (unsigned i = 0; i < 6; i++) {
        struct raw raw;
        int fd = lingering(&other[i]);
        if (fd < 0)
            return;
        raw_connect(&raw, d.socket);
        if (i >= 3)
            clog_up(&raw);
        send_lingering(raw.socket, ping, i % 3 ? sizeof ping : 1, 0, fd, 0, possible);
        raw_close(&raw);
    }
    assert_no_delay();
    for (unsigned i = 0; i < 6; i++)
        close(other[i]);
}

/* Claims, and returns the bell, or -1 if there is none. raw has it. */
static int claim(struct raw *raw)
{
    json_t *p = raw_call(raw, "Claim", "{'client':1,'held':[],'bell':true}");
    int bell = json_object_get(p, "bell") ? raw->fds[raw_int(p, "bell")] : -1;
    json_decref(p);
    return bell;
}

/* Sends descriptors that linger to bells: as the first ring, or beyond those of a turn; the bell
 * then ends with its connection, or another one is wanted in its place. */
static void send_to_bells(bool possible)
{
    int other[4];
    for (unsigned i = 0; i < 4; i++) {
        static const char ring[8] = {1};
        struct raw raw;
        int fd = lingering(&other[i]);
        if (fd < 0)
            return;
        raw_connect(&raw, d.socket);
        int bell = claim(&raw);
        ck_assert_int_ge(bell, 0);
        send_lingering(bell, ring, sizeof ring, i & 1 ? 100 : 0, fd, 0, possible);
        assert_no_delay();
        if (i & 2) {
            raw_close_fds(&raw);
            ck_assert_int_eq(claim(&raw) < 0, possible);
        }
        raw_close_fds(&raw);
        raw_close(&raw);
        assert_no_delay();
    }
    for (unsigned i = 0; i < 4; i++)
        close(other[i]);
}

/* Whether the kernel has MSG_OOB for sockets of this kind. */
static bool has_out_of_band(void)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    bool has = send(ends[0], "", 1, MSG_OOB) == 1;
    close(ends[0]);
    close(ends[1]);
    if (!has)
        puts("skipped: no MSG_OOB");
    return has;
}

/* Sends descriptors that linger with out-of-band bytes, alone or after others: to connections, and
 * to handovers, which the daemon receives from or closes. possible: for connections. */
static void send_out_of_band(bool possible)
{
    int other[5], fd;
    for (unsigned i = 0; i < 5 && has_out_of_band(); i++) {
        struct raw raw;
        if ((fd = lingering(&other[i])) < 0)
            return;
        raw_connect(&raw, d.socket);
        if (i < 2) {
            send_lingering(raw.socket, " ", 1, i, fd, MSG_OOB, possible);
        } else {
            json_t *p = raw_call(&raw, "HandOver", NULL);
            send_lingering(raw.fds[raw_int(p, "socket")], " ", 1, i == 3, fd, MSG_OOB, true);
            json_decref(p);
        }
        if (i == 4)
            raw_refused(&raw, "Create", "{'name':'s','size':1,'memory':'client'}",
                        "org.varlink.service.InvalidParameter", "memory");
        assert_no_delay();
        raw_close_fds(&raw);
        raw_close(&raw);
        assert_no_delay();
        close(other[i]);
    }
}

START_TEST(the_kernel_refuses_descriptors)
{
    int may, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof may;
    bool possible = getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &may, &n) != 0;
    close(fd);
    daemon_start(&d);
    send_all(possible);
    send_to_bells(possible);
    send_out_of_band(possible);
    daemon_stop(&d);
}
END_TEST

START_TEST(where_it_cannot_they_are_closed_off_the_loop)
{
    forget_passrights();
    daemon_start(&d);
    unsigned before = process_descriptors(d.pid);
    send_all(true);
    send_to_bells(true);
    send_out_of_band(true);
    AWAIT(process_descriptors(d.pid) == before);
    daemon_stop(&d);
}
END_TEST

/* The socket on which a client awaits changes takes nothing from it, and works as before. */
START_TEST(a_watch_takes_nothing)
{
    struct raw raw;
    char parameters[64], byte[8];
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    json_t *p = raw_call(&raw, "Create", "{'name':'s','size':1,'access':'write'}");
    json_int_t id = raw_int(p, "attachment.id");
    raw_close_fds(&raw);
    json_decref(p);
    snprintf(parameters, sizeof parameters, "{'attachment':%lld}", (long long)id);
    raw_do(&raw, "Watch", parameters);
    ck_assert_uint_eq(raw.n_fds, 1);
    int watch = raw.fds[0];
    ck_assert(!send_descriptor(watch, "", 1, watch, 0));
    ck_assert_int_eq(errno, EPIPE);
    while (recv(watch, byte, sizeof byte, MSG_DONTWAIT) > 0)
        continue;
    struct pollfd end = {.fd = watch, .events = POLLIN | POLLRDHUP};
    ck_assert_int_eq(poll(&end, 1, 50), 0);
    raw_do(&raw, "Attach", "{'name':'s','access':'write'}");
    snprintf(parameters, sizeof parameters, "{'attachment':%lld}", (long long)id + 1);
    raw_do(&raw, "Detach", parameters); /* wakes the watchers */
    ck_assert_int_eq(recv(watch, byte, sizeof byte, 0), sizeof byte);
    raw_close_fds(&raw);
    raw_close(&raw);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(the_kernel_refuses_descriptors),
        SUITE_TEST(a_watch_takes_nothing),
        SUITE_TEST(where_it_cannot_they_are_closed_off_the_loop),
        SUITE_END,
    };
    return suite_main("stray", tests);
}
