/* SPDX-License-Identifier: Apache-2.0 */
/* The handle of a stream, and what the modules of this room share. <shmview/stream_layout.h> has
 * the bytes, docs/LAYOUT.md the steps, tests/model/stream.pml the model.
 *
 *   open     creates, opens and closes a stream; what a forked child must do to use one
 *   view     the views of a frame
 *   ring     the stages: publishes an entry, and finds the last one
 *   gate     waits for a frame or for a slot, and wakes those who wait
 *   reclaim  finds slots that no reader needs, and looks at all readers for that
 *   write    loan, publish, discard, end
 *   read     join, take, release, leave
 *   pass     passes a frame on to another stage
 *   deaths   deaths of writers
 *   holders  notes of a writer: since when a reader has been in its way
 *   blame    error texts that name the processes in the way
 *   query    reports for people
 *   several  one wait for several streams, changes and phases
 *
 * Words of the segment that two processes access are C11 atomics on their addresses, as in
 * client/lock/word.h. Each side of a pair stores one word and then loads another, both seq_cst, so
 * that at least one of the two sees the other:
 *   a reader sets its bit, and looks at shows   | a writer clears shows, and looks at the bits
 *   a reader that joins stores next, then looks | a writer stores tail, and looks at next
 *   at tail                                     |
 *   a client that will park closes a gate, and  | a client publishes or releases, and looks at the
 *   looks for a frame or a slot                 | gate */
#ifndef CLIENT_STREAM_H
#define CLIENT_STREAM_H

#include <shmview/stream.h>
#include <shmview/wait.h>

#include "client/lock/word.h"
#include "client/segment/segment.h"
#include "common/base/util.h"

#pragma GCC visibility push(hidden)

/* One stage, in this process. */
struct stage {
    struct shmview_stream_stage *words;
    uint64_t *ring;
    uint32_t *gate; /* of its readers; NULL with SHMVIEW_PEEK */
};

/* A view of the frame in slot 0. */
struct frame_view {
    struct shmview_view view;
    uint64_t length; /* of the leading dimension; 1 without dimensions */
    char name[LIMIT_VIEW_NAME_BYTES + 1];
};

/* What this process knows as a reader. Guarded by the claim on it, but for joined. On lines of its
 * own, because one thread may take while another one loans. */
struct reader {
    _Alignas(128) _Atomic uint32_t claim;
    _Atomic bool joined;
    uint64_t next;              /* the number that it takes next */
    uint64_t taken;             /* the last one that it has taken, or held before; 0: none */
    uint64_t missed;            /* since then */
    uint32_t deaths;            /* of the liveness object, when it last looked for dead writers */
    uint32_t taken_over;        /* deaths of the stream's header, likewise */
    struct shmview_death death; /* the last one that was noticed */
    bool has_death;             /* there is one */
    bool is_due;                /* and it was not reported yet */
    bool was_here;              /* it has joined before */
    _Atomic(struct spin) spin;
    /* Of each slot of the lock the id of the last client whose death was reported; 0: none. */
    uint32_t reported[SHMVIEW_SLOT_MASK + 1];
};

/* Words of stream_holds. */
#define HOLD_WORDS (SHMVIEW_STREAM_SLOTS_MAX / 64)

/* The most readers that a writer notes, and that an error text names. */
#define HOLDERS 4

/* A frame that a reader holds, as a writer has found it. */
struct held_frame {
    uint64_t sequence; /* that the slot shows in the reader's stage */
    int64_t time_ns;
    int64_t since_ns; /* when the writer first found it in the reader's hands */
};

/* What a writer has noted of a reader that is in its way. */
struct holder {
    uint32_t id;                /* in the lock; 0: nobody */
    uint64_t holds[HOLD_WORDS]; /* the slots of which held has something */
    struct held_frame *held;    /* by slot */
    uint64_t next;              /* the number that the reader takes next */
    int64_t next_since_ns;      /* when the writer first found that number */
};

/* What this process knows as a writer. Guarded by the claim on it. */
struct writer {
    _Alignas(128) _Atomic uint32_t claim;
    _Atomic bool is_writer; /* it has the word writer of the header */
    uint32_t cursor;        /* where the search for free slots begins */
    /* Slots that are free and owned, of a stream with one writer: room of them from first on. */
    uint16_t *free;
    uint32_t first, n_free;
    _Atomic uint32_t in_the_way; /* the client for which the last search would wait; 0: none */
    struct holder *holders;      /* HOLDERS, followed by what they hold; NULL for a reader */
    int64_t looked_ns;           /* when the notes were last compared with the readers */
    _Atomic(struct spin) spin;
};

