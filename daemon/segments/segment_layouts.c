/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a layout to the three places that have it: the segment in the daemon's memory, the table
 * in the control object, and the registry.
 *
 * A client switches layouts while it holds the lock and must not wait for the daemon. Therefore the
 * control object has a table with a hash of the name of each layout, by index. A client finds there
 * the index of a layout that another client has defined. */
#include <errno.h>
#include <fcntl.h>

#include "common/base/layout_hash.h"
#include "common/base/util.h"
#include "daemon/memory/object_write.h"
#include "daemon/segments/segment.h"
#include "daemon/segments/segment_repair.h"
#include "daemon/segments/use.h"

_Static_assert(LIMIT_LAYOUTS == SHMVIEW_LAYOUTS_MAX, "an entry for each layout");

/* Writes n entries of the table from the index `from` on; an entry without a layout is 0. A client
 * may read the table at that moment. If it reads half of a new entry, it finds no layout of that
 * name. It would have found none a moment earlier, because the daemon replies to the definition
 * after this write. Returns 0 or -errno. */
static int write_table(const struct segment *segment, size_t from, size_t n)
{
    uint64_t table[LIMIT_LAYOUTS] = {0};
    struct object object;
    if (!segment->inodes[CONTROL])
        return 0; /* without a lock there is no phase, so nobody looks for layouts */
    segment_object(segment, CONTROL, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    if (fd < 0)
        return fd;
    for (size_t i = from; i < segment->layouts.n; i++)
        table[i] = layout_hash(segment->layouts.list[i].name);
    return object_write(fd, table + from, n * sizeof *table,
                        offsetof(struct shmview_control, layouts) + from * sizeof *table);
}

int segment_publish_layouts(const struct segment *segment)
{
    return write_table(segment, 0, LIMIT_LAYOUTS);
}

int segment_add_layout(struct segment *segment, const char *name, const char *text, size_t n)
{
    int index = layouts_add(&segment->layouts, name, text, n);
    if (index < 0)
        return index;
    /* The table comes first. If the daemon dies between the two writes, an entry without a record
     * is left. The next daemon clears it (read_slots() in use.c), or the next definition
     * overwrites it. In the other order, a record would have to be deleted again if the table could
     * not be written. */
    int r = write_table(segment, (size_t)index, 1);
    if (r == -EIO && segment_repair(segment) == 0) /* a client has truncated the object */
        r = write_table(segment, (size_t)index, 1);
    if (r == 0)
        r = store_put_layout(segment->home->store, segment->id, (uint32_t)index, text);
    if (r == 0)
        return index;
    layouts_drop_last(&segment->layouts);
    write_table(segment, (size_t)index, 1); /* clears the entry, as there is no such layout now */
    return r;
}
