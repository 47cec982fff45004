/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "web/memory/guard.h"

#define PAUSE_NS     100000 /* before an optimistic read is repeated */
#define SLICE_BYTES  200
#define MOST_PARTIES 8

/* --- Opening ------------------------------------------------------------- */

/* Reads one bound of a slice, which may be missing. Returns false if it is no number. */
static bool read_bound(char **text, char end, int64_t *ret)
{
    char *p = *text, *after;
    *ret = SHMVIEW_OMIT;
    if (*p != end && *p != ':' && *p) {
        errno = 0;
        long long number = strtoll(p, &after, 10);
        if (after == p || errno)
            return false;
        *ret = number;
        p = after;
    }
    *text = p;
    return true;
}

/* Applies one item, "3" or "1:9:2", to dimension d. Returns 0 with *ret_kept set if the dimension
 * stays, LOOK_WRONG, or an error. */
static int apply_item(struct shmview_view *view, uint32_t d, char *item, bool *ret_kept)
{
    int64_t bounds[3] = {SHMVIEW_OMIT, SHMVIEW_OMIT, SHMVIEW_OMIT};
    size_t n = 0;
    while (n < 3) {
        if (!read_bound(&item, '\0', &bounds[n]))
            return LOOK_WRONG;
        n++;
        if (*item != ':')
            break;
        item++;
        if (n == 3)
            return LOOK_WRONG;
    }
    if (*item || (n == 1 && bounds[0] == SHMVIEW_OMIT) || (n == 3 && bounds[2] == 0))
        return LOOK_WRONG;
    *ret_kept = n > 1;
    return n == 1 ? shmview_view_index(view, d, bounds[0], view)
                  : shmview_view_slice(view, d, bounds[0], bounds[1], bounds[2], view);
}

int look_slice(struct shmview_view *view, const char *slice, char *error, size_t bytes)
{
    char copy[SLICE_BYTES], *rest = copy, *item;
    uint32_t d = 0;
    if (!slice || !slice[0])
        return 0;
    snprintf(copy, sizeof copy, "%s", slice);
    while ((item = strsep(&rest, ","))) {
        bool kept = false;
        int r = d < view->ndim ? apply_item(view, d, item, &kept) : LOOK_WRONG;
        if (r == LOOK_WRONG)
            snprintf(error, bytes,
                     "the slice '%.100s' does not fit a view of %u dimensions: write "
                     "it as in Python, '0,:,3:10'",
                     slice, view->ndim);
        if (r)
            return r;
        d += kept;
    }
    return 0;
}

static int select_field(struct shmview_view *view, const char *field)
{
    char copy[SLICE_BYTES], *rest = copy, *name;
    int r = 0;
    if (!field || !field[0])
        return 0;
    snprintf(copy, sizeof copy, "%s", field);
    while (r == 0 && (name = strsep(&rest, ".")))
        r = shmview_view_field(view, name, view);
    return r;
}

int look_open(struct backend *backend, struct shmview_connection *connection,
              const struct look_at *at, int access, struct look *ret)
{
    *ret = (struct look){.backend = backend, .takes_lock = at->takes_lock};
    int r = pool_take(backend->pool, connection, at->segment, access, &ret->held);
    if (r)
        return r;
    struct shmview_segment *segment = ret->held->segment;
    if (at->layout && at->view) {
        r = shmview_view_open(segment, at->layout, at->view, &ret->view);
    } else {
        const char *format = at->as ? at->as : "uint8";
        struct shmview_format parsed;
        r = shmview_format_parse(format, &parsed, NULL, 0);
        if (r == 0 && parsed.itemsize == 0)
            r = -SHMVIEW_ERR_ILL_SIZED;
        if (r == 0) {
            uint64_t size = shmview_size(segment);
            r = shmview_view_cast(segment, format, 0, size - size % parsed.itemsize, &ret->view);
        }
    }
    r = r ? r : select_field(&ret->view, at->field);
    r = r ? r : look_slice(&ret->view, at->slice, ret->error, sizeof ret->error);
    if (r == 0)
        ret->is_stale = shmview_view_is_stale(&ret->view) != 0;
    return r;
}