struct shmview_stream {
    struct shmview_segment *segment;   /* owned */
    struct shmview_stream_header plan; /* a checked copy, which nobody else can change */
    struct shmview_stream_header *header;
    struct stage stages[SHMVIEW_STREAM_STAGES_MAX];
    unsigned char *slots; /* the words of slot 0 */
    struct frame_view *views;
    uint32_t stage;
    uint32_t mask;           /* n_cells - 1 */
    uint32_t n_holds;        /* words of stream_holds that the slots need */
    _Atomic bool is_watched; /* shmview_stream_fd() was called */
    _Atomic uint32_t epoch;  /* of the process to which reader and writer belong */
    struct shmview_slot *me; /* this client's; NULL with SHMVIEW_PEEK */
    struct reader reader;
    struct writer writer;
};

/* States of a frame. */
enum {
    FRAME_NONE,
    FRAME_LOANED,
    FRAME_TAKEN,
    FRAME_PEEKED,
    FRAME_KEPT, /* published, and the writer owns the slot, so that nobody overwrites it */
};

/* A result inside this room, besides those of the public calls: there is no frame, or no slot. */
#define NOTHING 100

static inline struct lock *stream_lock(const struct shmview_stream *s)
{
    return lock_of(s->segment);
}

static inline bool is_lossless(const struct shmview_stream *s)
{
    return s->plan.mode == SHMVIEW_LOSSLESS;
}

/* How many of the newest frames of each stage are not free, even if nobody needs them. */
static inline uint64_t frames_kept(const struct shmview_stream *s)
{
    return s->plan.history + !is_lossless(s);
}

static inline bool has_many_writers(const struct shmview_stream *s)
{
    return s->plan.flags & SHMVIEW_MANY_WRITERS;
}

/* f must be less than n_slots. */
static inline struct shmview_stream_slot *slot_words(const struct shmview_stream *s, uint32_t f)
{
    return (struct shmview_stream_slot *)(void *)(s->slots + f * s->plan.slot_bytes);
}

/* The lengths of the views in slot f. */
static inline uint64_t *slot_lengths(const struct shmview_stream *s, uint32_t f)
{
    return (uint64_t *)(void *)(slot_words(s, f) + 1);
}

/* --- Claims -------------------------------------------------------------- */

/* A claim is a lock among the threads of this process, for the few steps of an attempt. It costs
 * one locked instruction, where a mutex costs two. No thread waits, or calls a function of the
 * program, while it has one. */
void claim_slowly(_Atomic uint32_t *claim);

static inline void claim_take(_Atomic uint32_t *claim)
{
    if (__builtin_expect(atomic_exchange_explicit(claim, 1, memory_order_acquire), 0))
        claim_slowly(claim);
}

static inline void claim_release(_Atomic uint32_t *claim)
{
    atomic_store_explicit(claim, 0, memory_order_release);
}

/* --- open.c -------------------------------------------------------------- */

/* Whether reader and writer belong to this process. Those of an ancestor must not be used: if
 * one of its threads had a claim at the fork, nobody releases it here. */
static inline bool stream_is_own(const struct shmview_stream *s)
{
    return atomic_load_explicit(&s->epoch, memory_order_acquire) == process_epoch();
}

/* Makes the stream this process's own. */
void stream_own(struct shmview_stream *s);
int stream_prepare(struct shmview_stream *s);

/* Makes the stream this process's own, and checks that it has a lock. Returns 0 or an error. */
static inline int stream_enter(struct shmview_stream *s)
{
    const struct lock *l = stream_lock(s);
    uint32_t epoch = atomic_load_explicit(&process->epoch, memory_order_relaxed);
    if (__builtin_expect(
            is_ready(l) && atomic_load_explicit(&s->epoch, memory_order_acquire) == epoch, 1))
        return 0;
    return stream_prepare(s);
}

/* Whether the frame was loaned or taken by this process. */
static inline bool frame_is_mine(const struct shmview_frame *frame, uint32_t state)
{
    return frame->stream && frame->state == state && frame->epoch == process_epoch() &&
           frame->slot < frame->stream->plan.n_slots;
}

/* --- view.c -------------------------------------------------------------- */

/* Opens the views of the layout "frame". Returns 0 or an error. */
int stream_open_views(struct shmview_stream *s);

