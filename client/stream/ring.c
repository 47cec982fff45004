/* SPDX-License-Identifier: Apache-2.0 */
/* The stages: each has a ring of the frames that are published. */
#include "client/stream/stream.h"

#include "client/base/error.h"

/* How often to try again to store the greatest of two numbers: others only make it greater, but a
 * process that writes rubbish could do so without end. */
#define TRIES 1000

int fail_damaged(const struct shmview_stream *s, const char *what)
{
    return fail(SHMVIEW_ERR_LAYOUT_VERSION, "stream '%s' is damaged: %s", s->segment->name, what);
}

int fail_left(const struct shmview_stream *s)
{
    return fail(SHMVIEW_ERR_INVALID, "the reader has left stream '%s' during the call",
                s->segment->name);
}

void ring_count(struct shmview_stream *s, uint32_t stage, uint64_t sequence)
{
    uint64_t *published = &s->stages[stage].words->published;
    uint64_t last = atomic_load_explicit(word64(published), memory_order_relaxed);
    for (int i = 0; i < TRIES; i++)
        if (atomic_compare_exchange_weak(word64(published), &last,
                                         last < sequence ? sequence : last))
            return;
}

uint64_t ring_last(struct shmview_stream *s, uint32_t stage)
{
    struct shmview_stream_stage *words = s->stages[stage].words;
    uint64_t counted = atomic_load(word64(&words->published)), last = counted;
    for (uint32_t i = 0; i < s->plan.n_cells; i++) {
        if (entry_sequence(ring_load(s, stage, last + 1)) != last + 1)
            break;
        last++;
    }
    /* only a writer may store here; a reader that counts by itself gets the same number */
    if (last != counted && s->segment->access == SHMVIEW_WRITE)
        ring_count(s, stage, last);
    return last;
}

uint64_t ring_shown(const struct shmview_stream *s, uint32_t stage, uint32_t f,
                    uint64_t *ret_number)
{
    *ret_number = atomic_load(word64(&slot_words(s, f)->shows[stage]));
    uint64_t sequence = shown_number(*ret_number);
    return sequence && ring_load(s, stage, sequence) == entry_of(sequence, f) ? sequence : 0;
}

static int fail_unpublished(const struct shmview_stream *s)
{
    return fail_damaged(s, "its ring has numbers that were never published");
}

/* Finds the first number from `from` on that the ring does not have. Returns 0 if it has too many
 * of them. The entry in the cell of that number is *ret_seen. */
static uint64_t free_number(const struct stage *k, uint32_t mask, uint64_t from, uint64_t *ret_seen)
{
    for (uint32_t i = 0; i < TRIES; i++) {
        /* others may have published many frames since the last look */
        uint64_t last = atomic_load_explicit(word64(&k->words->published), memory_order_relaxed);
        from = from > last ? from : last + 1;
        *ret_seen = atomic_load_explicit(word64(&k->ring[from & mask]), memory_order_acquire);
        if (entry_sequence(*ret_seen) < from)
            return from;
        from++; /* of another writer, which has not counted it yet */
    }
    return 0;
}

/* Stores the entry of a frame into its cell, if that still has the entry that was seen there. The
 * slot of the earlier frame shows from then on, without the ring, that it was passed on. */
static bool put(struct shmview_stream *s, uint32_t stage, uint64_t entry, uint64_t seen)
{
    uint64_t *cell = &s->stages[stage].ring[entry_sequence(entry) & s->mask];
    uint64_t earlier = entry_sequence(seen) | SHMVIEW_STREAM_PASSING;
    if (s->plan.n_stages > 1 && entry_slot(seen) < s->plan.n_slots) {
        uint64_t *shows = &slot_words(s, entry_slot(seen))->shows[stage];
        if (atomic_load_explicit(word64(shows), memory_order_relaxed) == earlier)
            atomic_compare_exchange_strong(word64(shows), &earlier, shown_number(earlier));
    }
    return atomic_compare_exchange_strong(word64(cell), &seen, entry);
}

int ring_publish(struct shmview_stream *s, uint32_t stage, uint32_t f, uint64_t *ret_sequence)
{
    struct stage *k = &s->stages[stage];
    uint64_t *shows = &slot_words(s, f)->shows[stage];
    uint64_t sequence = 0, seen;
    for (uint32_t i = 0; i < TRIES; i++) {
        if (!(sequence = free_number(k, s->mask, sequence, &seen)))
            break;
        /* no reader looks at this before the ring has the entry */
        atomic_store_explicit(word64(shows), sequence, memory_order_relaxed);
        STEP(AT_STREAM_SHOWS);
        if (put(s, stage, entry_of(sequence, f), seen)) {
            STEP(AT_STREAM_PUBLISHED);
            *ret_sequence = sequence;
            return 0;
        }
    }
    atomic_store(word64(shows), 0);
    return fail_unpublished(s);
}

int ring_pass(struct shmview_stream *s, uint32_t stage, uint32_t f, uint64_t *ret_sequence,
              bool *ret_is_first)
{
    struct stage *k = &s->stages[stage];
    uint64_t *shows = &slot_words(s, f)->shows[stage];
    uint64_t shown = atomic_load(word64(shows));
    *ret_is_first = false;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint64_t number = shown_number(shown), seen = ring_load(s, stage, number);
        uint64_t passing = number | SHMVIEW_STREAM_PASSING;
        if (shown && (shown == number || seen == entry_of(number, f))) {
            ring_count(s, stage, number);
            atomic_compare_exchange_strong(word64(shows), &passing, number);
            *ret_sequence = number;
            return 0;
        }
        if (shown && entry_sequence(seen) < number) {
            if (put(s, stage, entry_of(number, f), seen))
                STEP(AT_STREAM_PASSED);
            continue;
        }
        /* none yet, or another frame has the number */
        if (!(number = free_number(k, s->mask, number, &seen)))
            break;
        bool is_first = shown == 0;
        passing = number | SHMVIEW_STREAM_PASSING;
        if (atomic_compare_exchange_strong(word64(shows), &shown, passing)) {
            shown = passing;
            *ret_is_first = *ret_is_first || is_first;
            STEP(AT_STREAM_PASSES);
        }
    }
    return fail_unpublished(s);
}
