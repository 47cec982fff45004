/* SPDX-License-Identifier: Apache-2.0 */
/* The bell: a socket on which this process reports to the daemon that a segment has changed, or
 * that it waits for a holder of a lock.
 *
 * A ring never waits and has no reply. It needs no mutex either: across restarts of the daemon,
 * bell_take() puts the new socket under the old number. If it cannot, it leaves the old socket
 * open, because another thread may be about to ring it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/link/connection.h"
#include "common/base/descriptor.h"
#include "common/base/util.h"

/* Whether the number is still the bell: the program may have closed it and reused the number. */
static bool is_ours(const struct shmview_connection *c, int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == atomic_load(&c->bell_device) &&
           st.st_ino == atomic_load(&c->bell_inode);
}

void bell_take(struct shmview_connection *connection, int *fd)
{
    struct shmview_connection *c = connection;
    struct stat st;
    if (fstat(*fd, &st))
        return;
    int bell = atomic_load(&c->bell), taken = steal_fd(fd);
    /* if the new socket cannot get the old number, the old one stays open, because another thread
     * may be about to ring it */
    if (!is_ours(c, bell) || descriptor_renumber(taken, bell))
        bell = taken;
    atomic_store(&c->bell_device, st.st_dev);
    atomic_store(&c->bell_inode, st.st_ino);
    atomic_store(&c->bell, bell);
}

void bell_close(struct shmview_connection *connection)
{
    int fd = atomic_exchange(&connection->bell, -1);
    if (is_ours(connection, fd))
        close(fd);
}

/* Sends n bytes without waiting. Returns whether the daemon will receive them, or does not need
 * them: a daemon that finds a full socket wakes the watchers of all segments that this client has
 * attached. */
static bool bell_send(const struct shmview_connection *connection, const void *bytes, size_t n)
{
    int fd = atomic_load(&connection->bell);
    if (!is_ours(connection, fd))
        return false;
    ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == (ssize_t)n || (sent < 0 && errno == EAGAIN);
}

bool bell_ring(const struct shmview_connection *connection, int64_t attachment)
{
    return bell_send(connection, &attachment, sizeof attachment);
}

void connection_report_wait(const struct shmview_connection *connection, int64_t attachment,
                            uint32_t holder)
{
    NOT_CANCELLED;
    int64_t message[2] = {attachment, holder};
    int saved = errno;
    bell_send(connection, message, sizeof message);
    errno = saved;
}

void connection_ring(struct shmview_connection *connection, int64_t attachment)
{
    struct shmview_connection *c = connection;
    if (bell_ring(c, attachment))
        return;
    /* The daemon has exited or hung up. When it reads the claim of this client, it wakes the
     * watchers of all segments that the client has attached. Watchers notice by themselves that
     * there is no daemon. */
    atomic_store(&c->rings, true);
    atomic_store(&c->owes, true);
    if (connection_trylock(c))
        connection_unlock(c); /* it reports the change */
}
