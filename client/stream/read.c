/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: join, take, release, leave; and following a stream without a lock (SHMVIEW_PEEK). */
#include <string.h>

#include "client/base/error.h"
#include "client/stream/stream.h"

/* How many frames an attempt passes over at most, because other processes replace them or write
 * rubbish, before it calls the stream damaged. */
#define TRIES (4 * SHMVIEW_STREAM_SLOTS_MAX)

/* How often a reader without a lock looks for a frame. Nobody can wake it, and it must not cost the
 * writer anything. */
#define PEEK_NS 500000

/* --- Joining ------------------------------------------------------------- */

/* Returns where a reader begins that joins now. */
static uint64_t first_number(struct shmview_stream *s)
{
    uint64_t next = ring_last(s, s->stage) + 1;
    return next > s->plan.history ? next - s->plan.history : 1;
}

/* Announces this client as a reader; see stream_user in <shmview/stream_layout.h>. One that joins
 * again may hold frames, so its other words stay. */
static void announce(struct shmview_stream *s, bool again)
{
    struct shmview_slot *me = s->me;
    if (!again) {
        atomic_store(word(&me->stream_user), 0);
        STEP(AT_STREAM_NOBODY);
        for (uint32_t w = 0; w < SHMVIEW_STREAM_SLOTS_MAX / 64; w++)
            atomic_store_explicit(word64(&me->stream_holds[w]), 0, memory_order_relaxed);
        atomic_store_explicit(word(&me->stream_stage), s->stage, memory_order_relaxed);
        atomic_store_explicit(word64(&me->stream_missed), 0, memory_order_relaxed);
    }
    uint64_t next = again ? ring_last(s, s->stage) + 1 : first_number(s);
    atomic_store(word64(&me->stream_next), next);
    STEP(AT_STREAM_PLACED);
    atomic_store(word(&me->stream_user), stream_lock(s)->me);
    STEP(AT_STREAM_JOINED);
    uint64_t tail = atomic_load(word64(&s->stages[s->stage].words->tail));
    if (is_lossless(s) && tail > next) {
        next = tail;
        atomic_store(word64(&me->stream_next), next);
        gate_open(s, &stream_lock(s)->control->stream_writers); /* one may wait for the number */
    }
    s->reader.next = next;
}

/* The caller has the claim. */
static void join(struct shmview_stream *s)
{
    struct reader *reader = &s->reader;
    if (atomic_load(&reader->joined))
        return;
    if (s->me) {
        announce(s, reader->was_here);
        /* Earlier deaths are none of this reader's: of the writer, of an owner of each slot, and
         * one that has a mark. There are more only if a process writes rubbish. */
        for (uint32_t i = 0; i < s->plan.n_slots + 2 && death_look(s); i++)
            reader->is_due = false;
        reader->has_death = false;
    } else {
        reader->next = first_number(s);
    }
    reader->was_here = true;
    reader->missed = 0;
    atomic_store(&reader->joined, true);
}

int reader_enter(struct shmview_stream *s)
{
    int r = 0;
    if (s->me)
        r = stream_enter(s);
    else if (!stream_is_own(s))
        stream_own(s);
    if (r || atomic_load_explicit(&s->reader.joined, memory_order_acquire))
        return r;
    if (s->me && !slot_is_mine(stream_lock(s)))
        return fail_lost(stream_lock(s));
    claim_take(&s->reader.claim);
    join(s);
    claim_release(&s->reader.claim);
    return 0;
}

int shmview_stream_join(struct shmview_stream *stream)
{
    return reader_enter(stream);
}

void shmview_stream_leave(struct shmview_stream *stream)
{
    struct shmview_stream *s = stream;
    if (!stream_is_own(s) || !atomic_load(&s->reader.joined) || (s->me && stream_enter(s)))
        return;
    claim_take(&s->reader.claim);
    if (atomic_exchange(&s->reader.joined, false) && s->me && slot_is_mine(stream_lock(s)))
        atomic_store(word64(&s->me->stream_next), UINT64_MAX);
    claim_release(&s->reader.claim);
    if (!s->me)
        return;
    gate_open(s, &stream_lock(s)->control->stream_writers);
    gate_open(s, s->stages[s->stage].gate); /* another thread may wait there for a frame */
}

/* --- Taking -------------------------------------------------------------- */

/* Fills *ret with the frame in slot f. */
static void fill(struct shmview_stream *s, uint64_t sequence, uint32_t f, struct shmview_frame *ret)
{
    struct shmview_stream_slot *words = slot_words(s, f);
    uint32_t n = atomic_load_explicit(word(&words->user_bytes), memory_order_relaxed);
    *ret = (struct shmview_frame){
        .stream = s,
        .sequence = sequence,
        .time_ns = atomic_load_explicit((_Atomic int64_t *)&words->time_ns, memory_order_relaxed),
        .missed = s->reader.missed,
        .user = words->user,
        .user_bytes = n < SHMVIEW_STREAM_USER_BYTES ? n : SHMVIEW_STREAM_USER_BYTES,
        .slot = f,
        .state = s->me ? FRAME_TAKEN : FRAME_PEEKED,
        .epoch = s->me ? atomic_load_explicit(&s->epoch, memory_order_relaxed) : process_epoch(),
    };
}