/* --- ring.c -------------------------------------------------------------- */

static inline uint64_t entry_of(uint64_t sequence, uint32_t slot)
{
    return sequence << SHMVIEW_STREAM_SLOT_BITS | slot;
}

static inline uint64_t entry_sequence(uint64_t entry)
{
    return entry >> SHMVIEW_STREAM_SLOT_BITS;
}

static inline uint32_t entry_slot(uint64_t entry)
{
    return (uint32_t)entry & SHMVIEW_STREAM_SLOT_MASK;
}

/* seq_cst, because a client that has closed a gate looks here before it parks. An acquire load may
 * be an ldapr on arm64, which can overtake the store into the gate. */
static inline uint64_t ring_load(const struct shmview_stream *s, uint32_t stage, uint64_t sequence)
{
    return atomic_load(word64(&s->stages[stage].ring[sequence & s->mask]));
}

/* The number in what a slot shows. */
static inline uint64_t shown_number(uint64_t shown)
{
    return shown & ~SHMVIEW_STREAM_PASSING;
}

/* Returns the number of the last frame of a stage. Counts a frame whose writer died before it did.
 */
uint64_t ring_last(struct shmview_stream *s, uint32_t stage);

/* Returns the number of the frame in slot f, if it is published in the stage; 0: none. The number
 * that the slot shows is *ret_number, even if the ring does not have it. */
uint64_t ring_shown(const struct shmview_stream *s, uint32_t stage, uint32_t f,
                    uint64_t *ret_number);

/* Counts a published frame, whichever number was counted before. A seq_cst read-modify-write in any
 * case, so that what the caller has stored is visible before it looks at a gate. */
void ring_count(struct shmview_stream *s, uint32_t stage, uint64_t sequence);

/* Publishes what is in slot f, which the caller owns, in a stage. The caller counts it. Returns 0
 * with the number, or -SHMVIEW_ERR_LAYOUT_VERSION if the ring is damaged. */
int ring_publish(struct shmview_stream *s, uint32_t stage, uint32_t f, uint64_t *ret_sequence);
/* Likewise of a slot that the caller holds, unless the frame is in the stage. Finishes what another
 * reader has begun, which may be dead; *ret_is_first is whether there was none. */
int ring_pass(struct shmview_stream *s, uint32_t stage, uint32_t f, uint64_t *ret_sequence,
              bool *ret_is_first);

/* Sets the error text. Returns -SHMVIEW_ERR_LAYOUT_VERSION. */
int fail_damaged(const struct shmview_stream *s, const char *what);
/* Likewise -SHMVIEW_ERR_INVALID: another thread has left the stage. */
int fail_left(const struct shmview_stream *s);

/* --- gate.c -------------------------------------------------------------- */

/* Sets a bit of the gate. Returns the value to park on. The caller must look again before it parks.
 */
uint32_t gate_close(uint32_t *gate, uint32_t bit);
void gate_open_slowly(struct shmview_stream *s, uint32_t *gate);
void gates_open_slowly(struct shmview_stream *s, uint32_t stage);

static inline bool gate_is_closed(uint32_t *gate)
{
    return atomic_load(word(gate)) & (SHMVIEW_GATE_PARKED | SHMVIEW_GATE_WATCHED);
}

/* Wakes those who wait at the gate. The caller has released, by a seq_cst access. */
static inline void gate_open(struct shmview_stream *s, uint32_t *gate)
{
    if (__builtin_expect(gate_is_closed(gate), 0))
        gate_open_slowly(s, gate);
}

/* Wakes those who wait for a frame of the stage, and writers, because an older frame may have
 * become free. The caller has published, by a seq_cst access. */
static inline void gates_open(struct shmview_stream *s, uint32_t stage)
{
    if (__builtin_expect(gate_is_closed(s->stages[stage].gate) ||
                             gate_is_closed(&stream_lock(s)->control->stream_writers),
                         0))
        gates_open_slowly(s, stage);
}

/* An attempt to take or loan. Returns NOTHING to wait, or the result of the call. */
typedef int stream_attempt(struct shmview_stream *s, void *arg);
/* Makes attempts until one succeeds or the deadline passes; the first one has failed already.
 * Spins, and then parks at the gate. in_the_way is the client for which it waits, if that is known.
 * Returns what the attempt returned, or -SHMVIEW_ERR_TIMED_OUT without an error text, _INTERRUPTED
 * or _LOST. */
