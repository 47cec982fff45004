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

static int gone(struct look *look)
{
    look->is_gone = true;
    snprintf(look->error, sizeof look->error, "the memory is gone: a client has truncated it");
    return -SHMVIEW_ERR_LOST;
}

int look_guard(struct look *look, int (*f)(void *arg), void *arg)
{
    int r;
    if (guard_run(f, arg, &r))
        return r;
    return gone(look);
}

/* --- Opening ------------------------------------------------------------- */

/* Reads one bound of a slice, which may be missing. Returns false if it is no number. */
static bool read_bound(char **text, int64_t *ret)
{
    char *p = *text, *after;
    *ret = SHMVIEW_OMIT;
    if (*p && *p != ':') {
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
        if (!read_bound(&item, &bounds[n]))
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
    if (strlen(slice) >= sizeof copy) {
        snprintf(error, bytes, "the slice has more than %d bytes", SLICE_BYTES - 1);
        return LOOK_WRONG;
    }
    strcpy(copy, slice);
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

static int select_field(struct look *look, const char *field)
{
    char copy[SLICE_BYTES], *rest = copy, *name;
    int r = 0;
    if (!field || !field[0])
        return 0;
    if (strlen(field) >= sizeof copy) {
        snprintf(look->error, sizeof look->error, "the field has more than %d bytes",
                 SLICE_BYTES - 1);
        return LOOK_WRONG;
    }
    strcpy(copy, field);
    while (r == 0 && (name = strsep(&rest, ".")))
        r = shmview_view_field(&look->view, name, &look->view);
    return r;
}

/* Reads words of the segment, which a client can truncate. */
static int read_words(void *arg)
{
    struct look *look = arg;
    look->is_stream = newest_is_stream(look->held->segment);
    look->is_stale = shmview_view_is_stale(&look->view) != 0;
    look->change = shmview_change(look->held->segment);
    return 0;
}

/* Makes the view that of a frame. */
struct framing {
    struct look *look;
    const char *view;
    bool is_intact;
};

static int view_frame(void *arg)
{
    struct framing *f = arg;
    int r = shmview_frame_view(&f->look->frame, f->view, &f->look->view);
    f->is_intact = shmview_frame_is_intact(&f->look->frame) != 0;
    return r;
}

/* Opens the view of the newest frame of a stream. Its length is read, so that this is repeated if
 * the frame is overwritten at that moment. */
static int open_frame(struct look *look, struct shmview_connection *connection, const char *view)
{
    struct framing f = {.look = look, .view = view};
    struct held *held = look->held;
    int r = 0;
    for (int i = 0; i < LOOK_TRIES && !f.is_intact; i++) {
        r = newest_take(&held->newest, connection, held->name, held->id, &look->frame);
        if (r == NEWEST_GONE)
            return gone(look);
        if (r == NEWEST_OTHER) {
            look->is_gone = true;
            snprintf(look->error, sizeof look->error, "another segment has got the name");
            return -SHMVIEW_ERR_LOST;
        }
        if (r == -SHMVIEW_ERR_TIMED_OUT) {
            snprintf(look->error, sizeof look->error, "stream '%.128s' has no frame", held->name);
            return -SHMVIEW_ERR_NOT_FOUND;
        }
        r = r ? r : look_guard(look, view_frame, &f);
        if (look->is_gone || !look->frame.stream)
            return r;
    }
    return r;
}

/* Looks whether the segment is a stream, and then opens its frame, or refuses. */
static int open_stream(struct look *look, struct shmview_connection *connection,
                       const struct look_at *at, int access)
{
    int r = look_guard(look, read_words, look);
    if (r || !look->is_stream)
        return r;
    if (access == SHMVIEW_WRITE) {
        snprintf(look->error, sizeof look->error,
                 "'%.128s' is a stream, and its readers must not see half of a change",
                 look->held->name);
        return -SHMVIEW_ERR_READ_ONLY;
    }
    if (at->layout && at->view && strcmp(at->layout, STREAM_LAYOUT) == 0)
        return open_frame(look, connection, at->view);
    return 0;
}

int look_open(struct backend *backend, struct shmview_connection *connection,
              const struct look_at *at, int access, struct look *ret)
{
    *ret = (struct look){.backend = backend, .takes_lock = at->takes_lock};
    int r = pool_take(backend->pool, connection, at->segment, access, &ret->held);
    if (r == POOL_FULL) {
        snprintf(ret->error, sizeof ret->error,
                 "pages look at %d segments already: close one, or wait a few seconds", POOL_MOST);
        return -SHMVIEW_ERR_LIMIT;
    }
    if (r)
        return r;
    struct shmview_segment *segment = ret->held->segment;
    if (at->layout && at->view) {
        r = shmview_view_open(segment, at->layout, at->view, &ret->view);
    } else {
        const char *format = at->as ? at->as : "uint8";
        struct shmview_format parsed;
        r = shmview_format_parse(format, &parsed, NULL, 0);
        if (r == 0 && parsed.itemsize == 0) {
            snprintf(ret->error, sizeof ret->error, "elements \"%.60s\" have no bytes", format);
            r = LOOK_WRONG;
        }
        if (r == 0) {
            uint64_t size = shmview_size(segment);
            r = shmview_view_cast(segment, format, 0, size - size % parsed.itemsize, &ret->view);
        }
    }
    r = r ? r : open_stream(ret, connection, at, access);
    r = r ? r : select_field(ret, at->field);
    return r ? r : look_slice(&ret->view, at->slice, ret->error, sizeof ret->error);
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
    *ret = look_guard(look, copy, arg);
    if (r == SHMVIEW_OWNER_DIED)
        shmview_unlock_not_repaired(segment);
    else
        shmview_unlock(segment);
    return true;
}

/* An optimistic read. */
struct attempt {
    struct shmview_segment *segment; /* or a frame of a stream */
    const struct shmview_frame *frame;
    int (*copy)(void *arg);
    void *arg;
    int begun; /* result of shmview_read_begin() */
    bool is_valid;
};

static int attempt(void *arg)
{
    struct attempt *a = arg;
    uint64_t version;
    a->begun = shmview_read_begin(a->segment, &version);
    if (a->begun)
        return 0;
    int r = a->copy(a->arg);
    a->is_valid = shmview_read_validate(a->segment, version) != 0;
    return r;
}

/* A read of a stream, of which no lock keeps the writers away. */
static int attempt_frame(void *arg)
{
    struct attempt *a = arg;
    int r = a->copy(a->arg);
    a->is_valid = shmview_frame_is_intact(a->frame) != 0;
    return r;
}

static int read_stream(struct look *look, int (*copy)(void *arg), void *arg)
{
    struct attempt a = {.frame = &look->frame, .copy = copy, .arg = arg};
    if (!look->frame.stream) {
        worsen(look, LOOK_UNCHECKED);
        return look_guard(look, copy, arg);
    }
    int r = look_guard(look, attempt_frame, &a);
    if (r == 0 && !a.is_valid)
        worsen(look, LOOK_TORN);
    return r;
}

int look_read(struct look *look, int (*copy)(void *arg), void *arg)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int r;
    if (look->is_stream)
        return read_stream(look, copy, arg);
    if (look->takes_lock && look->held->access != SHMVIEW_PEEK && read_locked(look, copy, arg, &r))
        return r;
    bool is_patient = look->n_failed < LOOK_FAILED;
    for (int i = 0; i < (is_patient ? LOOK_TRIES : 1); i++) {
        struct attempt a = {.segment = look->held->segment, .copy = copy, .arg = arg};
        r = look_guard(look, attempt, &a);
        if (r || a.is_valid)
            return r;
        if (a.begun == -SHMVIEW_ERR_NO_LOCK) {
            worsen(look, LOOK_UNCHECKED);
            return look_guard(look, copy, arg);
        }
        look->n_failed++;
        if (a.begun == -SHMVIEW_ERR_BUSY) {
            if (is_patient)
                nanosleep(&pause, NULL);
        } else if (a.begun) {
            look->is_gone = true;
            return a.begun;
        }
    }
    r = look_guard(look, copy, arg);
    if (r)
        return r;
    worsen(look, LOOK_TORN);
    if (is_patient || !look->pid)
        blame(look);
    return r;
}

const char *look_state_name(enum look_state state)
{
    static const char *const names[] = {"clean", "unchecked", "torn", "writing", "half written"};
    return names[state];
}
