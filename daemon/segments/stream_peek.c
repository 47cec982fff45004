/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/stream_peek.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <shmview/monitor.h>

#include "common/base/util.h"
#include "common/stream/plan.h"
#include "daemon/segments/attachment.h"

/* How many bytes of the slots are read at a time. */
#define CHUNK_BYTES 16384

/* Returns a descriptor of the data for reading, or -errno. The caller owns it if it is also in
 * *ret_new. */
static int open_data(const struct segment *segment, int *ret_new)
{
    const struct segment_use *use = segment->use;
    struct object object;
    if (use && use->fds[DATA_READ] >= 0)
        return use->fds[DATA_READ];
    if (use && use->fds[DATA_WRITE] >= 0)
        return use->fds[DATA_WRITE];
    segment_object(segment, DATA, &object);
    return *ret_new = object_open(&object, O_RDONLY);
}

/* Reads and checks the header. The layout comes first, because most segments do not have it, and
 * their data need not be opened then. Returns whether the segment is a stream. */
static bool read_header(const struct segment *segment, int *ret_fd, int *ret_new,
                        struct shmview_stream_header *ret)
{
    struct view_fault fault;
    if (!segment->lock || !layouts_find(&segment->layouts, STREAM_LAYOUT))
        return false;
    *ret_fd = open_data(segment, ret_new);
    return *ret_fd >= 0 && pread(*ret_fd, ret, sizeof *ret, 0) == sizeof *ret &&
           stream_plan_check(ret, segment->size, &fault) == 0;
}

static void describe(const struct shmview_stream_header *header, struct stream_peek *ret)
{
    ret->mode = (uint8_t)header->mode;
    ret->n_slots = (uint16_t)header->n_slots;
}

void stream_peek(const struct segment *segment, struct stream_peek *ret)
{
    CLEANUP_FD int new = -1;
    struct shmview_stream_header header;
    int fd;
    *ret = (struct stream_peek){0};
    if (read_header(segment, &fd, &new, &header))
        describe(&header, ret);
}

void stream_peek_note(const struct stream_peek *peek, struct event *event)
{
    event->stream = peek->mode;
    event->stream_role = peek->role;
    event->stream_slots = peek->n_slots;
    event->held_frames = peek->n_held;
}

void stream_peek_event(const struct segment *segment, struct event *event)
{
    struct stream_peek peek;
    if (!event->wanted_by)
        return;
    stream_peek(segment, &peek);
    stream_peek_note(&peek, event);
}

/* Whether the client with this id owns a slot. */
static bool owns_slot(int fd, const struct shmview_stream_header *h, uint32_t id)
{
    static unsigned char bytes[CHUNK_BYTES]; /* too large for the stack */
    uint64_t n_chunk = sizeof bytes / h->slot_bytes;
    for (uint64_t f = 0; f < h->n_slots; f += n_chunk) {
        ssize_t n =
            pread(fd, bytes, n_chunk * h->slot_bytes, (off_t)(h->slots_offset + f * h->slot_bytes));
        for (uint64_t i = 0; n > 0 && i < n_chunk && f + i < h->n_slots; i++) {
            struct shmview_stream_slot slot;
            if ((i + 1) * h->slot_bytes > (uint64_t)n)
                return false;
            memcpy(&slot, bytes + i * h->slot_bytes, sizeof slot);
            if (slot.owner == id)
                return true;
        }
    }
    return false;
}

/* Whether the client writes the stream. A stream of many writers does not have their ids, so a
 * client that has loaned nothing is not found. */
static bool is_writer(int fd, const struct shmview_stream_header *h, uint32_t id)
{
    return h->flags & SHMVIEW_MANY_WRITERS ? owns_slot(fd, h, id) : h->writer == id;
}

static void peek_reader(const struct shmview_slot *slot, uint32_t id, uint32_t n_slots,
                        struct stream_peek *ret)
{
    if (slot->stream_user != id)
        return;
    for (uint32_t f = 0; f < n_slots; f++)
        if (slot->stream_holds[f / 64] >> f % 64 & 1)
            ret->n_held++;
    if (ret->n_held || slot->stream_next != UINT64_MAX)
        ret->role |= SHMVIEW_STREAM_READER;
}

void stream_peek_party(const struct attachment *attachment, const struct control_peek *control,
                       struct stream_peek *ret)
{
    CLEANUP_FD int new = -1;
    struct shmview_stream_header header;
    uint32_t number = attachment->slot;
    uint32_t id = attachment->generation << SHMVIEW_SLOT_BITS | number;
    int fd;
    *ret = (struct stream_peek){0};
    if (!read_header(attachment->segment, &fd, &new, &header))
        return;
    describe(&header, ret);
    if (number < control->n_slots)
        peek_reader(&control->slots[number], id, header.n_slots, ret);
    if (attachment->access == SHMVIEW_WRITE && is_writer(fd, &header, id))
        ret->role |= SHMVIEW_STREAM_WRITER;
}
