/* SPDX-License-Identifier: Apache-2.0 */
/* Finds slots that no reader needs.
 *
 * A slot is free if in no stage a reader is still to take its frame, and no reader holds it. A
 * writer owns the slots first, then moves the tails, looks at the next numbers of all readers,
 * clears what the slots show, and looks at what all readers hold. Each of these stores comes before
 * the look that follows it, so a reader that the look missed finds the store (stream.h).
 *
 * To look at all readers costs a cache line of each, which that reader has just written. So the
 * only writer of a stream frees several slots by one look, and keeps those that it does not need
 * yet. They are frames that every reader has taken, or, in a latest stream, the oldest eighth of
 * the frames. */
#include <string.h>

#include "client/stream/stream.h"

/* The most slots that a search frees. */
#define BATCH_MAX 32

/* How often another writer may be faster at the oldest slot, before a writer takes any slot. */
#define RACES 4

/* What one look at all readers found. */
struct look {
    uint64_t holds[HOLD_WORDS];                /* the slots that they hold */
    uint64_t least[SHMVIEW_STREAM_STAGES_MAX]; /* the least next number of a reader */
    uint32_t behind; /* a reader with that number, in the stage in which it is in the way */
    uint32_t holder; /* a reader that holds a slot */
};

/* A search for free slots. */
struct search {
    uint64_t limit[SHMVIEW_STREAM_STAGES_MAX]; /* the last number that is not history */
    struct look look;
    uint16_t slots[BATCH_MAX];  /* that may be free; the caller owns them */
    uint8_t unknown[BATCH_MAX]; /* the stages in which a slot shows a number that the ring lacks */
    uint32_t n, wanted;
};

/* --- Readers ------------------------------------------------------------- */

uint32_t readers_high(const struct shmview_stream *s)
{
    uint32_t high =
        atomic_load_explicit(const_word(&stream_lock(s)->live->high), memory_order_relaxed);
    return high < SHMVIEW_SLOTS_MAX ? high : SHMVIEW_SLOTS_MAX;
}

struct shmview_slot *reader_at(const struct shmview_stream *s, uint32_t slot)
{
    const struct lock *l = stream_lock(s);
    struct shmview_slot *reader = slot_at(l, slot);
    uint32_t user = atomic_load(word(&reader->stream_user));
    return user && (user & SHMVIEW_SLOT_MASK) == slot && is_alive(l, user) ? reader : NULL;
}

uint32_t reader_holds(const struct shmview_stream *s, struct shmview_slot *reader,
                      uint64_t ret_holds[HOLD_WORDS])
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n_holds; w++) {
        ret_holds[w] = atomic_load(word64(&reader->stream_holds[w]));
        if (w == s->n_holds - 1 && s->plan.n_slots % 64)
            ret_holds[w] &= (UINT64_C(1) << s->plan.n_slots % 64) - 1;
        n += (uint32_t)__builtin_popcountll(ret_holds[w]);
    }
    return n;
}

uint64_t reader_lag(struct shmview_stream *s, struct shmview_slot *reader)
{
    uint32_t stage = atomic_load(word(&reader->stream_stage));
    uint64_t next = atomic_load(word64(&reader->stream_next));
    uint64_t last = stage < s->plan.n_stages ? ring_last(s, stage) : 0;
    return next <= last ? last - next + 1 : 0;
}

/* Looks at all readers. */
static void look_at_readers(const struct shmview_stream *s, struct look *ret)
{
    uint32_t high = readers_high(s);
    memset(ret->holds, 0, s->n_holds * sizeof *ret->holds);
    for (uint32_t k = 0; k < s->plan.n_stages; k++)
        ret->least[k] = UINT64_MAX;
    ret->behind = ret->holder = 0;
    for (uint32_t i = 0; i < high; i++) {
        struct shmview_slot *reader = reader_at(s, i);
        if (!reader)
            continue;
        uint32_t user = atomic_load_explicit(word(&reader->stream_user), memory_order_relaxed);
        uint32_t k = atomic_load_explicit(word(&reader->stream_stage), memory_order_relaxed);
        uint64_t next = atomic_load(word64(&reader->stream_next));
        if (k < s->plan.n_stages && next < ret->least[k]) {
            ret->least[k] = next;
            ret->behind = user;
        }
        for (uint32_t w = 0; w < s->n_holds; w++) {
            uint64_t holds = atomic_load(word64(&reader->stream_holds[w]));
            ret->holds[w] |= holds;
            if (holds)
                ret->holder = user;
        }
    }
}

static bool is_held(const struct look *look, uint32_t f)
{
    return look->holds[f / 64] >> f % 64 & 1;
}

/* --- Owning -------------------------------------------------------------- */

/* Owns slot f, if no other writer does. The only writer of a stream owns all slots, but leaves out
 * those that it has loaned or keeps. */
