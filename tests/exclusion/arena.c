/* SPDX-License-Identifier: Apache-2.0 */
#include "exclusion/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

struct arena *arena;

int arena_open(void)
{
    void *p = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    arena = p;
    return 0;
}

void arena_count(enum count what)
{
    atomic_fetch_add_explicit(&arena->count[what], 1, memory_order_relaxed);
}

void violation(const char *format, ...)
{
    va_list ap;
    if (atomic_fetch_add(&arena->n_violations, 1) == 0) {
        va_start(ap, format);
        vsnprintf(arena->first, sizeof arena->first, format, ap);
        va_end(ap);
    }
    atomic_store(&arena->over, true);
}

static const char *name_of(enum inside how)
{
    return how == INSIDE_EXCLUSIVE ? "exclusive" : "shared";
}

/* Notes that the thread is inside, and then looks at the notes of all others. All these accesses
 * have one total order. Therefore, of two threads that are inside at once, at least one sees the
 * other. */
void oracle_enter(unsigned segment, unsigned party, unsigned thread, enum inside how)
{
    atomic_store(&arena->inside[segment][party][thread], (uint8_t)how);
    for (unsigned p = 0; p < PARTIES; p++)
        for (unsigned t = 0; t < THREADS_MAX; t++) {
            enum inside other = atomic_load(&arena->inside[segment][p][t]);
            if ((p == party && t == thread) || other == INSIDE_NOT ||
                (other == INSIDE_SHARED && how == INSIDE_SHARED) || atomic_load(&arena->doomed[p]))
                continue;
            violation("segment %u: process %d (party %u.%u, %s) enters while process %d (party "
                      "%u.%u, %s) is inside",
                      segment, arena->pid[party], party, thread, name_of(how), arena->pid[p], p, t,
                      name_of(other));
        }
}

void oracle_leave(unsigned segment, unsigned party, unsigned thread)
{
    atomic_store(&arena->inside[segment][party][thread], INSIDE_NOT);
}

bool oracle_knows_dead(pid_t pid)
{
    uint32_t n = atomic_load(&arena->n_dead);
    for (uint32_t i = 0; i < n && i < DEAD_MAX; i++)
        if (atomic_load(&arena->dead[i]) == pid)
            return true;
    return n > DEAD_MAX;
}

void oracle_doom(unsigned party)
{
    pid_t pid = atomic_load(&arena->pid[party]);
    if (pid) {
        uint32_t n = atomic_load(&arena->n_dead);
        if (n < DEAD_MAX)
            atomic_store(&arena->dead[n], pid);
        atomic_store(&arena->n_dead, n + 1);
    }
    atomic_store(&arena->doomed[party], true);
}

void oracle_wipe(unsigned party)
{
    for (unsigned s = 0; s < SEGMENTS; s++)
        for (unsigned t = 0; t < THREADS_MAX; t++)
            atomic_store(&arena->inside[s][party][t], INSIDE_NOT);
    atomic_store(&arena->pid[party], 0);
    atomic_store(&arena->doomed[party], false);
}
