/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/stream.h - streams: frames from process to process, without a copy.
 *
 * A stream is a segment with a pool of slots. Each slot holds a frame: the views of one layout. A
 * writer loans a free slot, fills its views in place, and publishes it. Readers take the frames in
 * order and release them. A frame that any reader holds is never overwritten.
 *
 *     const int64_t shape[] = {480, 640, 3};
 *     const struct shmview_view_spec image[] = {
 *         {.name = "image", .format = "uint8", .ndim = 3, .shape = shape},
 *     };
 *     const struct shmview_stream_spec spec = {
 *         .struct_bytes = sizeof spec, .mode = SHMVIEW_LATEST, .n_slots = 8,
 *         .views = image, .n_views = 1,
 *     };
 *     struct shmview_stream *stream;
 *     struct shmview_frame frame;
 *     struct shmview_view view;
 *     shmview_stream_create(conn, "camera", &spec, &stream);     a writer
 *     shmview_stream_loan(stream, 0, &frame);
 *     shmview_frame_view(&frame, "image", &view);
 *     ...
 *     shmview_frame_publish(&frame);
 *
 *     shmview_stream_open(conn, "camera", SHMVIEW_READ, &stream); a reader
 *     while (shmview_stream_take(stream, SHMVIEW_FOREVER, &frame) == 0) {
 *         shmview_frame_view(&frame, "image", &view);
 *         ...
 *         shmview_frame_release(&frame);
 *     }
 *
 * Delivery. In a lossless stream a writer waits, up to its deadline, until each reader has taken
 * the frame that it would overwrite. In a latest stream a writer overwrites the oldest frame that
 * no reader holds; a late reader skips frames and learns how many. "Lossless" counts from the
 * moment at which a reader joins: frames that nobody has joined for are overwritten.
 *
 * Stages. A stream can have several stages, each with frames in an order of its own, which share
 * the slots. A reader of one stage can pass a frame on to another one without a copy, and its slot
 * is free when the last stage has no use for it. The name "camera:1" stands for stage 1 of
 * "camera".
 *
 * Slots. A writer needs one; each stage keeps its history, and in a latest stream the newest frame;
 * readers hold some. A writer that never waits for a slot needs as many as all of these together.
 *
 * Death. A frame that was not published when its writer died is never seen, and its slot is free.
 * Readers learn of the death, and go on with the next writer's frames. Frames that a dead reader
 * held are free as soon as the daemon has noticed the death. While no daemon runs, streams go on;
 * deaths are noticed when it is back. A reader that is stopped (SIGSTOP) is no dead one: a latest
 * writer goes on, and a lossless one gets -SHMVIEW_ERR_TIMED_OUT with the name of that reader.
 *
 * Costs. No call makes a system call unless it, or the other side, waits. No cost depends on the
 * size of a frame, and none on the number of slots while writers need not search for a free one.
 * The cost of a loan grows with the number of readers. In a latest stream with many writers each
 * loan searches all slots for the oldest frame.
 *
 * Trust. A process that can write a stream can write all its frames. One that can read it can make
 * writers wait, by holding frames. One with SHMVIEW_PEEK can follow a stream and disturb nobody,
 * but frames may be overwritten while it reads them: see shmview_frame_is_intact().
 *
 * Results, _NAME, requests, ownership and forks are as in shmview.h. Frames belong to the process
 * that loaned or took them: a forked child joins again by its first take, and its copies of the
 * parent's frames are of no effect. Any thread may use any stream; a frame is used by one thread at
 * a time, and any thread may release it. Each call that waits ends by its deadline, an absolute
 * time of CLOCK_MONOTONIC in nanoseconds (shmview_deadline()): 0 tries once, SHMVIEW_FOREVER waits
 * as long as it takes. shmview_on_wait() ends a wait as well. */
#ifndef SHMVIEW_STREAM_H
#define SHMVIEW_STREAM_H

#include <shmview/shmview.h>
#include <shmview/stream_layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Streams ------------------------------------------------------------- */