static void unhold(struct shmview_stream *s, uint32_t f)
{
    atomic_fetch_and(word64(&s->me->stream_holds[f / 64]), ~(UINT64_C(1) << f % 64));
    STEP(AT_STREAM_RELEASED);
    gate_open(s, &stream_lock(s)->control->stream_writers);
}

/* Results of hold(). */
enum hold {
    HELD,
    GONE,        /* the slot has another frame, or none */
    HELD_BEFORE, /* this reader has it by an earlier number, and another one passed it back */
};

/* Holds slot f if it still shows the number. Without a lock it only looks. One bit cannot stand for
 * two frames, because the release of one of them would give up the other. */
static enum hold hold(struct shmview_stream *s, uint64_t sequence, uint32_t f)
{
    uint64_t *shows = &slot_words(s, f)->shows[s->stage], bit = UINT64_C(1) << f % 64;
    if (!s->me)
        return shown_number(atomic_load(word64(shows))) == sequence ? HELD : GONE;
    if (atomic_fetch_or(word64(&s->me->stream_holds[f / 64]), bit) & bit)
        return HELD_BEFORE;
    STEP(AT_STREAM_HELD);
    if (shown_number(atomic_load(word64(shows))) == sequence)
        return HELD;
    unhold(s, f);
    return GONE;
}

/* Skips frames that this reader cannot take any longer. */
static void skip(struct shmview_stream *s, uint64_t next)
{
    struct reader *reader = &s->reader;
    uint64_t n = next - reader->next;
    reader->missed += n;
    reader->next = next;
    if (!s->me)
        return;
    uint64_t *missed = &s->me->stream_missed;
    uint64_t all = atomic_load_explicit(word64(missed), memory_order_relaxed) + n;
    atomic_store_explicit(word64(missed), all, memory_order_relaxed);
    atomic_store(word64(&s->me->stream_next), next);
    if (is_lossless(s)) /* a writer may wait for one of these frames */
        gate_open(s, &stream_lock(s)->control->stream_writers);
}

/* Skips to the oldest frame that may still be there. */
static void skip_lapped(struct shmview_stream *s)
{
    uint64_t last = ring_last(s, s->stage), next = s->reader.next + 1;
    if (last > s->plan.n_cells && last - s->plan.n_cells + 1 > next)
        next = last - s->plan.n_cells + 1;
    skip(s, next);
}

static void note_taken(struct shmview_stream *s, uint64_t sequence)
{
    struct reader *reader = &s->reader;
    reader->taken = sequence;
    reader->next = sequence + 1;
    reader->missed = 0;
    /* Before the release of the frame: a writer that waits for this number is not woken here,
     * because only this slot could become free, and this client holds it. */
    if (s->me)
        atomic_store_explicit(word64(&s->me->stream_next), sequence + 1, memory_order_release);
    STEP(AT_STREAM_TAKEN);
}

/* Where there is no frame: whether the stage has ended, or a writer is dead. */
static int look_around(struct shmview_stream *s)
{
    STEP(AT_STREAM_EMPTY);
    if (s->me && death_look(s))
        return SHMVIEW_WRITER_DIED;
    uint64_t ended = atomic_load(word64(&s->stages[s->stage].words->ended));
    return ended && ended == s->reader.next ? SHMVIEW_STREAM_ENDED : NOTHING;
}

/* The caller has the claim. */
static int take_next(struct shmview_stream *s, struct shmview_frame *ret)
{
    struct reader *reader = &s->reader;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint64_t next = reader->next, entry = ring_load(s, s->stage, next);
        uint32_t f = entry_slot(entry);
        if (entry_sequence(entry) < next)
            return look_around(s);
        if (f >= s->plan.n_slots)
            return fail_damaged(s, "its ring has a slot that is none");
        enum hold held = entry_sequence(entry) == next ? hold(s, next, f) : GONE;
        if (held == HELD) {
            fill(s, next, f, ret);
            note_taken(s, next);
            return 0;
        }
        if (entry_sequence(entry) == next)
            skip(s, next + 1);
        else
            skip_lapped(s);
        if (is_lossless(s) && s->me && held == GONE)
            return fail_damaged(s, "frames are gone that a reader has not taken");
    }
    return fail_damaged(s, "its frames change without end");
}

static int take_latest(struct shmview_stream *s, struct shmview_frame *ret)
{
    struct reader *reader = &s->reader;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint64_t last = ring_last(s, s->stage), entry = ring_load(s, s->stage, last);
        uint32_t f = entry_slot(entry);
        if (last <= reader->taken || entry_sequence(entry) == 0)
            return look_around(s);
        if (f >= s->plan.n_slots)
            return fail_damaged(s, "its ring has a slot that is none");
        enum hold held = entry_sequence(entry) == last ? hold(s, last, f) : GONE;
        if (held == HELD) {
            if (last > reader->next)
                skip(s, last);
            fill(s, last, f, ret);
            note_taken(s, last);
            return 0;
        }
        if (held == HELD_BEFORE) {
            if (last >= reader->next)
                skip(s, last + 1);
            reader->taken = last;
            return look_around(s);
        }
        /* in a lossless stream the last frame may be gone, because all readers have taken it;
         * nobody waits for one without a lock */
        if (is_lossless(s) && !s->me && last >= reader->next)
            skip(s, last + 1);
        if (is_lossless(s) && last < reader->next)
            return look_around(s);
    }
    return fail_damaged(s, "its frames change without end");
}