static bool own(struct shmview_stream *s, uint32_t f)
{
    struct lock *l = stream_lock(s);
    uint32_t *owner = &slot_words(s, f)->owner;
    uint32_t seen = atomic_load_explicit(word(owner), memory_order_relaxed);
    if (!has_many_writers(s)) {
        if (seen == l->me)
            return false;
        atomic_store_explicit(word(owner), l->me, memory_order_relaxed);
        return true;
    }
    if (seen && is_alive(l, seen))
        return false;
    uint32_t dead = seen;
    STEP(AT_STREAM_OWNS);
    if (!swap(owner, &seen, l->me))
        return false;
    STEP(AT_STREAM_OWNED);
    if (dead)
        death_mark(s, dead);
    return true;
}

static void disown(struct shmview_stream *s, uint32_t f)
{
    STEP(AT_STREAM_DISOWNS);
    atomic_store(word(&slot_words(s, f)->owner), 0);
}

/* --- The search ---------------------------------------------------------- */

/* Moves the tails past the frames that are not history, and looks at all readers. A reader that
 * joins begins after the history too, so it misses nothing by that. */
static void begin_search(struct shmview_stream *s, struct search *ret)
{
    for (uint32_t k = 0; k < s->plan.n_stages; k++) {
        uint64_t kept = frames_kept(s), last = ring_last(s, k);
        ret->limit[k] = last > kept ? last - kept : 0;
        uint64_t *tail = &s->stages[k].words->tail;
        uint64_t seen = atomic_load_explicit(word64(tail), memory_order_relaxed);
        for (int i = 0; i < 1000 && is_lossless(s) && seen <= ret->limit[k]; i++)
            if (atomic_compare_exchange_weak(word64(tail), &seen, ret->limit[k] + 1))
                break;
    }
    STEP(AT_STREAM_TAIL);
    /* also where no tail was moved, because another writer may have moved it */
    atomic_thread_fence(memory_order_seq_cst);
    look_at_readers(s, &ret->look);
    ret->n = 0;
}

/* What a slot shows: masks of stages. */
struct shown {
    uint32_t published; /* the number of a frame in the ring */
    uint32_t unknown;   /* another number */
};

/* Whether no reader is still to take the frame in slot f, and what the slot shows. Sets in_the_way
 * if a reader is. */
static bool is_taken(struct shmview_stream *s, const struct search *search, uint32_t f,
                     struct shown *ret)
{
    *ret = (struct shown){0};
    for (uint32_t k = 0; k < s->plan.n_stages; k++) {
        uint64_t number, sequence = ring_shown(s, k, f, &number);
        if (sequence == 0) {
            ret->unknown |= (number ? 1u : 0) << k;
            continue;
        }
        ret->published |= 1u << k;
        if (sequence > search->limit[k])
            return false;
        if (is_lossless(s) && sequence >= search->look.least[k]) {
            atomic_store_explicit(&s->writer.in_the_way, search->look.behind, memory_order_relaxed);
            return false;
        }
    }
    return true;
}

static void clear(struct shmview_stream *s, uint32_t f, uint32_t stages)
{
    for (uint32_t k = 0; k < s->plan.n_stages; k++)
        if (stages >> k & 1)
            atomic_store_explicit(word64(&slot_words(s, f)->shows[k]), 0, memory_order_relaxed);
}

/* Whether the slot shows a frame in a stage: a reader may have passed it on after it was looked at.
 * A number in the stages of unknown counts only if the ring has it now. */
static bool is_shown(const struct shmview_stream *s, uint32_t f, uint32_t unknown)
{
    for (uint32_t k = 0; k < s->plan.n_stages; k++) {
        uint64_t number, sequence = ring_shown(s, k, f, &number);
        if (sequence || (number && !(unknown >> k & 1)))
            return true;
    }
    return false;
}

/* Collects slot f and clears what it shows, if every reader has taken its frame, or may miss it. */
static void collect_slot(struct shmview_stream *s, struct search *search, uint32_t f)
{
    struct writer *w = &s->writer;
    struct shown shown;
    if (is_held(&search->look, f)) {
        atomic_store_explicit(&w->in_the_way, search->look.holder, memory_order_relaxed);
        return;
    }
    if (!own(s, f))
        return;
    if (!is_taken(s, search, f, &shown)) {
        disown(s, f);
        return;
    }
    STEP(AT_STREAM_CLEARS);
    /* Nothing else, not even a 0: a reader that has held the slot since the look may be passing
     * the frame on, and its number would be lost. */
    clear(s, f, shown.published);
    STEP(AT_STREAM_CLEARED);
    search->unknown[search->n] = (uint8_t)shown.unknown;
    search->slots[search->n++] = (uint16_t)f;
    w->cursor = f;
}

