/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: loan, publish, discard, end. */
#include <inttypes.h>

#include "client/base/error.h"
#include "client/stream/stream.h"

/* --- The role ------------------------------------------------------------ */

/* How long a writer waits for another one, which may have been killed a moment ago, to be noticed
 * as dead by the daemon. */
#define DEATH_NS 200000000

/* How often to store the end of a stage, while others store it too. */
#define END_TRIES 1000

/* Whether this client may take the word writer, which has this value. */
static bool is_vacant(const struct lock *l, uint32_t writer)
{
    return writer == 0 || writer == l->me || !is_alive(l, writer);
}

/* Waits until the writer has died or given back its role, or until the time. Returns 0 with the
 * word writer, or -SHMVIEW_ERR_INTERRUPTED. */
static int await_vacancy(struct shmview_stream *s, int64_t until, uint32_t *ret_writer)
{
    struct lock *l = stream_lock(s);
    for (int r = 0;; r = wait_ask()) {
        uint32_t deaths = atomic_load(const_word(&l->live->deaths));
        int64_t now = now_ns();
        *ret_writer = atomic_load(word(&s->header->writer));
        if (r || now >= until || is_vacant(l, *ret_writer))
            return r;
        l->report_wait(l, *ret_writer);
        park(l, &l->live->deaths, deaths, NULL, until < now + 5000000 ? until : now + 5000000);
    }
}

/* Lets the search for free slots begin with the oldest frame, as the earlier writer would. */
static void find_cursor(struct shmview_stream *s)
{
    uint64_t last = ring_last(s, 0), entry = ring_load(s, 0, last);
    uint32_t f = entry_slot(entry);
    claim_take(&s->writer.claim);
    if (last && entry_sequence(entry) == last && f < s->plan.n_slots)
        s->writer.cursor = f;
    claim_release(&s->writer.claim);
}

/* Takes the word writer. If another client has it, waits until that has died or given it back, but
 * not longer than a death may take to be noticed. Returns 0 or an error. */
static int take_role(struct shmview_stream *s, int64_t deadline)
{
    struct lock *l = stream_lock(s);
    uint32_t seen;
    int64_t until = deadline > 0 ? now_ns() + DEATH_NS : 0;
    char name[64];
    if (deadline < until)
        until = deadline;
    do {
        int r = await_vacancy(s, until, &seen);
        if (r)
            return r;
        if (!is_vacant(l, seen)) {
            blame_client(s, seen, name, sizeof name);
            return fail(SHMVIEW_ERR_BUSY, "stream '%s' has a writer: %s", s->segment->name, name);
        }
    } while (!swap(&s->header->writer, &seen, l->me));
    STEP(AT_STREAM_ROLE);
    if (seen && seen != l->me)
        death_mark(s, seen);
    find_cursor(s);
    atomic_store(&s->writer.is_writer, true);
    return 0;
}

/* Prepares a call that writes. Returns 0 or an error. */
static int writer_enter(struct shmview_stream *s, int64_t deadline)
{
    if (s->segment->access != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_READ_ONLY, "stream '%s' was not opened for writing",
                    s->segment->name);
    int r = stream_enter(s);
    if (r || has_many_writers(s) ||
        atomic_load_explicit(&s->writer.is_writer, memory_order_relaxed))
        return r;
    r = take_role(s, deadline);
    /* nobody will announce the death of the writer for which it has waited */
    return r == -SHMVIEW_ERR_BUSY && has_ended(stream_lock(s)) ? fail_lost(stream_lock(s)) : r;
}

void writer_leave(struct shmview_stream *s)
{
    uint32_t me = stream_lock(s)->me;
    claim_take(&s->writer.claim);
    reclaim_give_back(s);
    claim_release(&s->writer.claim);
    if (atomic_exchange(&s->writer.is_writer, false))
        swap(&s->header->writer, &me, 0);
    gate_open(s, &stream_lock(s)->control->stream_writers);
}

