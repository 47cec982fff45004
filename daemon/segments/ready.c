/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/ready.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/segments/use.h"

/* Names of segments have no '+', and those of other objects have a number after it. */
static struct object named(const struct pool_object *ready)
{
    struct object object = {.device = ready->device, .inode = ready->inode, .zeroed = true};
    snprintf(object.name, sizeof object.name, "+pool.%" PRIu64, ready->number);
    return object;
}

static void unmake(const struct pool_object *ready)
{
    struct object object = named(ready);
    close(ready->fd);
    object_remove(&object);
}

static int make(struct pool_object *ready, uint64_t bytes)
{
    struct object object = named(ready);
    int fd = object_create_promised(&object, bytes, bytes, NULL);
    if (fd < 0)
        return fd;
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
