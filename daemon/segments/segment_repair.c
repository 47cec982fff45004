/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/segment_repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/slice.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/object_write.h"
#include "daemon/segments/attachment.h"

#define LARGE_BYTES     ((uint64_t)1 << 20) /* a thread commits this and more, or may free it */
#define SEGMENTS_A_TURN 32                  /* they take 0.1 to 0.3 ms */
#define SLICE_NS        250000

/* The size that the object must have. */
static uint64_t bytes_of(const struct segment *segment, enum segment_part part)
{
    return part == DATA ? placement_object_bytes(segment->placement, segment->size)
                        : segment_control_size(segment, segment->control_bytes);
}

/* Calls stat() for one object, through its open descriptor if there is one. */
static int stat_part(const struct segment *segment, enum segment_part part, struct stat *ret)
{
    int fd = segment->use ? segment->use->fds[part == DATA ? DATA_WRITE : CONTROL_WRITE] : -1;
    struct object object;
    if (fd >= 0)
        return fstat(fd, ret) ? -errno : 0;
    segment_object(segment, part, &object);
    return object_stat(&object, ret);
}

/* Whether the object has more memory than its size needs. A client can also allocate memory beyond
 * the end of the file, which st_size does not show: with fallocate() and FALLOC_FL_KEEP_SIZE, or by
 * a huge page across the end (MADV_COLLAPSE). */
static bool is_too_large(const struct stat *st, uint64_t bytes)
{
    uint64_t step = (uint64_t)st->st_blksize, most = (bytes + step - 1) / step * step;
    return (uint64_t)st->st_size > bytes || (uint64_t)st->st_blocks * 512 > most;
}

enum header {
    HEADER_SOUND,
    HEADER_DAMAGED
};

/* Compares the header with the one that the daemon wrote. It does not open the control object for
 * that, because the timer would otherwise open the objects of all segments again and again. Returns
 * an enum header, HEADER_SOUND if the object is not open; or -errno. */
static int check_header(const struct segment *segment)
{
    struct shmview_control is, should;
    int fd = segment->use ? segment->use->fds[CONTROL_WRITE] : -1;
    size_t n = offsetof(struct shmview_control, pad0);
    segment_control_header(segment, &should);
    if (fd < 0)
        return HEADER_SOUND;
    ssize_t got = pread(fd, &is, n, 0);
    if (got < 0)
        return -errno;
    return (size_t)got == n && memcmp(&is, &should, n) == 0 ? HEADER_SOUND : HEADER_DAMAGED;
}

/* --- Logging ------------------------------------------------------------- */

/* Lists the clients that can have done the damage, which st shows, and are still attached. */
static void name_suspects(const struct segment *segment, enum segment_part part,
                          const struct stat *st, char *text, size_t bytes)
{
    size_t n = 0;
    struct attachment *a;
    /* a huge page across the end needs no writable descriptor */
    bool by_readers = (uint64_t)st->st_size == bytes_of(segment, part);
    if (segment->use)
        LIST_FOREACH (a, &segment->use->attachments, sibling) {
            if (n + 40 < bytes &&
                (part == DATA ? by_readers || a->access == SHMVIEW_WRITE : a->slot != SLOT_NONE))
                n += (size_t)snprintf(text + n, bytes - n, "%spid %d of uid %u", n ? ", " : "",
                                      a->pid, a->uid);
        }
    if (n == 0)
        snprintf(text, bytes, "a client that is no longer attached");
}

static void tell(const struct segment *segment, enum segment_part part, const struct stat *st)
{
    char suspects[200];
    name_suspects(segment, part, st, suspects, sizeof suspects);
    segment->home->n_repairs++;
    log_event(LOG_WARNING,
              &(struct log_event){
                  .kind = LOG_REPAIRED,
                  .segment = segment->name,
                  .reason = part == DATA ? "data" : "control",
              },
              "segment '%s': the %s had %jd bytes of size and %jd of memory instead of %" PRIu64
              ", or its header was overwritten; it is repaired; this can have been done by %s",
              segment->name, part == DATA ? "data" : "control object", (intmax_t)st->st_size,
              (intmax_t)st->st_blocks * 512, bytes_of(segment, part), suspects);
}

/* --- On a thread --------------------------------------------------------- */

/* A repair that a thread does. It has no pointer to the segment, which may be freed earlier. No
 * other segment gets the id. */
struct repair {
    struct segment_home *home;
    uint64_t segment;
    enum segment_part part;
    struct table_link link; /* in home->repairs, by the id of the segment */
};

/* Whether a thread repairs the object. There is at most one such repair of an object: each takes a
 * descriptor and a thread, and a client can damage the object again and again. */
static bool is_pending(const struct segment *segment, enum segment_part part)
{
    struct table_link *l = table_first(&segment->home->repairs, table_hash_number(segment->id));
    for (; l; l = table_next(l)) {
        const struct repair *r = CONTAINER_OF(l, struct repair, link);
        if (r->segment == segment->id && r->part == part)
            return true;
    }
    return false;
}

static void on_repaired(void *arg)
{
    struct repair *r = arg;
    table_remove(&r->home->repairs, &r->link);
    free(r);
}

