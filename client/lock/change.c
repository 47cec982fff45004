/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a change: a counter that notify bumps, and a descriptor for event loops.
 *
 * A thread that waits in a call parks on change_waits. A program that waits in an event loop asks
 * the daemon for one end of a socket pair. The daemon notes in the liveness object how many do; a
 * notifier that sees that there are some rings the bell of its connection, and the daemon writes to
 * their sockets. Notifying waits for nobody. While there is no daemon the sockets have hung up,
 * which wakes the event loops as well. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lock/lock.h"
#include "common/base/descriptor.h"
#include "common/base/util.h"

/* The low bit of change_waits; the rest counts, so that each notification changes it. */
#define CHANGE_WAITED 1u

uint32_t shmview_change(const struct shmview_segment *segment)
{
    struct shmview_control *c = segment->control;
    return c ? atomic_load_explicit(word(&c->change), memory_order_acquire) : 0;
}

/* --- Waiting ------------------------------------------------------------- */

/* Returns whether it has changed. */
static bool look_until_changed(const struct shmview_control *c, uint32_t seen, int64_t until)
{
    do
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(const_word(&c->change), memory_order_acquire) != seen)
                return true;
            relax();
        }
    while (now_ns() < until);
    return false;
}

static void look(struct shmview_segment *s, uint32_t seen, int64_t deadline)
{
    struct looking l = atomic_load_explicit(&s->looking, memory_order_relaxed);
    if (!spins_allowed() || shmview_change(s) != seen)
        return;
    uint32_t ns = looking_ns(&l);
    int64_t began = now_ns(), until = began + ns;
    if (ns && look_until_changed(s->control, seen, deadline < until ? deadline : until))
        looking_saw(&l, ns, now_ns() - began);
    else
        looking_in_vain(&l, ns);
    atomic_store_explicit(&s->looking, l, memory_order_relaxed);
}

int shmview_wait_change(struct shmview_segment *segment, uint32_t seen, int64_t deadline_ns,
                        uint32_t *ret_change)
{
    int r = enter(segment);
    if (r)
        return r;
    struct shmview_control *c = segment->control;
    int64_t deadline = deadline_ns > 0 ? deadline_ns : 0;
    if (deadline)
        look(segment, seen, deadline);
    for (;;) {
        uint32_t waits = atomic_load(word(&c->change_waits));
        uint32_t now = atomic_load(word(&c->change));
        if (now != seen) {
            *ret_change = now;
            return 0;
        }
        if (has_passed(deadline, now_ns()))
            return fail(SHMVIEW_ERR_TIMED_OUT, "no change of '%s' before the deadline",
                        segment->name);
        /* say so, look again, park: a notifier in between changes change_waits */
        if (!(waits & CHANGE_WAITED)) {
            swap(&c->change_waits, &waits, waits | CHANGE_WAITED);
            STEP(AT_CHANGE_WAITS);
            continue;
        }
        park(segment, &c->change_waits, waits, NULL, deadline);
    }
}

/* --- Event loops --------------------------------------------------------- */

static int ask_for_descriptors(struct shmview_segment *s, const char *method,
                               struct frame_descriptors *ret)
{
    struct reply reply;
    int r = connection_call(s->connection, method,
                            json_pack("{s:I}", "attachment", (json_int_t)s->attachment), &reply);
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

/* Whether the number is still the descriptor's: the program may have closed it, and have given the
 * number to a file of its own. */
static bool is_ours(const struct shmview_segment *s, int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == s->change_device &&
           st.st_ino == s->change_inode;
}

/* Keeps fd under the number that event loops know, if that is still ours and may be used. Another
 * thread may have been first; the daemon gave both the same descriptor. */
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
    int r = enter(segment);
    if (r)
        return r;
    details_lock();
    int fd = is_ours(segment, segment->change_fd) ? segment->change_fd : -1;
    details_unlock(NULL);
    if (fd < 0 || descriptor_hung_up(fd)) { /* its daemon is gone */
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

/* --- Telling ------------------------------------------------------------- */

static int notify(struct shmview_segment *s, int n)
{
    int r = enter(s);
    if (r)
        return r;
    struct shmview_control *c = s->control;
    atomic_fetch_add(word(&c->change), 1);
    STEP(AT_CHANGED);
    uint32_t waits = atomic_load(word(&c->change_waits));
    while (waits & CHANGE_WAITED)
        if (swap(&c->change_waits, &waits, waits + (n == INT_MAX ? 1 : 2))) {
            STEP(AT_CHANGE_CLEARED);
            wake(&c->change_waits, n);
            break;
        }
    /* after the counter was bumped: watchers from before it are woken, those that begin
     * afterwards see the counter */
    if (__builtin_expect(atomic_load(const_word(&s->live->watches)) != 0, 0)) {
        NOT_CANCELLED;
        connection_ring(s->connection, s->attachment);
    }
    return 0;
}

int shmview_notify(struct shmview_segment *segment)
{
    return notify(segment, INT_MAX);
}

int shmview_notify_one(struct shmview_segment *segment)
{
    return notify(segment, 1);
}