void look_close(struct look *look)
{
    if (look->held && look->is_gone)
        pool_drop(look->backend->pool, look->held);
    else if (look->held)
        pool_give(look->backend->pool, look->held);
    look->held = NULL;
}

/* --- Reading ------------------------------------------------------------- */

static void worsen(struct look *look, enum look_state state)
{
    if (state > look->state)
        look->state = state;
}

/* Notes the owner that died inside; this thread holds the lock exclusively because of that. */
static void note_death(struct look *look)
{
    struct shmview_death death;
    worsen(look, LOOK_HALF);
    if (shmview_owner_died(look->held->segment, &death) == 0) {
        look->pid = death.pid;
        memcpy(look->command, death.command, 16);
    }
}

/* Finds out who died inside: only an owner of the lock learns that. It is given back at once, and
 * the next owner gets the same report. */
static void ask_for_death(struct look *look)
{
    struct shmview_segment *segment = look->held->segment;
    int taken = shmview_trylock_shared(segment);
    if (taken == SHMVIEW_OWNER_DIED) {
        note_death(look);
        shmview_unlock_not_repaired(segment);
    } else if (taken == 0) {
        shmview_unlock(segment);
    }
}

/* Finds out who is inside, or has died inside. */
static void blame(struct look *look)
{
    struct shmview_lock_status status;
    struct shmview_lock_party parties[MOST_PARTIES];
    if (shmview_lock_query(look->held->segment, &status, parties, MOST_PARTIES))
        return;
    bool is_dead = status.owner_is_dead || (status.is_dirty && !status.is_held);
    worsen(look, is_dead ? LOOK_HALF : LOOK_WRITING);
    for (size_t i = 0; i < status.n_parties && i < MOST_PARTIES; i++) {
        if (parties[i].role != SHMVIEW_HOLDS)
            continue;
        look->pid = parties[i].pid;
        memcpy(look->command, parties[i].command, 16);
    }
    if (is_dead)
        ask_for_death(look);
}

static int run_copy(struct look *look, int (*copy)(void *arg), void *arg)
{
    int r;
    if (guard_run(copy, arg, &r))
        return r;
    look->is_gone = true;
    return -SHMVIEW_ERR_LOST;
}

/* Reads under the shared lock. Returns false if it cannot be had in time, or not at all. */
static bool read_locked(struct look *look, int (*copy)(void *arg), void *arg, int *ret)
{
    struct shmview_segment *segment = look->held->segment;
    int r = shmview_lock_shared_until(segment, shmview_deadline(LOOK_WAIT_NS));
    if (r == -SHMVIEW_ERR_LOST)
        look->is_gone = true;
    if (r < 0)
        return false;
    if (r == SHMVIEW_OWNER_DIED)
        note_death(look);
    *ret = run_copy(look, copy, arg);
    if (r == SHMVIEW_OWNER_DIED)
        shmview_unlock_not_repaired(segment);
    else
        shmview_unlock(segment);
    return true;
}

int look_read(struct look *look, int (*copy)(void *arg), void *arg)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct shmview_segment *segment = look->held->segment;
    int r;
    if (look->takes_lock && look->held->access != SHMVIEW_PEEK && read_locked(look, copy, arg, &r))
        return r;
    for (int i = 0; i < LOOK_TRIES; i++) {
        uint64_t version;
        int begun = shmview_read_begin(segment, &version);
        if (begun == -SHMVIEW_ERR_NO_LOCK) {
            worsen(look, LOOK_UNCHECKED);
            return run_copy(look, copy, arg);
        }
        if (begun == -SHMVIEW_ERR_BUSY) {
            nanosleep(&pause, NULL);
            continue;
        }
        if (begun) {
            look->is_gone = true;
            return begun;
        }
        r = run_copy(look, copy, arg);
        if (r || shmview_read_validate(segment, version))
            return r;
    }
    r = run_copy(look, copy, arg);
    worsen(look, LOOK_TORN);
    blame(look);
    return r;
}

const char *look_state_name(enum look_state state)
{
    static const char *const names[] = {"clean", "unchecked", "torn", "writing", "half written"};
    return names[state];
}
