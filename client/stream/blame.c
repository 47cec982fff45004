/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts that name the processes in the way of a loan. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/base/error.h"
#include "client/stream/stream.h"

/* The most readers that a text names. */
#define NAMED 4

struct text {
    char bytes[ERROR_TEXT_BYTES - 128];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, ap);
    va_end(ap);
    if (n > 0)
        t->n = t->n + (size_t)n < sizeof t->bytes ? t->n + (size_t)n : sizeof t->bytes - 1;
}

void blame_client(const struct shmview_stream *s, uint32_t id, char *ret_text, size_t bytes)
{
    uint32_t pid;
    char command[16];
    client_facts(s, id, &pid, command);
    if (pid)
        snprintf(ret_text, bytes, "pid %u (%s)", pid, command);
    else
        snprintf(ret_text, bytes, "a client in slot %u", id & SHMVIEW_SLOT_MASK);
}

/* How many slots a reader holds, and the time of the oldest frame in them (0: unknown). */
static uint32_t count_held(const struct shmview_stream *s, struct shmview_slot *reader,
                           int64_t *ret_oldest)
{
    uint32_t n = 0;
    *ret_oldest = 0;
    for (uint32_t f = 0; f < s->plan.n_slots; f++) {
        if (!(atomic_load(word64(&reader->stream_holds[f / 64])) >> f % 64 & 1))
            continue;
        int64_t t = atomic_load_explicit((_Atomic int64_t *)&slot_words(s, f)->time_ns,
                                         memory_order_relaxed);
        if (*ret_oldest == 0 || t < *ret_oldest)
            *ret_oldest = t;
        n++;
    }
    return n;
}

/* Adds a reader that holds frames or, in a lossless stream, has not taken the oldest ones. Returns
 * whether it does. */
static bool add_reader(const struct shmview_stream *s, struct text *t, struct shmview_slot *reader,
                       bool names)
{
    char name[64];
    int64_t oldest;
    uint32_t stage = atomic_load(word(&reader->stream_stage));
    uint32_t held = count_held(s, reader, &oldest);
    uint64_t next = atomic_load(word64(&reader->stream_next)), lag = 0;
    if (is_lossless(s) && stage < s->plan.n_stages) {
        uint64_t last = atomic_load(word64(&s->stages[stage].words->published));
        lag = next <= last ? last - next + 1 : 0;
    }
    if (held == 0 && lag == 0)
        return false;
    if (!names)
        return true;
    blame_client(s, atomic_load(word(&reader->stream_user)), name, sizeof name);
    add(t, "%s%s", t->n ? "; " : "", name);
    if (held)
        add(t, " holds %u of %u slots, the oldest frame of %.3f s ago", held, s->plan.n_slots,
            (double)(now_ns() - oldest) / 1e9);
    if (lag)
        add(t, "%s has not taken %" PRIu64 " frames", held ? " and" : "", lag);
    return true;
}

/* How many slots living writers have loaned. */
static uint32_t count_loaned(const struct shmview_stream *s)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < s->plan.n_slots; f++) {
        uint32_t owner = atomic_load(word(&slot_words(s, f)->owner));
        n += owner && is_alive(stream_lock(s), owner);
    }
    return n;
}

int blame_loan(struct shmview_stream *s)
{
    struct text t = {.n = 0};
    uint32_t n = 0, loaned = count_loaned(s);
    for (uint32_t i = 0; i < readers_high(s); i++) {
        struct shmview_slot *reader = reader_at(s, i);
        if (reader)
            n += add_reader(s, &t, reader, n < NAMED);
    }
    if (n > NAMED)
        add(&t, "; %u more", n - NAMED);
    if (loaned)
        add(&t, "%s%u of %u slots are loaned", t.n ? "; " : "", loaned, s->plan.n_slots);
    return fail(SHMVIEW_ERR_TIMED_OUT, "no free slot of stream '%s' before the deadline: %s",
                s->segment->name, t.n ? t.bytes : "its readers have taken their frames just now");
}
