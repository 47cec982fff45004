/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts that name the processes in the way of a loan. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/base/error.h"
#include "client/stream/stream.h"

/* A text of several processes. */
struct text {
    char bytes[ERROR_TEXT_BYTES - 128];
    size_t n;
    uint32_t n_named, n_more;
};

/* A text of one process. */
struct part {
    char bytes[224];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct part *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(p->bytes + p->n, sizeof p->bytes - p->n, format, ap);
    va_end(ap);
    if (n > 0)
        p->n = p->n + (size_t)n < sizeof p->bytes ? p->n + (size_t)n : sizeof p->bytes - 1;
}

/* Adds a part as a whole, or counts it if there is no room for it. */
static void add_part(struct text *t, const struct part *p)
{
    static const char between[] = "; ", more[] = "; 1023 more";
    size_t n = t->n ? sizeof between - 1 : 0;
    if (t->n_named == HOLDERS || t->n + n + p->n + sizeof more > sizeof t->bytes) {
        t->n_more++;
        return;
    }
    memcpy(t->bytes + t->n, between, n);
    memcpy(t->bytes + t->n + n, p->bytes, p->n + 1);
    t->n += n + p->n;
    t->n_named++;
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

/* --- Readers ------------------------------------------------------------- */

/* Adds how long the reader has held a frame. Each bound is rounded so that it stays one. */
static void add_held(struct part *p, const struct in_the_way *way)
{
    int64_t least = way->held_least_ns / 1000000, most = (way->held_most_ns + 999999) / 1000000;
    bool has_most = way->held_most_ns >= way->held_least_ns;
    if (least > 0 && has_most)
        add(p, " (one for %.3f to %.3f s)", (double)least / 1e3, (double)most / 1e3);
    else if (least > 0)
        add(p, " (one for at least %.3f s)", (double)least / 1e3);
    else if (has_most)
        add(p, " (one for at most %.3f s)", (double)most / 1e3);
}

/* Adds a reader that holds frames or, in a lossless stream, has not taken the oldest ones. */
static void add_reader(struct shmview_stream *s, struct text *t, struct shmview_slot *reader,
                       int64_t now)
{
    char name[64];
    uint64_t holds[HOLD_WORDS], lag = is_lossless(s) ? reader_lag(s, reader) : 0;
    uint32_t held = reader_holds(s, reader, holds), id = atomic_load(word(&reader->stream_user));
    struct in_the_way way;
    struct part p = {.n = 0};
    if (held == 0 && lag == 0)
        return;
    holders_measure(s, id, now, &way);
    blame_client(s, id, name, sizeof name);
    add(&p, "%s", name);
    if (held) {
        add(&p, " holds %u of %u slots", held, s->plan.n_slots);
        add_held(&p, &way);
    }
    if (lag) {
        int64_t still_ms = way.still_least_ns / 1000000;
        add(&p, "%s has not taken %" PRIu64 " frames", held ? " and" : "", lag);
        if (still_ms > 0)
            add(&p, " (it took none in the last %.3f s)", (double)still_ms / 1e3);
    }
    add_part(t, &p);
}

/* --- Writers ------------------------------------------------------------- */

/* Adds the living writers that have loaned slots, or keep published frames in them. A slot that was
 * discarded and loaned again looks like one that is loaned for long, so there are no times here. */
static void add_writers(const struct shmview_stream *s, struct text *t)
{
    char name[64];
    for (uint32_t f = 0; f < s->plan.n_slots; f++) {
        uint32_t owner = atomic_load(word(&slot_words(s, f)->owner)), n = 0;
        bool is_first = owner && is_alive(stream_lock(s), owner);
        for (uint32_t i = 0; i < s->plan.n_slots && is_first; i++) {
            bool is_same = atomic_load(word(&slot_words(s, i)->owner)) == owner;
            is_first = !is_same || i >= f;
            n += is_same;
        }
        if (!is_first)
            continue;
        struct part p = {.n = 0};
        blame_client(s, owner, name, sizeof name);
        add(&p, "%s has loaned or keeps %u of %u slots", name, n, s->plan.n_slots);
        add_part(t, &p);
    }
}

int blame_loan(struct shmview_stream *s)
{
    struct text t = {.n = 0};
    int64_t now = now_ns();
    for (uint32_t i = 0; i < readers_high(s); i++) {
        struct shmview_slot *reader = reader_at(s, i);
        if (reader)
            add_reader(s, &t, reader, now);
    }
    add_writers(s, &t);
    if (t.n_more)
        snprintf(t.bytes + t.n, sizeof t.bytes - t.n, "; %u more", t.n_more);
    return fail(SHMVIEW_ERR_TIMED_OUT, "no free slot of stream '%s' before the deadline: %s",
                s->segment->name, t.n ? t.bytes : "its readers have taken their frames just now");
}
