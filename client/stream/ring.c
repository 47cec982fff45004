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

/* Counts a published frame, whichever number was counted before. */
static void count(struct shmview_stream_stage *stage, uint64_t sequence)
{
    uint64_t last = atomic_load_explicit(word64(&stage->published), memory_order_relaxed);
    for (int i = 0; i < TRIES && last < sequence; i++)
        if (atomic_compare_exchange_weak(word64(&stage->published), &last, sequence))
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
        count(words, last);
    return last;
}

uint64_t ring_shown(const struct shmview_stream *s, uint32_t stage, uint32_t f,
                    uint64_t *ret_number)
{
    uint64_t sequence = atomic_load(word64(&slot_words(s, f)->shows[stage]));
    *ret_number = sequence;
    return sequence && ring_load(s, stage, sequence) == entry_of(sequence, f) ? sequence : 0;
}

int ring_publish(struct shmview_stream *s, uint32_t stage, uint32_t f, uint64_t *ret_sequence)
{
    struct stage *k = &s->stages[stage];
    uint64_t *shows = &slot_words(s, f)->shows[stage];
    uint64_t sequence = 0;
    for (uint32_t i = 0; i < TRIES; i++) {
        /* others may have published many frames since the last look */
        uint64_t last = atomic_load_explicit(word64(&k->words->published), memory_order_relaxed);
        sequence = (sequence > last ? sequence : last) + 1;
        uint64_t *cell = &k->ring[sequence & s->mask];
        uint64_t seen = atomic_load_explicit(word64(cell), memory_order_relaxed);
        if (entry_sequence(seen) >= sequence)
            continue; /* of another writer, which has not counted it yet */
        /* no reader looks at this before the ring has the entry */
        atomic_store_explicit(word64(shows), sequence, memory_order_relaxed);
        STEP(AT_STREAM_SHOWS);
        if (atomic_compare_exchange_strong(word64(cell), &seen, entry_of(sequence, f))) {
            STEP(AT_STREAM_PUBLISHED);
            count(k->words, sequence);
            STEP(AT_STREAM_COUNTED);
            *ret_sequence = sequence;
            return 0;
        }
        sequence--; /* another writer has stored into the cell: look at it again */
    }
    atomic_store(word64(shows), 0);
    return fail_damaged(s, "its ring has numbers that were never published");
}
