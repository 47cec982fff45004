/* SPDX-License-Identifier: Apache-2.0 */
/* Changes: a counter that a notifier advances, and a descriptor for event loops.
 *
 * A thread that waits in a call parks on the word change_waits. A program that waits in an event
 * loop asks the daemon for one end of a socket pair. The daemon writes the number of these watchers
 * to the liveness object. A notifier that sees watchers there rings the bell of its connection, and
 * the daemon writes to their sockets. A notification never blocks. While no daemon runs, the
 * sockets have hung up, which wakes the event loops as well. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/link/call.h"
#include "client/segment/segment.h"
#include "common/base/descriptor.h"

/* --- Event loops --------------------------------------------------------- */

/* Calls a method that has an attachment as its only parameter. On success the caller owns the
 * descriptors in *ret. Returns 0 or an error. */
static int ask_for_descriptors(struct shmview_segment *s, const char *method,
                               struct frame_descriptors *ret)
{
    struct reply reply;
    int r = connection_call(s->connection, method, wire_attachment_text(method, s->lock.attachment),
                            &reply);
    if (r)
        return r;
    if (reply.fds.lost) {
        reply_deinit(&reply);
        return fail_errno("the descriptors for changes", EMFILE);
    }
    *ret = reply.fds;
    reply.fds.n = 0;
    reply_deinit(&reply);
    return 0;
}

/* Whether the number is still that of our descriptor. The program may have closed it by mistake,
 * and opened a file that got its number. Device and inode distinguish the two. */
static bool is_ours(const struct shmview_segment *s, int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == s->change_device &&
           st.st_ino == s->change_inode;
}

/* Keeps fd under the number that event loops know, if that is still ours and can be reused. Another
 * thread may have been first; then the daemon gave both threads the same socket. The caller must
 * hold the details. */
static void keep(struct shmview_segment *s, int fd)
{
    struct stat st = {0};
    if (!is_ours(s, s->change_fd) || descriptor_renumber(fd, s->change_fd))
        s->change_fd = fd;
    fstat(s->change_fd, &st);
    s->change_device = st.st_dev;
    s->change_inode = st.st_ino;
}

int shmview_change_fd(struct shmview_segment *segment, int *ret_fd)
{
    struct frame_descriptors got;
    NOT_CANCELLED;
    int r = lock_enter(&segment->lock);
    if (r == 0 && has_ended(&segment->lock))
        r = fail_lost(&segment->lock);
    if (r)
        return r;
    details_lock();
    int fd = is_ours(segment, segment->change_fd) ? segment->change_fd : -1;
    details_unlock(NULL);
    if (fd < 0 || descriptor_hung_up(fd)) { /* the daemon that gave it is gone */
        r = ask_for_descriptors(segment, "io.shmview.Watch", &got);
        if (r)
            return r;
        if (got.n != 1) {
            r = fail(SHMVIEW_ERR_PROTOCOL, "%zu descriptors came with a watch", got.n);
            frame_descriptors_close(&got);
            return r;
        }
        DETAILS;
        keep(segment, got.fd[0]);
        fd = segment->change_fd;
    }
    *ret_fd = fd;
    return 0;
}

void change_close(struct shmview_segment *segment)
{
    NOT_FORKED;
    if (is_ours(segment, segment->change_fd))
        close(segment->change_fd);
    segment->change_fd = -1;
}

/* --- Notifying ----------------------------------------------------------- */

/* Advances the counter and wakes up to n threads that wait for it. Rings the bell only if an event
 * loop watches. Returns 0 or an error. */
static int notify(struct shmview_segment *s, int n)
{
    int r = lock_enter(&s->lock);
    if (r == 0 && __builtin_expect(change_notify(&s->lock, n), 0)) {
        NOT_CANCELLED;
        connection_ring(s->connection, s->lock.attachment);
    }
    return r;
}

int shmview_notify(struct shmview_segment *segment)
{
    return notify(segment, INT_MAX);
}

int shmview_notify_one(struct shmview_segment *segment)
{
    return notify(segment, 1);
}