/* --- Repairing ----------------------------------------------------------- */

/* Gives the object its size back. Missing bytes can be read when this returns, so that no client
 * gets SIGBUS unless /dev/shm is full. Commits only these, because a look at all pages of an
 * object takes 70 ms for each GiB. From 1 MiB on a thread commits them, or frees the excess; holes
 * may hide how much of the memory is excess. Returns 0 or -errno. */
static int resize(struct segment *segment, enum segment_part part, const struct stat *st)
{
    struct object object;
    uint64_t bytes = bytes_of(segment, part), size = (uint64_t)st->st_size;
    uint64_t missing = size < bytes ? bytes - size : 0, from = bytes - missing;
    uint64_t excess = is_too_large(st, bytes) ? (uint64_t)st->st_blocks * 512 : 0;
    segment_object(segment, part, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    if (fd < 0)
        return fd;
    if (missing < LARGE_BYTES && excess < LARGE_BYTES) {
        int r = ftruncate(fd, (off_t)bytes) ? -errno : 0;
        return r || !missing ? r : -posix_fallocate(fd, (off_t)from, (off_t)missing);
    }
    struct repair *r = malloc(sizeof *r);
    if (!r)
        return -ENOMEM;
    if (missing && ftruncate(fd, (off_t)bytes)) {
        int e = -errno;
        free(r);
        return e;
    }
    *r = (struct repair){.home = segment->home, .segment = segment->id, .part = part};
    table_add(&segment->home->repairs, &r->link, table_hash_number(segment->id));
    discard_excess(steal_fd(&fd), bytes, from, on_repaired, r);
    return 0;
}

/* Makes a damaged control object usable: writes its table of layouts and its header again, and
 * wakes all waiters. Bytes that a client cut off are zeros by now.
 *
 * The next owner must learn that the bytes may be broken. Therefore this function sets `inside`, as
 * if an owner had died inside: to an id that no client can have, because its slot is above
 * SHMVIEW_SLOTS_MAX. The version in the same word comes from the clock, so that an optimistic
 * reader that began before the damage finds another version. If a client is inside, the word stays,
 * because that client would clear a mark of the daemon when it leaves.
 *
 * The header comes last: if a write before it fails, a damaged header stays damaged, so that the
 * next check tries all of them again. */
static int rebuild_lock(struct segment *segment)
{
    struct object object;
    struct shmview_control c;
    uint64_t inside = (uint64_t)now_ns() << 30 | SHMVIEW_LOCK_OWNER, is = 0;
    segment_object(segment, CONTROL, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    if (fd < 0)
        return fd;
    int r = pread(fd, &is, sizeof is, offsetof(struct shmview_control, inside)) < 0 ? -errno : 0;
    if (r == 0 && !(is & SHMVIEW_LOCK_OWNER))
        r = object_write(fd, &inside, sizeof inside, offsetof(struct shmview_control, inside));
    if (r == 0)
        r = segment_publish_layouts(segment);
    segment_control_header(segment, &c);
    if (r == 0)
        r = object_write(fd, &c, offsetof(struct shmview_control, pad0), 0);
    if (r == 0)
        segment_announce(segment);
    return r;
}

/* Checks one object and repairs it. Returns 0 or -errno.
 *
 * Nobody can change the size of a sealed object. Its memory can grow by a huge page across the end,
 * but to free that page the daemon would have to wait for the lock of the inode, which a client can
 * hold without limit. */
static int repair(struct segment *segment, enum segment_part part)
{
    struct stat st;
    uint64_t bytes = bytes_of(segment, part);
    int r = stat_part(segment, part, &st);
    int header = r == 0 && part == CONTROL ? check_header(segment) : HEADER_SOUND;
    if (r || header < 0)
        return r ? r : header;
    bool is_short = !segment->sealed && (uint64_t)st.st_size < bytes;
    bool is_large = !segment->sealed && is_too_large(&st, bytes);
    bool is_damaged = is_short || header == HEADER_DAMAGED;
    if (!is_damaged && !is_large)
        return 0;
    if (is_pending(segment, part)) /* the next owner must learn of more lost bytes all the same */
        return is_short && part == DATA && segment->lock ? rebuild_lock(segment) : 0;
    tell(segment, part, &st);
    if (is_short || is_large)
        r = resize(segment, part, &st);
    /* also after an error, because the next check may find the size right */
    int s = is_damaged && segment->lock ? rebuild_lock(segment) : 0;
    return r ? r : s;
}

/* The control object comes first, because a repair of the data writes to it. */
int segment_repair(struct segment *segment)
{
    int r = segment->inodes[CONTROL] ? repair(segment, CONTROL) : 0;
    int s = segment->inodes[DATA] ? repair(segment, DATA) : 0;
    return r ? r : s;
}

void segment_repair_some(const struct registry *registry, uint64_t *after)
{
    int64_t until = slice_end(SLICE_NS);
    for (int i = 0; i < SEGMENTS_A_TURN && (i == 0 || now_ns() < until); i++) {
        struct segment *s = registry_next(registry, *after);
        *after = s ? s->id : 0;
        if (!s)
            return;
        if (s->allocated)
            segment_repair(s);
    }
}