/* --- Loans --------------------------------------------------------------- */

static void fill_loan(struct shmview_stream *s, uint32_t f, struct shmview_frame *ret)
{
    struct shmview_stream_slot *words = slot_words(s, f);
    uint64_t *lengths = slot_lengths(s, f);
    for (uint32_t i = 0; i < s->plan.n_views; i++)
        atomic_store_explicit(word64(&lengths[i]), s->views[i].length, memory_order_relaxed);
    *ret = (struct shmview_frame){
        .stream = s,
        .user = words->user,
        .slot = f,
        .state = FRAME_LOANED,
        .epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed),
    };
}

/* A loan, and the gate of the writers before the last attempt. */
struct loan {
    struct shmview_frame *frame;
    uint32_t gate_seen;
};

static int try_loan(struct shmview_stream *s, void *arg)
{
    struct loan *loan = arg;
    loan->gate_seen = atomic_load(word(&stream_lock(s)->control->stream_writers));
    claim_take(&s->writer.claim);
    int f = slot_is_mine(stream_lock(s)) ? reclaim_slot(s) : -2;
    claim_release(&s->writer.claim);
    if (f == -2)
        return fail_lost(stream_lock(s));
    if (f < 0)
        return NOTHING;
    fill_loan(s, (uint32_t)f, loan->frame);
    return 0;
}

/* A search owns slots for a moment. A writer that was woken then has passed them by, and this one
 * does not look again. A writer with an event loop does: the same gate has woken it. */
static void wake_for_others(struct shmview_stream *s, const struct loan *loan)
{
    uint32_t *gate = &stream_lock(s)->control->stream_writers;
    if (has_many_writers(s) && !atomic_load_explicit(&s->is_watched, memory_order_relaxed) &&
        atomic_load(word(gate)) != loan->gate_seen)
        gate_open(s, gate);
}

int shmview_stream_loan(struct shmview_stream *stream, int64_t deadline_ns,
                        struct shmview_frame *ret_frame)
{
    struct shmview_stream *s = stream;
    if (s->stage != 0)
        return fail(SHMVIEW_ERR_INVALID, "stage %u of stream '%s' gets its frames from others",
                    s->stage, s->segment->name);
    struct loan loan = {.frame = ret_frame};
    int r = writer_enter(s, deadline_ns);
    if (r)
        return r;
    r = try_loan(s, &loan);
    if (r == NOTHING)
        r = gate_wait(s, &stream_lock(s)->control->stream_writers, &s->writer.spin, deadline_ns,
                      &s->writer.in_the_way, try_loan, &loan);
    wake_for_others(s, &loan);
    return r == -SHMVIEW_ERR_TIMED_OUT ? blame_loan(s) : r;
}

/* Sets the error text. Returns -SHMVIEW_ERR_NOT_OWNER. */
static int fail_not_loaned(void)
{
    return fail(SHMVIEW_ERR_NOT_OWNER, "the frame is not loaned by this process");
}

int shmview_frame_set_length(struct shmview_frame *frame, size_t i, uint64_t length)
{
    if (!frame_is_mine(frame, FRAME_LOANED))
        return fail_not_loaned();
    const struct shmview_stream *s = frame->stream;
    if (i >= s->plan.n_views)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "view %zu of stream '%s', which has %u", i,
                    s->segment->name, s->plan.n_views);
    const struct frame_view *view = &s->views[i];
    if (view->view.ndim == 0 || length > view->length)
        return fail(SHMVIEW_ERR_BOUNDS, "%" PRIu64 " elements of view '%s', which has %" PRIu64,
                    length, view->name, view->length);
    atomic_store_explicit(word64(&slot_lengths(s, frame->slot)[i]), length, memory_order_relaxed);
    return 0;
}

/* --- The end of a loan --------------------------------------------------- */

