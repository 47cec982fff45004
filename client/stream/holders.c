/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of a writer: since when a reader has been in its way.
 *
 * A reader does not read a clock when it takes a frame, because that would nearly double the cost
 * of a take. So a writer that gets no slot notes what it sees, and the time. Its next look finds
 * the same frame in the hands of the same reader, or does not. The time of the note is the latest
 * at which the reader can have taken the frame. */
#include <stdlib.h>

#include "client/base/error.h"
#include "client/stream/stream.h"

/* How much time passes at least between two looks of one wait, which may be woken often. */
#define LOOK_NS 1000000

int holders_open(struct shmview_stream *s)
{
    uint32_t n = s->plan.n_slots;
    struct holder *holders = malloc(HOLDERS * (sizeof *holders + n * sizeof *holders->held));
    if (!holders)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    struct held_frame *held = (struct held_frame *)(void *)(holders + HOLDERS);
    for (uint32_t i = 0; i < HOLDERS; i++)
        holders[i] = (struct holder){.held = held + i * n};
    s->writer.holders = holders;
    return 0;
}

void holders_forget(struct shmview_stream *s)
{
    for (uint32_t i = 0; i < HOLDERS && s->writer.holders; i++)
        s->writer.holders[i].id = 0;
}

/* Returns the frame that is in slot f, as a reader of the stage sees it. */
static struct held_frame frame_in(const struct shmview_stream *s, uint32_t stage, uint32_t f)
{
    struct shmview_stream_slot *words = slot_words(s, f);
    return (struct held_frame){
        .sequence =
            stage < s->plan.n_stages ? shown_number(atomic_load(word64(&words->shows[stage]))) : 0,
        .time_ns = atomic_load_explicit((_Atomic int64_t *)&words->time_ns, memory_order_relaxed),
    };
}

/* Notes what the reader holds now. A frame that the note has already keeps its time. For another
 * one the clock is read after the look: the reader may have taken the frame just before that. */
static void note_held(struct shmview_stream *s, struct holder *note, struct shmview_slot *reader)
{
    uint32_t stage = atomic_load(word(&reader->stream_stage));
    uint64_t holds[HOLD_WORDS];
    reader_holds(s, reader, holds);
    for (uint32_t w = 0; w < s->n_holds; w++) {
        for (uint64_t left = holds[w]; left; left &= left - 1) {
            uint32_t f = w * 64 + (uint32_t)__builtin_ctzll(left);
            struct held_frame *noted = &note->held[f], frame = frame_in(s, stage, f);
            bool is_same = note->holds[w] >> f % 64 & 1 && noted->sequence == frame.sequence &&
                           noted->time_ns == frame.time_ns;
            frame.since_ns = is_same ? noted->since_ns : now_ns();
            *noted = frame;
        }
        note->holds[w] = holds[w];
    }
}

static void note_reader(struct shmview_stream *s, struct holder *note, struct shmview_slot *reader)
{
    uint64_t next = atomic_load(word64(&reader->stream_next));
    note_held(s, note, reader);
    if (next != note->next) {
        note->next = next;
        note->next_since_ns = now_ns();
    }
}

/* Whether a writer may have to wait for the reader. */
static bool is_in_the_way(struct shmview_stream *s, struct shmview_slot *reader)
{
    uint64_t holds[HOLD_WORDS];
    return reader_holds(s, reader, holds) || (is_lossless(s) && reader_lag(s, reader));
}

static struct holder *find(struct shmview_stream *s, uint32_t id)
{
    for (uint32_t i = 0; i < HOLDERS; i++)
        if (s->writer.holders[i].id == id)
            return &s->writer.holders[i];
    return NULL;
}

/* Returns the note of a reader, perhaps a new one, or NULL if there is no room for it. */
static struct holder *note_of(struct shmview_stream *s, uint32_t id)
{
    struct holder *note = find(s, id);
    if (note || !(note = find(s, 0)))
        return note;
    *note = (struct holder){.id = id, .held = note->held, .next_since_ns = now_ns()};
    return note;
}

/* Forgets the readers that are gone, or no longer in the way. */
static void forget(struct shmview_stream *s)
{
    for (uint32_t i = 0; i < HOLDERS; i++) {
        struct holder *note = &s->writer.holders[i];
        struct shmview_slot *reader = note->id ? reader_at(s, note->id & SHMVIEW_SLOT_MASK) : NULL;
        if (!reader || atomic_load(word(&reader->stream_user)) != note->id ||
            !is_in_the_way(s, reader))
            note->id = 0;
    }
}

/* Looks at all readers. now is any time before the look. The caller has the claim of the writer. */
static void look(struct shmview_stream *s, int64_t now)
{
    s->writer.looked_ns = now;
    forget(s);
    for (uint32_t i = 0; i < readers_high(s); i++) {
        struct shmview_slot *reader = reader_at(s, i);
        struct holder *note = NULL;
        if (reader && is_in_the_way(s, reader))
            note = note_of(s, atomic_load(word(&reader->stream_user)));
        if (note)
            note_reader(s, note, reader);
    }
}

void holders_note(struct shmview_stream *s, int64_t now)
{
    claim_take(&s->writer.claim);
    if (now - s->writer.looked_ns >= LOOK_NS)
        look(s, now);
    claim_release(&s->writer.claim);
}

/* Sets how long the reader has held the frame that it has held longest. */
static void measure_held(const struct shmview_stream *s, const struct holder *note, int64_t now,
                         struct in_the_way *ret)
{
    int64_t since = INT64_MAX, time = 0;
    for (uint32_t f = 0; f < s->plan.n_slots; f++) {
        const struct held_frame *frame = &note->held[f];
        if (!(note->holds[f / 64] >> f % 64 & 1))
            continue;
        if (frame->since_ns < since) {
            since = frame->since_ns;
            time = frame->time_ns;
        }
    }
    if (since == INT64_MAX)
        return;
    ret->held_least_ns = now - since;
    if (time > 0) /* a writer could store anything there */
        ret->held_most_ns = now - time;
}

void holders_measure(struct shmview_stream *s, uint32_t id, int64_t now, struct in_the_way *ret)
{
    *ret = (struct in_the_way){.held_most_ns = -1};
    claim_take(&s->writer.claim);
    if (s->writer.looked_ns != now)
        look(s, now);
    const struct holder *note = find(s, id);
    if (note) {
        measure_held(s, note, now, ret);
        ret->still_least_ns = now - note->next_since_ns;
    }
    claim_release(&s->writer.claim);
}