int gate_wait(struct shmview_stream *s, uint32_t *gate, _Atomic(struct spin) *spin,
              int64_t deadline, const _Atomic uint32_t *in_the_way, stream_attempt *attempt,
              void *arg);

/* --- reclaim.c ----------------------------------------------------------- */

/* Finds a slot that can be filled, and owns it. The caller has the claim of the writer. Returns its
 * number, or -1 with in_the_way. */
int reclaim_slot(struct shmview_stream *s);
/* Gives back the slots that are free and owned. The caller has the claim of the writer. */
void reclaim_give_back(struct shmview_stream *s);

/* The words of a reader, if the client that has this slot of the lock is alive and has joined.
 * Returns NULL otherwise. */
struct shmview_slot *reader_at(const struct shmview_stream *s, uint32_t slot);
/* How many slots of the lock to look at. */
uint32_t readers_high(const struct shmview_stream *s);
/* Copies the bits of the slots that a reader holds. Returns how many they are. */
uint32_t reader_holds(const struct shmview_stream *s, struct shmview_slot *reader,
                      uint64_t ret_holds[HOLD_WORDS]);
/* Returns how many published frames of its stage a reader has not taken. */
uint64_t reader_lag(struct shmview_stream *s, struct shmview_slot *reader);

/* --- write.c, read.c ----------------------------------------------------- */

/* Gives back the role of the writer. */
void writer_leave(struct shmview_stream *s);
/* Gives the slot of a kept frame to nobody. Does nothing for another frame. */
void writer_unkeep(struct shmview_frame *frame);
/* Whether a take would not wait. */
bool reader_is_ready(struct shmview_stream *s);
/* Joins if need be. Returns 0 or an error. */
int reader_enter(struct shmview_stream *s);

/* --- deaths.c ------------------------------------------------------------ */

/* Records that this writer has taken over from a dead one. */
void death_mark(struct shmview_stream *s, uint32_t dead);
/* Looks for dead writers, and notes one in the reader. Returns whether there is a death to report.
 * The caller has the claim of the reader. */
bool death_look_slowly(struct shmview_stream *s, uint32_t deaths);
/* Likewise, if any client has died, or a mark was stored, since the last look. A look between a
 * takeover and its mark finds neither the dead writer nor the mark, and the count in the liveness
 * object does not change after it. To read the count in the header costs little: its cache line
 * changes only when a writer comes, leaves or takes over. */
static inline bool death_look(struct shmview_stream *s)
{
    uint32_t deaths =
        atomic_load_explicit(const_word(&stream_lock(s)->live->deaths), memory_order_acquire);
    uint32_t taken_over =
        atomic_load_explicit(const_word(&s->header->deaths), memory_order_relaxed);
    return s->reader.is_due ||
           ((deaths != s->reader.deaths || taken_over != s->reader.taken_over) &&
            death_look_slowly(s, deaths));
}

/* --- holders.c ----------------------------------------------------------- */

/* How long a reader has been in the way of this writer. */
struct in_the_way {
    /* The frame that it has held longest by the notes: at least, and at most if its time is that of
     * its publication or an earlier one. At most -1: unknown. */
    int64_t held_least_ns, held_most_ns;
    int64_t still_least_ns; /* how long at least it has taken no frame; 0: unknown */
};

/* Makes room for the notes. Returns 0 or an error. */
int holders_open(struct shmview_stream *s);
/* Forgets all of them. */
void holders_forget(struct shmview_stream *s);
/* Notes the readers that are in the way of a writer which waits. */
void holders_note(struct shmview_stream *s, int64_t now);
/* Notes them, and measures how long the reader with this id has been in the way. */
void holders_measure(struct shmview_stream *s, uint32_t id, int64_t now, struct in_the_way *ret);

/* --- blame.c ------------------------------------------------------------- */

/* Gets pid and command of a client, as it has signed its slot; 0 and "" if the slot has another
 * user now. */
void client_facts(const struct shmview_stream *s, uint32_t id, uint32_t *ret_pid,
                  char ret_command[16]);
/* Writes "pid N (command)" for a client. */
void blame_client(const struct shmview_stream *s, uint32_t id, char *ret_text, size_t bytes);
/* Sets an error text that names the clients for which a loan has waited. Returns
 * -SHMVIEW_ERR_TIMED_OUT. */
int blame_loan(struct shmview_stream *s);

#pragma GCC visibility pop

#endif
