/* SPDX-License-Identifier: Apache-2.0 */
/* The bell: a socket on which this process tells the daemon, without waiting, that a segment has
 * changed. A connection keeps the number of its bell over the daemon's restarts, so that a thread
 * that rings needs no mutex. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/link/connection.h"
#include "common/base/descriptor.h"
#include "common/base/util.h"

/* The program may have closed the number and given it to a file of its own. */
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
    /* an older one that cannot have the number stays open: a thread may be about to ring it */
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

bool bell_ring(const struct shmview_connection *connection, int64_t attachment)
{
    int fd = atomic_load(&connection->bell);
    if (!is_ours(connection, fd))
        return false;
    ssize_t n = send(fd, &attachment, sizeof attachment, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* full: the daemon, when it has read so many, looks after everything that we have attached */
    return n == (ssize_t)sizeof attachment || (n < 0 && errno == EAGAIN);
}

void connection_ring(struct shmview_connection *connection, int64_t attachment)
{
    struct shmview_connection *c = connection;
    if (bell_ring(c, attachment))
        return;
    /* the daemon has gone, or has hung up: when it hears who we are it wakes those who watch what
     * we have; while there is no daemon they know that themselves */
    atomic_store(&c->rings, true);
    atomic_store(&c->owes, true);
    if (connection_trylock(c))
        connection_unlock(c); /* which settles it */
}