/* Gives the slot to nobody, and wakes other writers, because one of them may have passed it by. */
static void give_slot(struct shmview_stream *s, uint32_t f)
{
    atomic_store(word(&slot_words(s, f)->owner), 0);
    STEP(AT_STREAM_GIVEN);
    gate_open(s, &stream_lock(s)->control->stream_writers);
}

/* Publishes; keeps the slot or gives it to nobody. */
static int publish(struct shmview_frame *frame, bool keeps)
{
    if (!frame_is_mine(frame, FRAME_LOANED))
        return fail_not_loaned();
    struct shmview_stream *s = frame->stream;
    struct shmview_stream_slot *words = slot_words(s, frame->slot);
    if (frame->user_bytes > SHMVIEW_STREAM_USER_BYTES)
        return fail(SHMVIEW_ERR_BOUNDS, "%u user bytes, the limit is %u", frame->user_bytes,
                    SHMVIEW_STREAM_USER_BYTES);
    if (!slot_is_mine(stream_lock(s)))
        return fail_lost(stream_lock(s));
    if (frame->time_ns == 0)
        frame->time_ns = now_ns();
    atomic_store_explicit((_Atomic int64_t *)&words->time_ns, frame->time_ns, memory_order_relaxed);
    atomic_store_explicit(word(&words->user_bytes), frame->user_bytes, memory_order_relaxed);
    STEP(AT_STREAM_FILLED);
    int r = ring_publish(s, 0, frame->slot, &frame->sequence);
    frame->state = keeps && r == 0 ? FRAME_KEPT : FRAME_NONE;
    if (r) {
        give_slot(s, frame->slot);
        return r;
    }
    /* Before the count, which orders it before the look at the gates. A fence would cost more. */
    if (!keeps)
        atomic_store_explicit(word(&words->owner), 0, memory_order_release);
    ring_count(s, 0, frame->sequence);
    STEP(AT_STREAM_COUNTED);
    gates_open(s, 0);
    STEP(AT_STREAM_WOKEN);
    return 0;
}

int shmview_frame_publish(struct shmview_frame *frame)
{
    return publish(frame, false);
}

int shmview_frame_publish_kept(struct shmview_frame *frame)
{
    return publish(frame, true);
}

void writer_unkeep(struct shmview_frame *frame)
{
    if (frame_is_mine(frame, FRAME_KEPT) && slot_is_mine(stream_lock(frame->stream)))
        give_slot(frame->stream, frame->slot);
}

void shmview_frame_discard(struct shmview_frame *frame)
{
    if (frame_is_mine(frame, FRAME_LOANED) && slot_is_mine(stream_lock(frame->stream)))
        give_slot(frame->stream, frame->slot);
    if (frame->state == FRAME_LOANED)
        frame->state = FRAME_NONE;
}

/* Stores the number after the last frame. Another writer may have ended the stage later: its
 * greater number stays, unless the ring does not reach it. */
static void store_end(struct shmview_stream *s)
{
    uint64_t *ended = &s->stages[s->stage].words->ended;
    for (int i = 0; i < END_TRIES; i++) {
        uint64_t seen = atomic_load(word64(ended)), end = ring_last(s, s->stage) + 1;
        STEP(AT_STREAM_ENDS);
        if (seen == end || atomic_compare_exchange_strong(word64(ended), &seen, end))
            return;
    }
}

int shmview_stream_end(struct shmview_stream *stream)
{
    struct shmview_stream *s = stream;
    if (s->stage == 0) {
        int r = writer_enter(s, 0);
        if (r)
            return r;
    } else if (s->segment->access != SHMVIEW_WRITE) {
        return fail(SHMVIEW_ERR_READ_ONLY, "stream '%s' was not opened for writing",
                    s->segment->name);
    }
    int r = stream_enter(s);
    if (r)
        return r;
    if (!slot_is_mine(stream_lock(s)))
        return fail_lost(stream_lock(s));
    store_end(s);
    gate_open(s, s->stages[s->stage].gate);
    return 0;
}
