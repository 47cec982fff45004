/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/ready.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/segments/use.h"

#define ZEROS_BYTES 65536

/* Names of segments have no '+', and those of other objects have a number after it. */
static struct object named(const struct pool_object *ready)
{
    struct object object = {.device = ready->device, .inode = ready->inode};
    snprintf(object.name, sizeof object.name, "+pool.%" PRIu64, ready->number);
    return object;
}

static void unmake(const struct pool_object *ready)
{
    struct object object = named(ready);
    close(ready->fd);
    object_remove(&object);
}

/* Writes zeros over each page, which the kernel then need not zero at the first access. After a
 * failure the kernel does that for the rest. */
static void zero(int fd, uint64_t bytes)
{
    static const char zeros[ZEROS_BYTES];
    for (uint64_t done = 0; done < bytes;) {
        size_t n = bytes - done < sizeof zeros ? (size_t)(bytes - done) : sizeof zeros;
        ssize_t r = pwrite(fd, zeros, n, (off_t)done);
        if (r <= 0)
            return;
        done += (uint64_t)r;
    }
}

static int make(struct pool_object *ready, uint64_t bytes)
{
    struct object object = named(ready);
    int fd = object_create_promised(&object, bytes, bytes, NULL);
    if (fd < 0)
        return fd;
    zero(fd, bytes);
    ready->fd = fd;
    ready->device = object.device;
    ready->inode = object.inode;
    return 0;
}

const struct pool_maker ready_maker = {.make = make, .unmake = unmake};

void ready_give(struct segment *segment)
{
    struct object object, wanted;
    if (segment->sealed || segment->placement || segment->size < READY_LEAST_BYTES ||
        use_begin(segment))
        return;
    struct pool_object *ready = pool_take(segment->size);
    if (!ready)
        return;
    object = named(ready);
    segment_object(segment, DATA, &wanted);
    /* the name may be that of a foreign object, which the allocation then refuses */
    if (object_rename(&object, wanted.name)) {
        pool_give_back(segment->size, ready);
        return;
    }
    segment->device = ready->device;
    segment->inodes[DATA] = ready->inode;
    segment->use->fds[DATA_WRITE] = ready->fd;
    free(ready);
}
