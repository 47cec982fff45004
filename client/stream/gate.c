/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: waits for a frame or a slot, and wakes those who wait. */
#include <limits.h>
#include <sched.h>

#include "client/base/error.h"
#include "client/link/connection.h"
#include "client/stream/stream.h"

/* A thread that waits for a client reports it to the daemon, which then looks whether that process
 * is being ended (daemon/clients/exiting.h): first after this time, and then ever more rarely. */
#define REPORT_FIRST_NS 250000

void claim_slowly(_Atomic uint32_t *claim)
{
    int tries = 0;
    while (atomic_exchange_explicit(claim, 1, memory_order_acquire)) {
        if (++tries % 64)
            relax();
        else
            sched_yield();
    }
}

uint32_t gate_close(uint32_t *gate, uint32_t bit)
{
    uint32_t v = atomic_load(word(gate));
    while (!(v & bit))
        if (swap(gate, &v, v | bit))
            return v | bit;
    return v;
}

/* Opens a gate, and wakes those who are parked at it. Returns the bits that were set. */
static uint32_t open_word(uint32_t *gate)
{
    uint32_t v = atomic_load(word(gate)), bits;
    do {
        bits = v & (SHMVIEW_GATE_PARKED | SHMVIEW_GATE_WATCHED);
        if (!bits)
            return 0;
    } while (!swap(gate, &v, v - bits + SHMVIEW_GATE_OPENED));
    STEP(AT_STREAM_OPENED);
    if (bits & SHMVIEW_GATE_PARKED)
        wake(gate, INT_MAX);
    return bits;
}

/* Rings for event loops, if one of them waits at a gate with these bits. */
static void ring(struct shmview_stream *s, uint32_t bits)
{
    const struct lock *l = stream_lock(s);
    if (bits & SHMVIEW_GATE_WATCHED && atomic_load(const_word(&l->live->watches))) {
        NOT_CANCELLED;
        connection_ring(s->segment->connection, l->attachment);
    }
}

__attribute__((noinline)) void gate_open_slowly(struct shmview_stream *s, uint32_t *gate)
{
    ring(s, open_word(gate));
}

__attribute__((noinline)) void gates_open_slowly(struct shmview_stream *s, uint32_t stage)
{
    ring(s, open_word(s->stages[stage].gate) | open_word(&stream_lock(s)->control->stream_writers));
}

/* Makes attempts for as long as spinning has helped in earlier waits (common/base/spin.h). */
static int spin_at(struct shmview_stream *s, _Atomic(struct spin) *experience, int64_t deadline,
                   stream_attempt *attempt, void *arg)
{
    struct spin spin = atomic_load_explicit(experience, memory_order_relaxed);
    if (!spins_allowed())
        return NOTHING;
    uint32_t ns = spin_begin(&spin);
    int64_t began = now_ns(), now = began, until = began + ns;
    if (deadline < until)
        until = deadline;
    unsigned looks = spin_looks(&spin, began), n_yields = 0;
    int r = NOTHING;
    for (unsigned n = looks; ns && r == NOTHING && now < until; now = now_ns()) {
        for (unsigned i = 0; r == NOTHING && i < n; i++) {
            relax();
            r = attempt(s, arg);
        }
        if (r == NOTHING && spin.looks) {
            sched_yield();
            n_yields++;
        }
        if (n < SPIN_LOOKS_MOST)
            n *= 2;
    }
    if (r == NOTHING) {
        spin_missed(&spin, ns);
    } else {
        spin_yielded(&spin, looks, n_yields);
        spin_hit(&spin, ns, now - began);
    }
    atomic_store_explicit(experience, spin, memory_order_relaxed);
    return r;
}

/* Reports the client for which this thread waits, at intervals that double. */
static void report(struct shmview_stream *s, uint32_t holder, int64_t began, int64_t *next)
{
    const struct lock *l = stream_lock(s);
    int64_t now = now_ns();
    if (!holder || now < *next)
        return;
    l->report_wait(l, holder);
    *next = now + (now - began < WAIT_NS ? now - began : WAIT_NS);
}

int gate_wait(struct shmview_stream *s, uint32_t *gate, _Atomic(struct spin) *spin,
              int64_t deadline, const _Atomic uint32_t *in_the_way, stream_attempt *attempt,
              void *arg)
{
    struct lock *l = stream_lock(s);
    bool is_watched = atomic_load_explicit(&s->is_watched, memory_order_relaxed);
    int64_t end = deadline > 0 ? deadline : 0;
    if (!end && !is_watched)
        return -SHMVIEW_ERR_TIMED_OUT;
    int r = end ? spin_at(s, spin, end, attempt, arg) : NOTHING;
    if (r != NOTHING)
        return r;
    int64_t began = now_ns(), next_report = began + REPORT_FIRST_NS;
    for (bool has_parked = false;; has_parked = true) {
        int64_t now = now_ns();
        bool is_over = has_passed(end, now);
        uint32_t bit = is_over ? SHMVIEW_GATE_WATCHED : SHMVIEW_GATE_PARKED, v = 0;
        if (!is_over || is_watched)
            v = gate_close(gate, bit);
        STEP(AT_STREAM_CLOSED);
        uint32_t deaths = atomic_load(const_word(&l->live->deaths));
        r = attempt(s, arg);
        if (r != NOTHING)
            return r;
        if (has_ended(l)) /* the slot may be this client's still: see lock_lose() */
            return fail_lost(l);
        if (in_the_way)
            holders_note(s, now);
        if (is_over)
            return -SHMVIEW_ERR_TIMED_OUT;
        if (has_parked && (r = wait_ask()))
            return r;
        uint32_t holder = in_the_way ? atomic_load_explicit(in_the_way, memory_order_relaxed) : 0;
        report(s, holder, began, &next_report);
        int64_t until = holder && next_report < end ? next_report : end;
        park(l, gate, v, &deaths, until);
    }
}
