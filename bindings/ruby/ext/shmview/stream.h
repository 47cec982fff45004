/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - streams and their frames: the objects, and what their files share. stream.c opens and
 * closes a stream, take.c loans and takes, frame.c has the frames, stream_status.c the facts, and
 * wait_any.
 *
 * A Frame has a hold, and the hold keeps the slot. The views of a Frame belong to a
 * Segment that wraps the bytes of the slot (shmview_wrap()), and libshmview drops the hold of that
 * Segment after the last buffer of it. So a consumer of a frame (MemoryView, IO::Buffer, tensor)
 * keeps the slot by the same means by which it keeps other memory.
 *
 * Views themselves keep no slot. They end with their frame, and each later use raises Closed, as
 * for a segment that is closed: if a slot were free only when Ruby collects the last view, writers
 * would wait for the collector.
 *
 * Lines and holds are outside of Ruby's memory, because their users may end in any order, and
 * counted by atomics, because a consumer may end on any thread. */
#ifndef STREAM_H
#define STREAM_H

#include "core.h"

#include <shmview/stream.h>

struct frame;

/* An open stream of libshmview. The Stream counts as a user, and so does each hold; the last one
 * closes it. */
struct line {
    struct shmview_stream *handle; /* NULL: closed by the Stream */
    struct link *link;             /* of the connection, owned */
    atomic_size_t n_users;
    struct frame *frames; /* those Frames that are not over; with the GVL held */
};

/* A frame that is loaned, taken or kept. The Frame counts as a user, and so does the memory of its
 * views; the last one discards or releases the frame. */
struct hold {
    struct shmview_frame frame;
    struct line *line; /* a user */
    atomic_size_t n_users;
};

struct stream {
    VALUE connection, name, views; /* name: with ":1" for a stage. views: the names, frozen */
    struct line *line;             /* a user; NULL: closed */
    struct shmview_stream_info info;
    int access;
    uint64_t place, reach; /* where the views of slot 0 begin and end, in bytes of the segment */
    size_t n_calls;        /* calls that use the handle without the GVL now */
    unsigned forks;        /* n_forks when n_calls was counted */
    unsigned entered;      /* n_forks when a call was known to need no daemon */
};
extern const rb_data_type_t stream_type;
extern VALUE cStream, cFrame;

struct frame {
    VALUE stream;
    VALUE memory;        /* the Segment of its views; Qnil: there were none */
    struct segment *seg; /* the struct of memory */
    struct hold *hold;   /* a user; NULL: over */
    uint64_t sequence, missed;
    int64_t time_ns;
    bool is_loaned;
    struct frame *next, **prev; /* in the list of its line, while it has a hold */
};

static inline struct stream *stream_of(VALUE self)
{
    return data_of(self, &stream_type);
}
/* Returns the stream if it is open. Raises Closed. */
static inline struct stream *stream_use(VALUE self)
{
    struct stream *stream = stream_of(self);
    if (UNLIKELY(!stream->line))
        raise_closed("the stream");
    return stream;
}

/* --- stream.c ------------------------------------------------------------ */

/* Returns how many calls of this process use the handle without the GVL. In a forked child the
 * count begins at 0, because the calls of the parent's other threads go on only there. */
size_t calls_of_stream(struct stream *stream);
/* Returns a new hold with an empty frame. Raises NoMemoryError. */
struct hold *hold_new(struct line *line);
void hold_take(struct hold *hold);
/* Any thread, with or without the GVL. */
void hold_drop(struct hold *hold);

/* --- frame.c ------------------------------------------------------------- */

/* Returns a Frame with an empty hold, which a call of libshmview fills. */
VALUE frame_new(VALUE stream);
/* Returns the frame that such a call fills. */
struct shmview_frame *frame_target(VALUE frame);
/* Stores the facts of the frame that the call has filled. */
void frame_filled(VALUE frame, bool is_loaned);
/* Ends the frame, if it is not over: a loaned one is discarded, a taken one released. Returns
 * nil. */
VALUE frame_end(VALUE frame);
/* Yields a taken frame, and releases it at the end of the block. Returns the block's value. */
VALUE frame_lend(VALUE frame);
/* Yields a loaned frame. Publishes it at a normal end of the block; anything else that leaves the
 * block discards it. Returns the block's value. */
VALUE frame_fill(VALUE frame);
/* Ends the views of all Frames of a line that are not over, and then the Frames. Returns how many
 * of them stay, because a consumer has their memory. */
size_t frames_end(struct line *line);

/* --- stream_status.c ----------------------------------------------------- */

/* Returns a new WriterDied for the last death that a call of this stream has reported, or nil. */
VALUE stream_death(VALUE self);

#endif