/* A stream that this process has opened: one attachment of the segment, at one stage. */
struct shmview_stream;

/* Modes of delivery. */
#define SHMVIEW_LOSSLESS 1u
#define SHMVIEW_LATEST   2u

/* Flags of a stream. MANY_WRITERS: several processes may write stage 0 at once; their frames are in
 * one order. PLACED: the views have the offsets of their specs, from byte 0 of the slot. Without it
 * offsets must be 0, and the library places one view after the other, at multiples of 64. */
#define SHMVIEW_MANY_WRITERS 1u
#define SHMVIEW_PLACED       2u

/* A description of a stream to create. Set struct_bytes to sizeof. A member that is 0 has its
 * default, which the comment names. */
struct shmview_stream_spec {
    uint32_t struct_bytes;
    uint32_t mode;     /* SHMVIEW_LOSSLESS or SHMVIEW_LATEST; no default */
    uint32_t n_slots;  /* 2 to 512; 8 */
    uint32_t history;  /* how many frames a reader gets that were published before it joined, if
                          there were so many; 0. Each stage keeps as many slots, and in a latest
                          stream one more: together they must be less than n_slots */
    uint32_t n_stages; /* 1 to 6; 1 */
    uint32_t flags;    /* SHMVIEW_MANY_WRITERS | SHMVIEW_PLACED */
    /* The views of a frame, as in shmview_define(), without suboffsets; 1 to 64. The lengths of the
     * leading dimensions are those of the largest frame. */
    const struct shmview_view_spec *views;
    size_t n_views;
    /* Of the segment: lifetime, access ...; NULL. It must not have SHMVIEW_NO_LOCK. */
    const struct shmview_create_options *options;
};

/* Creates the segment called name with a layout "frame", makes a stream of it, and opens that with
 * SHMVIEW_WRITE at stage 0. The caller must pass *ret_stream to shmview_stream_close(). Blocks as
 * two requests.
 *
 * Returns 0 on success. On failure there is no segment: returns -SHMVIEW_ERR_INVALID for a wrong
 * member of the spec, an error of shmview_create() or of shmview_define(). */
int shmview_stream_create(struct shmview_connection *connection, const char *name,
                          const struct shmview_stream_spec *spec,
                          struct shmview_stream **ret_stream);

/* Opens a stream. name is that of the segment, and may end in ":" and the number of a stage. access
 * is SHMVIEW_WRITE to loan, publish and pass on, SHMVIEW_READ to take, or SHMVIEW_PEEK. A process
 * may open a stream many times. The caller must pass *ret_stream to shmview_stream_close(). Blocks
 * as a request, and for up to a second more while the creator is not ready.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID if there is no such stage or the segment is no
 * stream, _LAYOUT_VERSION if its header is damaged or of another version, an error of
 * shmview_attach(), or an error of requests. */
int shmview_stream_open(struct shmview_connection *connection, const char *name, int access,
                        struct shmview_stream **ret_stream);

/* Closes a stream: leaves it as a reader, gives back the role of the writer, and detaches. stream
 * may be NULL. Does not wait for the daemon.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BUSY and does nothing if this process has frames of it
 * that are neither published, discarded nor released, or buffers of their views. */
int shmview_stream_close(struct shmview_stream *stream);

/* Closes now, or when the last buffer of a view is released: for finalizers, which cannot refuse.
 * Frames that are taken are released, and those that are loaned are discarded. */
void shmview_stream_close_later(struct shmview_stream *stream);

/* Facts of a stream, which do not change. */
struct shmview_stream_info {
    uint32_t mode;
    uint32_t n_slots;
    uint32_t history;
    uint32_t n_stages;
    uint32_t stage; /* of this handle */
    uint32_t flags;
    uint32_t n_views;
    uint32_t reserved;
    uint64_t frame_bytes; /* from one frame to the next */
};

/* Gets the facts of a stream. Does not block. Never fails. */
void shmview_stream_info_get(const struct shmview_stream *stream,
                             struct shmview_stream_info *ret_info);

