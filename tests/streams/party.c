/* SPDX-License-Identifier: Apache-2.0 */
/* Writers and readers. Every word of a frame is its number, so that a reader notices one that is
 * half written, or overwritten while it is held. The number has the process that wrote it and a
 * count, so that a reader notices a frame that is missing or out of order. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <shmview/stream.h>

#include "client/lock/steps.h"
#include "streams/world.h"

#define WORDS       64
#define PATIENCE_NS 60000000000
#define WRITERS_MAX 64

int me = -1;
uint64_t my_random = 1;

/* The library calls this at each step, because it is compiled with its steps here. */
void shmview_step(int step)
{
    if (me < 0 || world->period == 0)
        return;
    uint64_t r = draw(world->period);
    if (r == 0) {
        world->parties[me].last_step = step;
        kill(getpid(), SIGKILL);
        pause();
    }
    if (r < world->period / 50)
        sched_yield();
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void note_progress(void)
{
    atomic_store_explicit(&world->parties[me].progress, now(), memory_order_relaxed);
}

static int64_t soon(void)
{
    return shmview_deadline(PATIENCE_NS);
}

/* A call failed; that is a violation unless the run is over. */
static void failed(const char *what)
{
    if (!atomic_load(&world->over))
        violation("%s of party %d: %s", what, me, shmview_error_text());
}

/* --- Writers ------------------------------------------------------------- */

static uint64_t *words_of(const struct shmview_frame *frame, size_t *ret_n)
{
    struct shmview_view v;
    if (shmview_frame_view_at(frame, 0, &v)) {
        failed("a view");
        *ret_n = 0;
        return NULL;
    }
    *ret_n = (size_t)v.shape[0];
    return SHMVIEW_DATA(uint64_t, &v);
}

static void write_one(struct shmview_stream *stream, uint64_t number)
{
    struct shmview_frame frame;
    size_t n;
    if (shmview_stream_loan(stream, soon(), &frame)) {
        failed("a loan");
        return;
    }
    if (draw(8) == 0) { /* half filled, and given back */
        uint64_t *words = words_of(&frame, &n);
        for (size_t i = 0; i < n / 2; i++)
            words[i] = 666;
        shmview_frame_discard(&frame);
        if (shmview_stream_loan(stream, soon(), &frame)) {
            failed("a loan");
            return;
        }
    }
    shmview_frame_set_length(&frame, 0, 1 + draw(WORDS));
    uint64_t *words = words_of(&frame, &n);
    for (size_t i = 0; i < n; i++) {
        words[i] = number;
        if (i == n / 2)
            shmview_step(AT_STREAM_FILLED);
    }
    memcpy(frame.user, &number, sizeof number);
    frame.user_bytes = sizeof number;
    if (shmview_frame_publish(&frame))
        failed("a publication");
    if (world->plant && draw(20) == 0)
        words[n / 2] = 1;
    atomic_fetch_add(&world->parties[me].n, 1);
}

static void write_all(struct shmview_stream *stream)
{
    for (uint64_t n = 1; !atomic_load(&world->over); n++) {
        write_one(stream, (uint64_t)getpid() << 32 | n);
        note_progress();
    }
}

/* --- Readers ------------------------------------------------------------- */

/* What a reader has seen of each writer. */
static struct seen {
    uint32_t pid, count;
} seen[WRITERS_MAX];
static unsigned n_seen;

/* Returns what was seen of a writer; the place of the oldest one is used again. */
static struct seen *seen_of(uint32_t pid)
{
    for (unsigned i = 0; i < n_seen && i < WRITERS_MAX; i++)
        if (seen[i].pid == pid)
            return &seen[i];
    struct seen *s = &seen[n_seen++ % WRITERS_MAX];
    *s = (struct seen){.pid = pid};
    return s;
}

/* Checks that every word is the same number. Returns that. */
static uint64_t check_words(const struct shmview_frame *frame)
{
    size_t n;
    uint64_t number, *words = words_of(frame, &n);
    if (!words)
        return 0;
    memcpy(&number, frame->user, sizeof number);
    for (size_t i = 0; i < n; i++)
        if (words[i] != number && frame->user_bytes == sizeof number)
            violation("frame %" PRIu64 " of party %d has %" PRIx64 " beside %" PRIx64,
                      frame->sequence, me, words[i], number);
    return number;
}

/* Checks that no frame is missing before this one. */
static void check_order(const struct shmview_frame *frame, uint64_t *last, bool lossless)
{
    uint64_t number = check_words(frame);
    struct seen *s = seen_of((uint32_t)(number >> 32));
    uint32_t count = (uint32_t)number;
    if (*last && frame->sequence != *last + 1 + frame->missed)
        violation("frame %" PRIu64 " after %" PRIu64 ", and %" PRIu64 " missed", frame->sequence,
                  *last, frame->missed);
    if (lossless && frame->missed)
        violation("%" PRIu64 " frames of a lossless stream missed", frame->missed);
    if (count <= s->count)
        violation("frame %u of writer %u after %u", count, s->pid, s->count);
    if (lossless && s->count && count != s->count + 1 && !world->passes)
        violation("frames %u and %u of writer %u, none between", s->count, count, s->pid);
    s->count = count;
    *last = frame->sequence;
}

static int take(struct shmview_stream *stream, bool lossless, struct shmview_frame *ret)
{
    if (!lossless && draw(16) == 0)
        return shmview_stream_take_latest(stream, soon(), ret);
    return shmview_stream_take(stream, soon(), ret);
}

static void read_all(struct shmview_stream *stream, bool passes)
{
    bool lossless = world->mode == SHMVIEW_LOSSLESS;
    struct shmview_frame frame, held = {0};
    uint64_t last = 0;
    while (!atomic_load(&world->over)) {
        int r = take(stream, lossless, &frame);
        note_progress();
        if (r == SHMVIEW_WRITER_DIED)
            atomic_fetch_add(&world->n_writer_deaths_seen, 1);
        else if (r)
            failed("a take");
        if (r)
            continue;
        check_order(&frame, &last, lossless);
        r = passes ? shmview_frame_pass(&frame, 1, NULL) : 0;
        /* the one before has passed it on and died, and the history has it again */
        if (r && r != -SHMVIEW_ERR_EXISTS)
            failed("passing on");
        atomic_fetch_add(&world->parties[me].n, 1);
        if (draw(4) == 0 && !held.stream) { /* hold it for a while, and look at it again */
            held = frame;
            continue;
        }
        if (draw(8) == 0)
            sched_yield();
        check_words(&frame);
        shmview_frame_release(&frame);
        if (held.stream && draw(3) == 0) {
            check_words(&held);
            shmview_frame_release(&held);
            held.stream = NULL;
        }
    }
}

void party_run(int number)
{
    struct shmview_connection *connection;
    struct shmview_stream *stream;
    bool writes = number < (int)world->n_writers;
    bool passes = world->passes && number == (int)world->n_writers;
    my_random = (uint64_t)getpid() * 0x9e3779b97f4a7c15u + 1;
    if (shmview_connect(world->socket, 0, &connection)) {
        violation("a connection: %s", shmview_error_text());
        return;
    }
    me = number;
    const char *name = world->passes && !writes && !passes ? "s:1" : "s";
    if (shmview_stream_open(connection, name, writes || passes ? SHMVIEW_WRITE : SHMVIEW_READ,
                            &stream))
        failed("opening");
    else if (writes)
        write_all(stream);
    else
        read_all(stream, passes);
}