/* Finds the slot with the oldest frame that this writer may collect; first of all one that shows no
 * frame. The age is the number in stage 0, which a slot shows even if only the ring of a later
 * stage still has its frame. Returns n_slots if there is none. */
static uint32_t find_oldest(struct shmview_stream *s, const struct search *search)
{
    struct writer *w = &s->writer;
    uint32_t n = s->plan.n_slots, f = w->cursor, ret = n;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < n && least > 0; i++) {
        struct shown shown;
        f = f + 1 < n ? f + 1 : 0;
        if (is_held(&search->look, f)) {
            atomic_store_explicit(&w->in_the_way, search->look.holder, memory_order_relaxed);
            continue;
        }
        uint32_t *owner = &slot_words(s, f)->owner;
        uint32_t seen = atomic_load_explicit(word(owner), memory_order_relaxed);
        if ((seen && is_alive(stream_lock(s), seen)) || !is_taken(s, search, f, &shown))
            continue;
        uint64_t *shows = &slot_words(s, f)->shows[0];
        uint64_t age = shown_number(atomic_load_explicit(word64(shows), memory_order_relaxed));
        if (!shown.published)
            age = 0;
        if (age < least) {
            least = age;
            ret = f;
        }
    }
    return ret;
}

/* Collects slots, the oldest first. The slots of an only writer have the order of their frames, so
 * it goes on after the last one. Many writers publish in any order, and each has its own cursor. In
 * a lossless stream the order does not matter, because nobody needs a frame that is collected. */
static void collect(struct shmview_stream *s, struct search *search)
{
    struct writer *w = &s->writer;
    uint32_t n = s->plan.n_slots, f;
    bool by_age = has_many_writers(s) && !is_lossless(s);
    for (int i = 0; by_age && i < RACES && search->n == 0; i++) {
        if ((f = find_oldest(s, search)) == n)
            return;
        collect_slot(s, search, f);
    }
    f = w->cursor;
    for (uint32_t i = 0; i < n && search->n < search->wanted; i++) {
        f = f + 1 < n ? f + 1 : 0;
        collect_slot(s, search, f);
    }
}

/* Keeps those of the collected slots that nobody holds and that show nothing.
 *
 * An unknown number of a slot that nobody holds is that of a dead reader, or the ring has lost it.
 * In the second case a reader may have taken that frame since the look. So the number is cleared,
 * and all readers are looked at once more. */
static void sift(struct shmview_stream *s, struct search *search)
{
    for (bool again = search->n > 0; again;) {
        uint32_t n = 0;
        again = false;
        atomic_thread_fence(memory_order_seq_cst);
        look_at_readers(s, &search->look);
        for (uint32_t i = 0; i < search->n; i++) {
            uint32_t f = search->slots[i], unknown = search->unknown[i];
            bool held = is_held(&search->look, f);
            if (held)
                atomic_store_explicit(&s->writer.in_the_way, search->look.holder,
                                      memory_order_relaxed);
            if (held || is_shown(s, f, unknown)) {
                disown(s, f);
                continue;
            }
            clear(s, f, unknown);
            again = again || unknown;
            search->unknown[n] = 0;
            search->slots[n++] = (uint16_t)f;
        }
        search->n = n;
    }
}

/* How many slots to free at a time. */
static uint32_t batch(const struct shmview_stream *s)
{
    uint32_t n = s->plan.n_slots / (is_lossless(s) ? 4 : 8);
    return has_many_writers(s) || n < 1 ? 1 : n < BATCH_MAX ? n : BATCH_MAX;
}

/* Searches once more if all slots that it has collected turn out to be needed, because it has not
 * looked at the others. At most once for each slot: readers could go on without end. */
static void find_free(struct shmview_stream *s, struct search *search)
{
    uint32_t n_collected, tries = s->plan.n_slots;
    do {
        begin_search(s, search);
        collect(s, search);
        n_collected = search->n;
        sift(s, search);
    } while (n_collected > 0 && search->n == 0 && --tries > 0);
}

int reclaim_slot(struct shmview_stream *s)
{
    struct writer *w = &s->writer;
    struct search search;
    if (w->first < w->n_free)
        return w->free[w->first++];
    search.wanted = batch(s);
    atomic_store_explicit(&w->in_the_way, 0, memory_order_relaxed);
    find_free(s, &search);
    if (search.n == 0)
        return -1;
    memcpy(w->free, search.slots, search.n * sizeof *w->free);
    w->n_free = search.n;
    w->first = 1;
    return search.slots[0];
}

void reclaim_give_back(struct shmview_stream *s)
{
    struct writer *w = &s->writer;
    while (w->first < w->n_free)
        disown(s, w->free[w->first++]);
    w->first = w->n_free = 0;
}