/* Returns the segment, for shmview_name(), shmview_describe() and the like. The program must not
 * detach it. Never fails. */
struct shmview_segment *shmview_stream_segment(const struct shmview_stream *stream);

/* Returns the name of view i, in the order of their declaration, or NULL if there are not so many.
 * The string lives as long as the stream. Never fails. */
const char *shmview_stream_view_name(const struct shmview_stream *stream, size_t i);

/* --- Frames -------------------------------------------------------------- */

/* One frame that this process has loaned or taken. The library fills it, and the program reads it,
 * but for time_ns, user and user_bytes of a loaned frame, which it may set. It may be moved in
 * memory, but only one copy of it may be used. Zeroes are no frame. */
struct shmview_frame {
    struct shmview_stream *stream; /* NULL: no frame */
    uint64_t sequence;             /* of a taken or published frame, from 1; 0 while it is loaned */
    /* CLOCK_MONOTONIC. Of a loaned frame 0: shmview_frame_publish() stores the time of the call. A
     * program may set another one before, such as that of the exposure. */
    int64_t time_ns;
    /* How many frames this reader has missed between the one before and this one. A frame that it
     * still holds, and that another reader passes back to its stage, counts as missed. */
    uint64_t missed;
    /* Bytes for the program's own use, up to SHMVIEW_STREAM_USER_BYTES, in the slot. */
    unsigned char *user;
    uint32_t user_bytes;
    uint32_t slot;
    uint32_t state; /* 0: no frame; other values are for the library only */
    /* for the library only */
    uint32_t epoch;
    uint64_t reserved[2];
};

/* Gets a view of the frame, by its name or by its number. The view of a taken frame is read-only,
 * and its leading dimension has the length that the writer gave it. It is valid until the frame is
 * published, discarded or released. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_LAYOUT if there is no such view, _NOT_OWNER if the
 * frame is none or was that of a parent process, or _BOUNDS if its length is larger than the
 * slot. */
int shmview_frame_view(const struct shmview_frame *frame, const char *name,
                       struct shmview_view *ret_view);
int shmview_frame_view_at(const struct shmview_frame *frame, size_t i,
                          struct shmview_view *ret_view);

/* --- Writing ------------------------------------------------------------- */

/* Loans a free slot. Its bytes are those of an earlier frame, user_bytes is 0, and each view has
 * its full length. The program must pass the frame to shmview_frame_publish() or
 * shmview_frame_discard(); it may have several at a time, and publish them in any order.
 *
 * Waits until deadline_ns for a slot: in a lossless stream for the slowest reader, in any stream
 * while all slots are held or loaned.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_TIMED_OUT after the deadline (the text names the
 * processes that are in the way, and for how long), _READ_ONLY without SHMVIEW_WRITE, _BUSY if the
 * stream has one writer and that is another living process (the text names it; the call waits for
 * up to 0.2 s, because that process may have been killed a moment ago), _INVALID at another stage
 * than 0, _LOST, _INTERRUPTED, or what a forked child may get.
 *
 * The text has two bounds of how long a reader has held a frame, because readers do not read a
 * clock when they take one:
 *
 *     pid 812 (viewer) holds 3 of 4 slots (one for 1.203 to 1.251 s)
 *
 * The lower bound is the time since a loan by this handle first failed or waited while this reader
 * held this frame. The upper one is the age of the frame, by its time_ns. A bound that is unknown
 * is left out: the first loan that fails has no lower one yet. Of several frames the text has the
 * times of the one with the greatest lower bound. Of a reader that has not taken frames the text
 * has the time for which loans by this handle have seen it take none. */
int shmview_stream_loan(struct shmview_stream *stream, int64_t deadline_ns,
                        struct shmview_frame *ret_frame);

/* Sets the length of view i of a loaned frame in its leading dimension: 0 to that of the spec.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BOUNDS for another length or a view without
 * dimensions, _NO_LAYOUT if there is no such view, or _NOT_OWNER if the frame is not loaned. */