struct pick {
    struct shmview_frame *frame;
    bool latest;
};

/* The caller has the claim. */
static int take_picked(struct shmview_stream *s, const struct pick *pick)
{
    return pick->latest ? take_latest(s, pick->frame) : take_next(s, pick->frame);
}

/* An attempt takes nothing once another thread has left. It would store a next number again, for
 * which a lossless writer would wait. */
static int try_take(struct shmview_stream *s, void *arg)
{
    const struct pick *pick = arg;
    if (s->me && !slot_is_mine(stream_lock(s)))
        return fail_lost(stream_lock(s));
    claim_take(&s->reader.claim);
    if (!atomic_load(&s->reader.joined)) {
        claim_release(&s->reader.claim);
        return fail_left(s);
    }
    int r = 0;
    if (has_many_writers(s) && s->me && death_look(s))
        r = SHMVIEW_WRITER_DIED;
    if (r == 0)
        r = take_picked(s, pick);
    /* the only writer may have published between the look at the ring and that at the deaths */
    if (r == SHMVIEW_WRITER_DIED && !has_many_writers(s))
        r = take_picked(s, pick);
    if (r == SHMVIEW_WRITER_DIED)
        s->reader.is_due = false;
    claim_release(&s->reader.claim);
    return r;
}

static int fail_no_frame(const struct shmview_stream *s)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "no frame of stream '%s' before the deadline",
                s->segment->name);
}

/* Waits for a frame without a lock. */
static int peek_wait(struct shmview_stream *s, int64_t deadline, struct pick *pick)
{
    NOT_CANCELLED;
    for (;;) {
        int r = try_take(s, pick);
        if (r != NOTHING)
            return r;
        int64_t now = now_ns(), left = deadline > 0 ? deadline - now : 0;
        if (left <= 0)
            return fail_no_frame(s);
        struct timespec t = {.tv_nsec = left < PEEK_NS ? left : PEEK_NS};
        nanosleep(&t, NULL);
        if ((r = wait_ask()))
            return r;
    }
}

static int take(struct shmview_stream *s, int64_t deadline, struct shmview_frame *ret_frame,
                bool latest)
{
    struct pick pick = {ret_frame, latest};
    int r = reader_enter(s);
    if (r)
        return r;
    if (!s->me)
        return peek_wait(s, deadline, &pick);
    r = try_take(s, &pick);
    if (__builtin_expect(r != NOTHING, 1))
        return r;
    r = gate_wait(s, s->stages[s->stage].gate, &s->reader.spin, deadline, NULL, try_take, &pick);
    return r == -SHMVIEW_ERR_TIMED_OUT ? fail_no_frame(s) : r;
}

int shmview_stream_take(struct shmview_stream *stream, int64_t deadline_ns,
                        struct shmview_frame *ret_frame)
{
    return take(stream, deadline_ns, ret_frame, false);
}

int shmview_stream_take_latest(struct shmview_stream *stream, int64_t deadline_ns,
                               struct shmview_frame *ret_frame)
{
    return take(stream, deadline_ns, ret_frame, true);
}

bool reader_is_ready(struct shmview_stream *s)
{
    claim_take(&s->reader.claim);
    uint64_t next = s->reader.next;
    bool ready = entry_sequence(ring_load(s, s->stage, next)) >= next || look_around(s) != NOTHING;
    claim_release(&s->reader.claim);
    return ready;
}

/* --- Releasing ----------------------------------------------------------- */

void shmview_frame_release(struct shmview_frame *frame)
{
    if (frame_is_mine(frame, FRAME_TAKEN) && slot_is_mine(stream_lock(frame->stream)))
        unhold(frame->stream, frame->slot);
    writer_unkeep(frame);
    if (frame->state != FRAME_LOANED)
        frame->state = FRAME_NONE;
}

int shmview_frame_is_intact(const struct shmview_frame *frame)
{
    const struct shmview_stream *s = frame->stream;
    if (frame_is_mine(frame, FRAME_TAKEN) || frame_is_mine(frame, FRAME_KEPT))
        return slot_is_mine(stream_lock(s));
    if (!frame_is_mine(frame, FRAME_PEEKED))
        return 0;
    /* the bytes that the caller has read were read before this */
    atomic_thread_fence(memory_order_acquire);
    uint64_t *shows = &slot_words(s, frame->slot)->shows[s->stage];
    return shown_number(atomic_load_explicit(word64(shows), memory_order_relaxed)) ==
           frame->sequence;
}
