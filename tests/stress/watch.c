/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/watch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "client/lock/word.h"
#include "common/base/util.h"
#include "stress/arena.h"

#define STALLS_SAID 10
#define STALL_NS    1000000000
#define STARVE_NS   5000000000 /* others get the lock again and again, this thread does not */
/* If the watch itself could not run for so long, a long wait is no evidence of a stall. */
#define STANDSTILL_NS 300000000

static void describe(const struct lock *l)
{
    uint32_t word = atomic_load((_Atomic uint32_t *)&l->control->lock);
    uint32_t slot = word & SHMVIEW_SLOT_MASK;
    fprintf(stderr,
            "stress:   word %08x: slot %u, generation %u; inside %016" PRIx64
            ", gate %u, drain %u, deaths %u, high %u\n",
            word, slot, word >> SHMVIEW_SLOT_BITS & SHMVIEW_GENERATION_MASK, l->control->inside,
            l->control->reader_gate, l->control->drain, l->live->deaths, l->live->high);
    for (uint32_t i = 0; i < l->live->high && i < SHMVIEW_SLOTS_MAX; i++) {
        const struct shmview_slot *at = slot_at(l, i);
        if (at->readers & SHMVIEW_READER_COUNT_MASK || i == slot)
            fprintf(stderr, "stress:   slot %u: generation %u lives; readers %u of generation %u\n",
                    i, l->live->generation[i], at->readers & SHMVIEW_READER_COUNT_MASK,
                    at->readers >> SHMVIEW_READER_COUNT_BITS);
    }
}

void watch_tell(const struct shmview_segment *segment, const char *what)
{
    if (atomic_fetch_add(&arena->stalls, 1) >= STALLS_SAID)
        return;
    fprintf(stderr, "stress: stall: %s\n", what);
    describe(&segment->lock);
}

static void stall(struct party *party, int thread, int64_t waited,
                  const struct shmview_segment *segment)
{
    char what[100];
    pid_t pid;
    snprintf(what, sizeof what, "pid %d thread %d waits for %.2f s, last at %s", party_pid(party),
             thread, (double)waited / 1e9, place_name(atomic_load(&party->actors[thread].at)));
    watch_tell(segment, what);
    pid = party_doom(party);
    if (pid)
        kill(pid, SIGKILL);
}

static bool is_stall(const struct watch *watch, int64_t waited, int64_t now)
{
    if (waited < STALL_NS)
        return false;
    return atomic_load(&arena->quiet) || now - watch->advanced > STALL_NS || waited > STARVE_NS;
}

void watch_look(struct watch *watch, const struct shmview_segment *segment)
{
    int64_t now = now_ns();
    uint64_t taken = arena_count(COUNT_EXCLUSIVE) + arena_count(COUNT_SHARED);
    if (now - watch->looked > STANDSTILL_NS)
        watch->fresh = now;
    if (taken != watch->taken || watch->fresh == now)
        watch->advanced = now;
    watch->taken = taken;
    watch->looked = now;
    for (int i = 0; i < PARTIES_MAX; i++) {
        struct party *p = &arena->parties[i];
        int64_t floor = atomic_load(&p->awake_since);
        if (party_state(p) != PARTY_LIVING || p->stopped)
            continue;
        if (floor < watch->fresh)
            floor = watch->fresh;
        for (int t = 0; t < THREADS_MAX; t++) {
            int64_t since = atomic_load(&p->actors[t].waits_since);
            int64_t waited = now - (since < floor ? floor : since);
            if (since && is_stall(watch, waited, now))
                stall(p, t, waited, segment);
        }
    }
}

bool watch_all_idle(void)
{
    for (int i = 0; i < PARTIES_MAX; i++)
        for (int t = 0; t < THREADS_MAX; t++)
            if (party_state(&arena->parties[i]) == PARTY_LIVING &&
                atomic_load(&arena->parties[i].actors[t].acting))
                return false;
    return true;
}
