/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the objects of a new segment, in steps that run on a thread or on the loop.
 *
 * The first step promises all the memory that the segment needs (object.h). Each further step
 * settles a part of the promise, so a creation that has begun cannot run out of memory because of
 * another one. An allocation that fails settles or returns the rest of the promise and removes the
 * objects, so that it leaves nothing.
 *
 * The lock comes last. Only the data can be large, so a creation is canceled while it has no lock
 * yet. */
#include <errno.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/sealed.h"
#include "daemon/segments/segment.h"
#include "daemon/segments/use.h"

#define LOCK_BYTES (SEGMENT_CONTROL_BYTES + sizeof(struct shmview_liveness))

static int write_all(int fd, const void *bytes, size_t n)
{
    ssize_t r = pwrite(fd, bytes, n, 0);
    if (r < 0)
        return -errno;
    return (size_t)r == n ? 0 : -EIO;
}

static enum object_kind kind_of(const struct segment *segment)
{
    return segment->sealed ? OBJECT_SEALED : OBJECT_FILE;
}

/* Creates one object of promised memory and stores its device and inode. A sealed one has `size`
 * bytes, of which `bytes` are committed. Settles `bytes` of the promise in any case. Returns a
 * descriptor, which the caller owns; or -errno. */
static int create_object(struct segment *segment, enum segment_part part, uint64_t size,
                         uint64_t bytes, const atomic_bool *cancel)
{
    struct object object;
    segment_object(segment, part, &object);
    int fd = object_create_promised(&object, size, bytes, cancel);
    if (fd >= 0) {
        segment->device = object.device;
        segment->inodes[part] = object.inode;
    }
    return fd;
}

/* Creates the control and the liveness object with their headers, and maps the latter. LOCK_BYTES
 * are promised; settles all of them in any case. Leaves objects and descriptors to give_up() if it
 * fails. Returns 0 or -errno. */
static int allocate_lock(struct segment *segment)
{
    struct segment_use *use = segment->use;
    int control = use->fds[CONTROL_WRITE] =
        create_object(segment, CONTROL, segment_control_size(segment, SEGMENT_CONTROL_BYTES),
                      SEGMENT_CONTROL_BYTES, NULL);
    if (control < 0) {
        object_unpromise(kind_of(segment), sizeof(struct shmview_liveness));
        return control;
    }
    CLEANUP_FD int liveness = create_object(segment, LIVENESS, sizeof(struct shmview_liveness),
                                            sizeof(struct shmview_liveness), NULL);
    if (liveness < 0)
        return liveness;
    struct shmview_control c;
    segment_control_header(segment, &c);
    struct shmview_object_header l = segment_header(segment, SHMVIEW_LIVENESS_MAGIC,
                                                    offsetof(struct shmview_liveness, generation));
    segment->control_bytes = SEGMENT_CONTROL_BYTES;
    int r = write_all(control, &c, sizeof c);
    if (r == 0)
        r = write_all(liveness, &l, sizeof l);
    return r ? r : use_map_object(use, liveness);
}

/* How much memory must be promised for these bytes of the data. */
static uint64_t memory_of(const struct segment *segment, uint64_t bytes)
{
    return placement_memory(segment->placement, bytes);
}

/* Undoes an allocation that has failed with r. `bytes` are promised and not settled yet. Returns
 * r. */
static int give_up(struct segment *segment, uint64_t bytes, int r)
{
    object_unpromise(kind_of(segment), bytes);
    use_abandon(segment->use);
    segment_remove_objects(segment);
    return r;
}

/* Promises all memory of the segment, and creates the data object with its first bytes. If
 * ret_space is NULL, does not wait for memory that is being freed. Returns 0 or -errno. */
static int begin_once(struct segment *segment, uint64_t first, const atomic_bool *cancel,
                      struct object_space *ret_space)
{
    uint64_t bytes = memory_of(segment, segment->size) + (segment->lock ? LOCK_BYTES : 0);
    int r = ret_space ? object_promise(kind_of(segment), bytes, ret_space)
                      : object_promise_now(kind_of(segment), bytes);
    if (r)
        return r;
    r = use_begin(segment);
    if (r)
        return give_up(segment, bytes, r);
    int data = segment->use->fds[DATA_WRITE] =
        create_object(segment, DATA, segment->size, first, cancel);
    return data < 0 ? give_up(segment, bytes - memory_of(segment, first), data) : 0;
}

