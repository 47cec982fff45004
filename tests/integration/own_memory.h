/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a client makes for a segment, and the request that passes it to the daemon. Each test
 * includes this once. */
#ifndef INTEGRATION_OWN_MEMORY_H
#define INTEGRATION_OWN_MEMORY_H

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define BYTES 1000000
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static struct daemon d;
static struct shmview_connection *conn;

static const struct shmview_create_options own = {
    .struct_bytes = sizeof own,
    .lifetime = SHMVIEW_MANUAL,
    .flags = SHMVIEW_OWN_MEMORY,
};

static inline struct shmview_segment *make_own(const char *name, uint64_t size)
{
    struct shmview_segment *s;
    OK(shmview_create(conn, name, size, &own, &s));
    return s;
}

static inline void drop(struct shmview_segment *segment, const char *name)
{
    OK(shmview_detach(segment));
    OK(shmview_remove(conn, name));
}

static inline void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static inline void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* Memory as it should be, but for what the arguments change. */
static inline int memory(unsigned flags, off_t size, off_t committed, int seals)
{
    int fd = memfd_create("own", flags | MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, size), 0);
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    if (committed)
        ck_assert_int_eq(posix_fallocate(fd, 0, committed), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static inline int good(void)
{
    return memory(0, BYTES, BYTES, SEALS);
}

/* Sends n bytes and the descriptors. Returns whether the kernel took them. */
static inline bool pass(int socket, size_t n_bytes, const int *fds, size_t n)
{
    static char bytes[4096];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 8)];
    } control = {0};
    struct iovec iov = {bytes, n_bytes};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    }
    return sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n_bytes;
}

/* Opens a handover. Returns the socket, which raw has. */
static inline int hand_over(struct raw *raw)
{
    json_t *p = raw_call(raw, "HandOver", NULL);
    ck_assert_int_eq(raw_int(p, "descriptors"), 1);
    ck_assert_uint_eq(raw->n_fds, 1);
    int fd = raw->fds[raw_int(p, "socket")];
    json_decref(p);
    return fd;
}

#define CREATE "{'name':'s','size':1000000,'access':'write','memory':'client'}"
#define WRONG  "org.varlink.service.InvalidParameter"

#endif
