/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the calls that run without the GIL, also in forked children. */
#include "core.h"

#include <shmview/wait.h>

unsigned n_forks;

/* The counts of which this thread is in a call. A signal handler that runs during a call may call
 * again, so there may be more of them than one call has. They are no list on the stacks of the
 * calls, because greenlets copy these. */
static __thread struct {
    Py_ssize_t *n_calls;
    unsigned *forks;
} mine[4 * SHMVIEW_WAIT_MAX];
static __thread unsigned n_mine;

static void count(Py_ssize_t *n_calls, unsigned *forks)
{
    if (UNLIKELY(*forks != n_forks)) {
        *forks = n_forks;
        *n_calls = 0;
    }
    COUNT_ADD(*n_calls, 1);
}

void count_begins(Py_ssize_t *n_calls, unsigned *forks)
{
    count(n_calls, forks);
    if (LIKELY(n_mine < Py_ARRAY_LENGTH(mine))) {
        mine[n_mine].n_calls = n_calls;
        mine[n_mine++].forks = forks;
    }
}

void count_ends(Py_ssize_t *n_calls, unsigned *forks)
{
    unsigned i = n_mine;
    while (i > 0 && mine[i - 1].n_calls != n_calls)
        i--;
    if (LIKELY(i > 0))
        mine[i - 1] = mine[--n_mine];
    else if (*forks != n_forks || COUNT(*n_calls) == 0)
        return; /* there was no room for it, and this process is a child that did not count it */
    COUNT_ADD(*n_calls, -1);
}

void count_fork(void)
{
    n_forks++;
    for (unsigned i = 0; i < n_mine; i++)
        count(mine[i].n_calls, mine[i].forks);
}
