/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of a segment: where they are kept, and how clients find them by name. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/layout_hash.h"
#include "common/base/util.h"
#include "daemon/segments/segment.h"
#include "daemon/segments/use.h"

_Static_assert(LIMIT_LAYOUTS == SHMVIEW_LAYOUTS_MAX, "an entry for each layout");

/* Writes n entries of the table from index on. Clients may be reading it: one that finds half an
 * entry finds no layout by it, and none is looked for before its entry is whole. */
static int write_table(const struct segment *segment, size_t from, size_t n)
{
    uint64_t table[LIMIT_LAYOUTS] = {0};
    const size_t bytes = n * sizeof *table;
    struct object object;
    int fd = segment->use ? segment->use->fds[CONTROL_WRITE] : -1;
    CLEANUP_FD int opened = -1;
    if (!segment->inodes[CONTROL])
        return 0; /* no lock, so no phase */
    if (fd < 0) {
        segment_object(segment, CONTROL, &object);
        fd = opened = object_open(&object, O_RDWR);
    }
    if (fd < 0)
        return fd;
    for (size_t i = from; i < segment->layouts.n; i++)
        table[i] = layout_hash(segment->layouts.list[i].name);
    ssize_t r = pwrite(fd, table + from, bytes,
                       (off_t)(offsetof(struct shmview_control, layouts) + from * sizeof *table));
    return r < 0 ? -errno : (size_t)r == bytes ? 0 : -EIO;
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
    /* first the table: an entry whose layout was not kept is cleared by the next daemon, but a
     * layout that was kept without its entry would not be found */
    int r = write_table(segment, (size_t)index, 1);
    if (r == 0)
        r = store_put_layout(segment->home->store, segment->id, (uint32_t)index, text);
    if (r == 0)
        return index;
    layouts_drop_last(&segment->layouts);
    write_table(segment, (size_t)index, 1);
    return r;
}