int shmview_frame_set_length(struct shmview_frame *frame, size_t i, uint64_t length);

/* Publishes a loaned frame: readers see it as a whole, or not at all. Sets frame->sequence, and the
 * frame is no longer loaned. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_OWNER if the frame is not loaned by this process,
 * _BOUNDS if user_bytes is too large, _LOST, after which nobody sees the frame, or _LAYOUT_VERSION
 * if the stream is damaged, after which the slot is given back and the frame is none. */
int shmview_frame_publish(struct shmview_frame *frame);

/* Like shmview_frame_publish(), but the caller may go on reading the frame, as if it had taken it:
 * its slot is not overwritten, and its views are read-only from now on. The program must pass it to
 * shmview_frame_release(). For programs that cannot end all uses of the bytes before they publish.
 */
int shmview_frame_publish_kept(struct shmview_frame *frame);

/* Gives a loaned slot back without publishing it. Does nothing for a frame that is not loaned by
 * this process. Never fails. */
void shmview_frame_discard(struct shmview_frame *frame);

/* Marks the end of this handle's stage: readers that have taken the last frame get
 * SHMVIEW_STREAM_ENDED instead of waiting. A frame that is published later begins the stage again.
 * Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_READ_ONLY, _BUSY as shmview_stream_loan() does,
 * _LOST, or what a forked child may get. */
int shmview_stream_end(struct shmview_stream *stream);

/* --- Reading ------------------------------------------------------------- */

/* Results of taking, besides 0. No frame was taken. WRITER_DIED: a writer has died; reported once
 * for each death, see shmview_stream_death(). The next call goes on. In a stream with one writer it
 * comes after the frames that this writer has published; with many writers it may come before them.
 * STREAM_ENDED: a writer has ended the stage, and this reader has taken its last frame. */
#define SHMVIEW_WRITER_DIED  1
#define SHMVIEW_STREAM_ENDED 2

/* Joins the stage as a reader, unless this handle has joined: it gets the frames that are published
 * from now on, and the history before unless it has left earlier. The first take does it as well.
 * Does not block.
 *
 * Returns 0 on success. Returns _LOST, or what a forked child may get. */
int shmview_stream_join(struct shmview_stream *stream);

/* Leaves: writers do not wait for this reader any longer. It may still release its frames, and join
 * again. A take or a shmview_wait_any() of another thread by the same handle ends with
 * -SHMVIEW_ERR_INVALID. Never fails. */
void shmview_stream_leave(struct shmview_stream *stream);

/* Takes the next frame in order. Waits for it until deadline_ns. The caller must pass the frame to
 * shmview_frame_release(), and may hold several.
 *
 * Returns 0 on success, SHMVIEW_WRITER_DIED, or SHMVIEW_STREAM_ENDED. Returns
 * -SHMVIEW_ERR_TIMED_OUT after the deadline, _LAYOUT_VERSION if the stream is damaged, _INVALID if
 * another thread has left during the call, _LOST, _INTERRUPTED, or what a forked child may get. */
int shmview_stream_take(struct shmview_stream *stream, int64_t deadline_ns,
                        struct shmview_frame *ret_frame);

/* Like shmview_stream_take(), but takes the newest frame, and skips those before it, which count as
 * missed. A frame that this reader has taken before is not taken again. Right after joining it
 * takes the newest frame that is still there, whatever the history. */
int shmview_stream_take_latest(struct shmview_stream *stream, int64_t deadline_ns,
                               struct shmview_frame *ret_frame);

/* Releases a taken frame, whose views must not be used any longer. Does nothing for a frame that
 * this process has not taken. Any thread. Does not block. Never fails. */
void shmview_frame_release(struct shmview_frame *frame);

/* Returns 1 if nobody has overwritten the frame since it was taken. A frame that a reader holds is
 * intact. With SHMVIEW_PEEK nobody waits for the reader: copy what is needed, follow nothing in it,
 * and use the copy only if this call then returns 1. Never fails. */
int shmview_frame_is_intact(const struct shmview_frame *frame);