/* Like begin_once(), first with huge pages of the pool. Another process may have taken them since
 * they were counted; then the segment does without the pool. */
static int begin(struct segment *segment, uint64_t first, const atomic_bool *cancel,
                 struct object_space *ret_space)
{
    bool is_pool = placement_choose_pool(segment->placement, segment->sealed, segment->size);
    int r = begin_once(segment, first, cancel, ret_space);
    if (r != -ENOSPC || !is_pool)
        return r;
    placement_leave_pool(segment->placement);
    return begin_once(segment, first, cancel, ret_space);
}

/* Promises the memory of the lock, for a segment that has its data already. Without a lock it does
 * not measure, which takes as long as the creation. Returns 0 or -errno. */
static int begin_rest(struct segment *segment, struct object_space *ret_space)
{
    uint64_t bytes = segment->lock ? LOCK_BYTES : 0;
    int r = bytes == 0  ? 0
            : ret_space ? object_promise(kind_of(segment), bytes, ret_space)
                        : object_promise_now(kind_of(segment), bytes);
    if (r)
        return r;
    r = use_begin(segment);
    return r ? give_up(segment, bytes, r) : 0;
}

/* Commits `bytes` of the data from byte `from` on. The descriptor was closed after the last step,
 * so this opens the object again. Returns 0 or -errno. */
static int go_on(struct segment *segment, uint64_t from, uint64_t bytes, const atomic_bool *cancel)
{
    uint64_t rest = memory_of(segment, segment->size - from) + (segment->lock ? LOCK_BYTES : 0);
    int data = use_open(segment->use, DATA_WRITE);
    if (data < 0)
        return give_up(segment, rest, data);
    struct object object;
    segment_object(segment, DATA, &object);
    int r = object_commit(&object, data, from, bytes, cancel);
    return r ? give_up(segment, rest - memory_of(segment, bytes), r) : 0;
}

/* Does one step. Leaves descriptors and the map of the liveness object open, because the creator
 * usually attaches next. */
static int allocate_some(struct segment *segment, const atomic_bool *cancel, uint64_t *done,
                         struct object_space *ret_space)
{
    bool has_data = *done == 0 && segment->inodes[DATA];
    uint64_t left = segment->size - *done;
    uint64_t step = left < SEGMENT_STEP_BYTES || has_data ? left : SEGMENT_STEP_BYTES;
    int r = has_data     ? begin_rest(segment, ret_space)
            : *done == 0 ? begin(segment, step, cancel, ret_space)
                         : go_on(segment, *done, step, cancel);
    if (r)
        return r;
    *done += step;
    if (*done < segment->size)
        return ALLOCATED_PART;
    r = segment->lock ? allocate_lock(segment) : ALLOCATED;
    return r ? give_up(segment, 0, r) : 0;
}

int segment_allocate_some(struct segment *segment, const atomic_bool *cancel, uint64_t *done,
                          struct object_space *ret_space)
{
    int r = allocate_some(segment, cancel, done, ret_space);
    if (r >= 0)
        use_close(segment->use); /* else many unfinished creations would use up the descriptors */
    return r;
}

int segment_take_data(struct segment *segment, int fd, const struct stat *st, uid_t maker)
{
    int r = sealed_take_over(fd, st);
    if (r) {
        discard(fd, (uint64_t)st->st_size);
        return r;
    }
    segment->own = segment->sealed = true;
    segment->maker = maker;
    segment->device = st->st_dev;
    segment->inodes[DATA] = st->st_ino;
    return 0;
}

int segment_allocate_now(struct segment *segment)
{
    uint64_t done = 0;
    int r = allocate_some(segment, NULL, &done, NULL);
    bool lost_data = segment->own && !segment->inodes[DATA]; /* which cannot be made again */
    return r == -ENOSPC && !lost_data ? -EAGAIN : r; /* the next attempt fills in the figures */
}
