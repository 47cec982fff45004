/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/util.h"

/* So many violations are printed; further ones are only counted. */
#define REPORTS_SAID 20

struct arena *arena;
__thread struct me me;

static const struct {
    const char *name, *text;
} places[N_PLACES] = {
#define X(name, where) [AT_##name] = {#name, where},
    STEP_LIST(X) PLACE_LIST(X)
#undef X
};

const char *place_name(int place)
{
    return places[place].name;
}

const char *place_text(int place)
{
    return places[place].text;
}

int arena_open(uint64_t seed, int threads)
{
    void *p = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    arena = p;
    arena->supervisor = getpid();
    arena->seed = seed;
    arena->threads = threads;
    return 0;
}

/* --- Parties ------------------------------------------------------------- */

static uint64_t state_of(pid_t pid, uint32_t incarnation, enum party_state state)
{
    return (uint64_t)pid << 40 | (uint64_t)incarnation << 8 | state;
}

static uint32_t incarnation_of(uint64_t state)
{
    return (uint32_t)(state >> 8);
}

struct party *party_reserve(unsigned from, unsigned to, uint64_t *ret_reservation)
{
    uint32_t incarnation = atomic_fetch_add(&arena->incarnations, 1) + 1;
    uint64_t reserved = state_of(getpid(), incarnation, PARTY_RESERVED);
    for (unsigned i = from; i < to; i++) {
        struct party *p = &arena->parties[i];
        uint64_t free = atomic_load(&p->state);
        if ((free & 0xff) != PARTY_FREE ||
            !atomic_compare_exchange_strong(&p->state, &free, reserved))
            continue;
        for (int t = 0; t < THREADS_MAX; t++) {
            atomic_store(&p->actors[t].waits_since, 0);
            atomic_store(&p->actors[t].acting, false);
            atomic_store(&p->actors[t].holds, false);
        }
        atomic_store(&p->awake_since, 0);
        atomic_store(&arena->killed_ns[incarnation % INCARNATIONS_MAX], 0);
        p->stopped = false;
        *ret_reservation = reserved;
        return p;
    }
    return NULL;
}

void party_unreserve(struct party *party, uint64_t reservation)
{
    atomic_compare_exchange_strong(&party->state, &reservation, PARTY_FREE);
}

bool party_begin(struct party *party, uint64_t reservation)
{
    uint64_t living = state_of(getpid(), incarnation_of(reservation), PARTY_LIVING);
    return atomic_compare_exchange_strong(&party->state, &reservation, living);
}

pid_t party_doom(struct party *party)
{
    uint64_t state = atomic_load(&party->state);
    _Atomic int64_t *killed = &arena->killed_ns[incarnation_of(state) % INCARNATIONS_MAX];
    if ((state & 0xff) != PARTY_LIVING ||
        !atomic_compare_exchange_strong(&party->state, &state,
                                        (state & ~(uint64_t)0xff) | PARTY_DOOMED))
        return 0;
    atomic_store(killed, now_ns());
    return (pid_t)(state >> 40);
}

bool party_end(pid_t pid)
{
    bool found = false;
    for (int i = 0; i < PARTIES_MAX; i++) {
        struct party *p = &arena->parties[i];
        uint64_t state = atomic_load(&p->state);
        if ((state & 0xff) == PARTY_FREE || (pid_t)(state >> 40) != pid)
            continue;
        found |= (state & 0xff) != PARTY_RESERVED;
        /* a child of that process may begin in this party now: then it is living and stays */
        atomic_compare_exchange_strong(&p->state, &state, PARTY_FREE);
    }
    return found;
}

/* --- Me ------------------------------------------------------------------ */

void me_become(struct party *party, int index)
{
    me = (struct me){
        .party = party,
        .actor = &party->actors[index],
        .incarnation = incarnation_of(atomic_load(&party->state)),
        .index = index,
        .patience = -1,
        .slow = -1,
    };
    me.random = (arena->seed + me.incarnation) * 0x9e3779b97f4a7c15u ^ (uint64_t)(index + 1);
}

uint32_t me_random(void)
{
    me.random ^= me.random << 13;
    me.random ^= me.random >> 7;
    me.random ^= me.random << 17;
    return (uint32_t)(me.random >> 16);
}

bool me_chance(uint32_t n)
{
    return me_random() % n == 0;
}

/* Only its own thread writes an actor, so no locked instruction is needed. */
void me_count(enum count what)
{
    _Atomic uint64_t *n = &me.actor->count[what];
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

uint64_t me_token(void)
{
    return (uint64_t)me.incarnation << 8 | (unsigned)(me.index + 1);
}

uint32_t token_incarnation(uint64_t token)
{
    return (uint32_t)(token >> 8);
}

/* --- What went wrong ----------------------------------------------------- */

void report(enum violation what, const char *format, ...)
{
    static const char *const texts[N_VIOLATIONS] = {
#define X(name, text) text,
        VIOLATION_LIST(X)
#undef X
    };
    char text[400];
    va_list ap;
    atomic_fetch_add(&arena->violations[what], 1);
    if (arena_violations() > REPORTS_SAID)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "stress: violation: %s: pid %d thread %d%s%s: %s\n", texts[what],
            getpid(), me.index, me.party ? " at " : "",
            me.party ? place_name(atomic_load(&me.actor->at)) : "", text);
}

uint64_t arena_count(enum count what)
{
    uint64_t n = 0;
    for (int i = 0; i < PARTIES_MAX; i++)
        for (int t = 0; t < THREADS_MAX; t++)
            n += atomic_load_explicit(&arena->parties[i].actors[t].count[what],
                                      memory_order_relaxed);
    return n;
}

uint64_t arena_reached(int place)
{
    uint64_t n = 0;
    for (int i = 0; i < PARTIES_MAX; i++)
        for (int t = 0; t < THREADS_MAX; t++)
            n += atomic_load_explicit(&arena->parties[i].actors[t].reached[place],
                                      memory_order_relaxed);
    return n;
}

uint64_t arena_violations(void)
{
    uint64_t n = 0;
    for (int i = 0; i < N_VIOLATIONS; i++)
        n += atomic_load(&arena->violations[i]);
    return n;
}
