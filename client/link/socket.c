/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of a connection in a program that forks, and that may close descriptors which it
 * does not own.
 *
 * Before each use of a number the library compares device and inode with those of its socket. The
 * program may have closed the number and reused it, in this process or in a forked child. A child
 * closes the descriptors that it inherits at once; otherwise the daemon would not see the hang-up
 * of the parent. */
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "client/link/connection.h"
#include "common/base/util.h"

static LIST_HEAD(, shmview_connection) connections = LIST_HEAD_INITIALIZER(connections);

/* Closes the socket if the number still is the socket. Safe in a signal handler. */
static void close_socket(struct shmview_connection *c)
{
    bool is_ours = connection_has_socket(c);
    int fd = steal_fd(&c->fd);
    if (is_ours)
        close(fd);
}

/* Runs in the child, right after the fork, so it must be async-signal-safe. */
static void connections_after_fork(void)
{
    struct shmview_connection *c;
    LIST_FOREACH (c, &connections, link) {
        close_socket(c);
        bell_close(c);
        frame_descriptors_close(&c->arrived);
        c->presence = NULL; /* the child does not have the mapping (MADV_DONTFORK) */
    }
}

void connection_enlist(struct shmview_connection *connection)
{
    NOT_FORKED;
    process_at_fork(PROCESS_LINK, connections_after_fork);
    LIST_INSERT_HEAD(&connections, connection, link);
}

void connection_delist(struct shmview_connection *connection)
{
    NOT_FORKED;
    LIST_REMOVE(connection, link);
}

void connection_count(struct shmview_connection *connection, int n)
{
    connection->n_segments += (unsigned)n;
}

int connection_take_socket(struct shmview_connection *connection, int fd)
{
    struct stat st;
    if (fstat(fd, &st)) {
        int r = errno;
        close(fd);
        return fail_errno("fstat of a socket", r);
    }
    NOT_FORKED;
    connection->fd = fd;
    connection->socket_device = st.st_dev;
    connection->socket_inode = st.st_ino;
    return 0;
}

bool connection_has_socket(const struct shmview_connection *connection)
{
    const struct shmview_connection *c = connection;
    struct stat st;
    return c->fd >= 0 && fstat(c->fd, &st) == 0 && st.st_dev == c->socket_device &&
           st.st_ino == c->socket_inode;
}

void connection_close_socket(struct shmview_connection *connection)
{
    NOT_FORKED;
    close_socket(connection);
}

int64_t client_number(void)
{
    int64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = now_ns();
    return (number & INT64_MAX) | 1; /* more than 0 */
}

void connection_disown(struct shmview_connection *connection)
{
    close_socket(connection); /* still open if the fork ran no handlers */
    bell_close(connection);
    connection->greets = false;
    connection->arrived.n = 0;
    connection->arrived.lost = false;
    connection->presence = NULL; /* no munmap(): the child may have mapped something else there */
    connection->client = client_number();
}

/* --- The presence -------------------------------------------------------- */

/* Maps the presence. The daemon tests a lock on the file, which lasts as long as the mapping, so a
 * forked child must not have the mapping. One byte suffices, because the kernel maps whole pages.
 * If it cannot be mapped, the daemon takes a hang-up for the end of this process. */
void connection_map_presence(struct shmview_connection *connection, int fd)
{
    NOT_FORKED;
    void *p = mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return;
    if (madvise(p, 1, MADV_DONTFORK)) {
        munmap(p, 1);
        return;
    }
    if (connection->presence)
        munmap(connection->presence, 1);
    connection->presence = p;
}

void connection_unmap_presence(struct shmview_connection *connection)
{
    NOT_FORKED;
    if (connection->presence)
        munmap(connection->presence, 1);
    connection->presence = NULL;
}
