/* SPDX-License-Identifier: Apache-2.0 */
/* One wait for any of several streams, changes and phases. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "client/base/error.h"
#include "client/stream/stream.h"
#include "common/base/linux.h"

/* A park without futex_waitv: short at first, because nothing wakes it. */
#define BLIND_FIRST_NS 1000000
#define BLIND_LAST_NS  10000000

/* How often to look before parking. */
#define LOOKS 200

/* Prepares an entry. Returns 0 or an error. */
static int enter(const struct shmview_wait *e)
{
    bool is_frame = e->kind == SHMVIEW_WAIT_FRAME;
    if ((e->kind != SHMVIEW_WAIT_CHANGE && e->kind != SHMVIEW_WAIT_PHASE && !is_frame) ||
        (is_frame ? !e->stream : !e->segment))
        return fail(SHMVIEW_ERR_INVALID, "an entry of kind %u, or without its %s", e->kind,
                    is_frame ? "stream" : "segment");
    if (!is_frame)
        return lock_enter(lock_of(e->segment));
    return e->stream->me ? reader_enter(e->stream) : fail_no_lock(e->stream->segment);
}

static bool is_ready_now(const struct shmview_wait *e)
{
    if (e->kind == SHMVIEW_WAIT_FRAME)
        return reader_is_ready(e->stream);
    if (e->kind == SHMVIEW_WAIT_PHASE)
        return phase_generation(lock_of(e->segment)) != e->seen;
    return shmview_change(e->segment) != e->seen;
}

static struct lock *lock_of_entry(const struct shmview_wait *e)
{
    return e->kind == SHMVIEW_WAIT_FRAME ? stream_lock(e->stream) : lock_of(e->segment);
}

/* Returns 0, or the error of an entry that nothing may make ready: its attachment has ended, or
 * another thread has left the stage. */
static int check_entries(const struct shmview_wait *entries, size_t n)
{
    for (const struct shmview_wait *e = entries; e < entries + n; e++) {
        if (has_ended(lock_of_entry(e)))
            return fail_lost(lock_of_entry(e));
        if (e->kind == SHMVIEW_WAIT_FRAME && !atomic_load(&e->stream->reader.joined))
            return fail_left(e->stream);
    }
    return 0;
}

/* Returns the index of the first entry that is ready, or n. */
static size_t find_ready(const struct shmview_wait *entries, size_t n)
{
    size_t i = 0;
    while (i < n && !is_ready_now(&entries[i]))
        i++;
    return i;
}

/* Announces that a thread waits for the entry. Returns the word and its value in *ret. */
static void announce(const struct shmview_wait *e, struct futex_waitv *ret)
{
    struct shmview_control *c = e->segment ? lock_of(e->segment)->control : NULL;
    uint32_t *at, value;
    if (e->kind == SHMVIEW_WAIT_FRAME) {
        at = e->stream->stages[e->stream->stage].gate;
        value = gate_close(at, SHMVIEW_GATE_PARKED);
    } else if (e->kind == SHMVIEW_WAIT_PHASE) {
        at = phase_word(c);
        value = atomic_load(word(at));
    } else {
        at = &c->change_waits;
        value = gate_close(at, CHANGE_WAITED);
    }
    *ret = (struct futex_waitv){.val = value, .uaddr = (uintptr_t)at, .flags = FUTEX_32};
}

/* Parks on all words until one changes, at most until the deadline. */
static void park_on_all(struct futex_waitv *words, size_t n, int64_t until, int64_t *blind_ns)
{
    struct timespec t = {until / 1000000000, until % 1000000000};
    if (syscall(SYS_futex_waitv, words, (unsigned)n, 0, &t, CLOCK_MONOTONIC) >= 0 ||
        (errno != ENOSYS && errno != EPERM))
        return;
    NOT_CANCELLED;
    int64_t end = now_ns() + *blind_ns;
    if (end > until)
        end = until;
    t = (struct timespec){end / 1000000000, end % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    *blind_ns = *blind_ns * 2 < BLIND_LAST_NS ? *blind_ns * 2 : BLIND_LAST_NS;
}

static int wait_any(const struct shmview_wait *entries, size_t n, int64_t deadline, size_t *ret)
{
    struct futex_waitv words[2 * SHMVIEW_WAIT_MAX];
    int64_t blind_ns = BLIND_FIRST_NS;
    for (bool has_parked = false;; has_parked = true) {
        int r = check_entries(entries, n);
        if (r)
            return r;
        for (int i = 0; i < LOOKS; i++) {
            if ((*ret = find_ready(entries, n)) < n)
                return 0;
            if (deadline == 0 || !spins_allowed() || has_parked)
                break;
            relax();
        }
        if (has_passed(deadline, now_ns()))
            return fail(SHMVIEW_ERR_TIMED_OUT, "none of %zu entries before the deadline", n);
        r = has_parked ? wait_ask() : 0;
        if (r)
            return r;
        size_t n_words = 0;
        for (size_t i = 0; i < n; i++) {
            announce(&entries[i], &words[n_words++]);
            if (entries[i].kind == SHMVIEW_WAIT_FRAME) { /* the death of a writer ends it as well */
                const uint32_t *deaths = &stream_lock(entries[i].stream)->live->deaths;
                words[n_words++] = (struct futex_waitv){
                    .val = atomic_load(const_word(deaths)),
                    .uaddr = (uintptr_t)deaths,
                    .flags = FUTEX_32,
                };
            }
        }
        r = check_entries(entries, n); /* after `deaths` and the gates were read */
        if (r || (*ret = find_ready(entries, n)) < n)
            return r;
        int64_t until = now_ns() + WAIT_NS;
        park_on_all(words, n_words, deadline < until ? deadline : until, &blind_ns);
    }
}

int shmview_wait_any(const struct shmview_wait *entries, size_t n, int64_t deadline_ns,
                     size_t *ret_index)
{
    size_t index;
    if (n == 0 || n > SHMVIEW_WAIT_MAX)
        return fail(SHMVIEW_ERR_INVALID, "%zu entries, a wait has 1 to %d", n, SHMVIEW_WAIT_MAX);
    for (size_t i = 0; i < n; i++) {
        int r = enter(&entries[i]);
        if (r)
            return r;
    }
    int r = wait_any(entries, n, deadline_ns > 0 ? deadline_ns : 0, &index);
    if (r == 0)
        *ret_index = index;
    return r;
}