/* Publishes a taken frame in another stage of the same stream, where its number is *ret_sequence
 * (may be NULL). Each frame can be in a stage once. The caller still holds the frame. Needs
 * SHMVIEW_WRITE. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_EXISTS if the frame is in that stage already: also if
 * another reader began to pass it on and has died, because this call has then finished that.
 * _INVALID if there is no such stage, _NOT_OWNER if the frame is not taken by this process,
 * _READ_ONLY, _LOST, or _LAYOUT_VERSION if the stream is damaged. */
int shmview_frame_pass(const struct shmview_frame *frame, uint32_t stage, uint64_t *ret_sequence);

/* The writer whose death the last SHMVIEW_WRITER_DIED of this handle reported; when_ns is the time
 * at which it was noticed. pid and command are those that the writer gave; they are 0 and "" if
 * they are not known any longer. Returns 0, or -SHMVIEW_ERR_NOT_FOUND if no death was reported. */
int shmview_stream_death(const struct shmview_stream *stream, struct shmview_death *ret_death);

/* Returns a descriptor that becomes readable when a frame is published in this stage, or a slot may
 * be free, for poll() and event loops. Read from it until it would block, then take (or loan) with
 * deadline 0 until that returns -SHMVIEW_ERR_TIMED_OUT: this arms it again. Otherwise as
 * shmview_change_fd(), with the same errors. */
int shmview_stream_fd(struct shmview_stream *stream, int *ret_fd);

/* --- Status -------------------------------------------------------------- */

/* States of a slot. */
#define SHMVIEW_SLOT_FREE      0u /* no frame that a reader could still take, and nobody holds it */
#define SHMVIEW_SLOT_LOANED    1u
#define SHMVIEW_SLOT_PUBLISHED 2u
/* By a reader, or kept by its writer. A kept frame is LOANED once later frames have taken its place
 * in the ring. */
#define SHMVIEW_SLOT_HELD 3u

struct shmview_stream_slot_status {
    uint32_t state;
    uint32_t n_holders;
    uint32_t pid; /* of the writer, while it is loaned or kept; 0: unknown */
    uint32_t reserved;
    int64_t time_ns;
    uint64_t sequence[SHMVIEW_STREAM_STAGES_MAX]; /* in each stage; 0: none */
    char command[16];                             /* of the writer, as in struct shmview_death */
};

struct shmview_stream_reader_status {
    uint32_t slot; /* its slot in the lock */
    uint32_t pid;
    uint32_t stage;
    uint32_t n_held;
    uint64_t next;                                 /* the number that it takes next */
    uint64_t lag;                                  /* published frames that it has not taken */
    uint64_t missed;                               /* since it joined */
    uint64_t holds[SHMVIEW_STREAM_SLOTS_MAX / 64]; /* a bit of each slot */
    char command[16];
};

struct shmview_stream_status {
    uint64_t published[SHMVIEW_STREAM_STAGES_MAX]; /* the last number of each stage */
    uint32_t has_ended[SHMVIEW_STREAM_STAGES_MAX];
    uint32_t writer_pid; /* of a stream with one writer; 0: none, or unknown */
    uint32_t deaths;     /* of writers from which another one took over, the last slot included */
    uint64_t n_readers;  /* how many there are; more than n_readers if there was no room for all */
    char writer_command[16];
};

/* Reports the slots and readers for people, without disturbing anybody. Fills ret_slots, which has
 * room for n_slots (any number; NULL if 0), and ret_readers. The words are read one after the other
 * and may not fit each other exactly. With SHMVIEW_PEEK readers are not seen. Does not block.
 *
 * Returns 0 on success, _LOST, or what a forked child may get. */
int shmview_stream_query(struct shmview_stream *stream, struct shmview_stream_status *ret_status,
                         struct shmview_stream_slot_status *ret_slots, size_t n_slots,
                         struct shmview_stream_reader_status *ret_readers, size_t n_readers);

#ifdef __cplusplus
}
#endif
#endif
