/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segment_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

/* Returns its size, or -errno; -ESTALE if it is another one. */
static int64_t measure(const struct segment *segment, enum segment_part part, uint64_t least)
{
    struct object object;
    segment_object(segment, part, &object);
    int64_t bytes = object_size(&object);
    return bytes >= 0 && (uint64_t)bytes < least ? -ESTALE : bytes;
}

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
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    return (uint64_t)st.st_size >= sizeof l ? 0 : -ESTALE;
}

int segment_restore(struct segment *segment, const char **ret_why)
{
    /* one that has lost its name may have lost its data's as well */
    bool has_data = segment->named || segment->inodes[DATA];
    *ret_why = "its data";
    int64_t bytes = has_data ? measure(segment, DATA, segment->size) : 0;
    if (bytes < 0 || !segment->lock)
        return bytes < 0 ? (int)bytes : 0;
    /* what clients did to the control object is theirs; only its slots must be backed */
    *ret_why = "its control object";
    bytes = measure(segment, CONTROL, SEGMENT_CONTROL_BYTES);
    if (bytes < 0)
        return (int)bytes;
    segment->control_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    *ret_why = "its liveness object";
    return check_liveness(segment);
}
