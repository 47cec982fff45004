/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/segment_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/segments/use.h"

/* Checks that the object is the one that was created; not its size and bytes, which clients can
 * change. Returns 0, -ESTALE, or another -errno. */
static int check_identity(const struct segment *segment, enum segment_part part)
{
    struct object object;
    struct stat st;
    segment_object(segment, part, &object);
    return object_stat(&object, &st);
}

/* Checks the header of the liveness object too. Only the daemon writes that object, so any
 * difference means that it is not the one of this segment, or that another version of the daemon
 * wrote it. Returns 0, -ESTALE, or another -errno. */
static int check_liveness(struct segment *segment)
{
    struct object object;
    struct shmview_liveness l;
    const size_t n = offsetof(struct shmview_liveness, generation);
    segment_object(segment, LIVENESS, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t got = pread(fd, &l, n, 0);
    if (got < 0)
        return -errno;
    if ((size_t)got != n || l.header.magic != SHMVIEW_LIVENESS_MAGIC ||
        l.header.version != SHMVIEW_LAYOUT_VERSION || l.header.header_bytes != n ||
        l.header.segment_id != segment->id || l.high > SHMVIEW_SLOTS_MAX)
        return -ESTALE;
    segment->unread = l.high > 0;
    segment->control_bytes = segment_control_bytes(l.high ? l.high : 1);
    /* the daemon will map the object: a page beyond its end would raise SIGBUS */
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    return (uint64_t)st.st_size >= sizeof l ? 0 : -ESTALE;
}

int segment_restore(struct segment *segment, const char **ret_why)
{
    /* a removed segment has no data if the object could not be renamed; see segment_unname() */
    bool has_data = segment->named || segment->inodes[DATA];
    *ret_why = "its data";
    int r = has_data ? check_identity(segment, DATA) : 0;
    if (r || !segment->lock)
        return r;
    *ret_why = "its control object";
    r = check_identity(segment, CONTROL);
    if (r)
        return r;
    *ret_why = "its liveness object";
    return check_liveness(segment);
}
