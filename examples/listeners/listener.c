/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/shmview.h>
#include <shmview/stream.h>
#include <sndfile.h>

#define PATIENCE_NS INT64_C(10000000000)

/* --- The process of a listener ------------------------------------------- */

/* The block that it holds, and the sum of its samples when it was taken. */
struct held {
    struct shmview_frame frame;
    struct shmview_view samples;
    int64_t sum;
};

static void must(const struct listener *me, int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s: %s", me->name, what, shmview_error_text());
}

static void tell(const struct listener *me, const struct answer *answer)
{
    if (write(me->fd, answer, sizeof *answer) != (ssize_t)sizeof *answer)
        err(1, "%s", me->name);
}

static int64_t sum_of(const struct shmview_view *samples)
{
    int64_t sum = 0;
    for (ptrdiff_t i = 0; i < samples->shape[0]; i++)
        for (ptrdiff_t c = 0; c < samples->shape[1]; c++)
            sum += SHMVIEW_AT2(int16_t, samples, i, c);
    return sum;
}

static int32_t peak_of(const struct shmview_view *samples)
{
    int32_t peak = 0;
    for (ptrdiff_t i = 0; i < samples->shape[0]; i++)
        for (ptrdiff_t c = 0; c < samples->shape[1]; c++) {
            int32_t size = abs(SHMVIEW_AT2(int16_t, samples, i, c));
            peak = size > peak ? size : peak;
        }
    return peak;
}

/* Gives the block back, in which nothing has changed however long it was held. */
static void give_back(const struct listener *me, struct held *held)
{
    if (held->frame.stream && sum_of(&held->samples) != held->sum)
        errx(1, "%s: block %llu was overwritten", me->name,
             (unsigned long long)held->frame.sequence);
    shmview_frame_release(&held->frame);
}

/* Takes a block. Returns 0 if the stream has ended. */
static int take(const struct listener *me, struct shmview_stream *stream, struct held *held)
{
    int64_t deadline = shmview_deadline(PATIENCE_NS);
    int result = me->output ? shmview_stream_take(stream, deadline, &held->frame)
                            : shmview_stream_take_latest(stream, deadline, &held->frame);
    must(me, result, "take");
    if (result == SHMVIEW_WRITER_DIED)
        errx(1, "%s: the writer has died", me->name);
    if (result == SHMVIEW_STREAM_ENDED)
        return 0;
    must(me, shmview_frame_view(&held->frame, "samples", &held->samples), "view");
    held->sum = sum_of(&held->samples);
    return 1;
}

static SNDFILE *open_output(const struct listener *me)
{
    SF_INFO info = {.samplerate = me->rate,
                    .channels = me->channels,
                    .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    SNDFILE *file = sf_open(me->output, SFM_WRITE, &info);
    if (!file)
        errx(1, "%s: cannot be written: %s", me->output, sf_strerror(NULL));
    return file;
}

/* libsndfile reads the samples where the writer has put them. */
static void record(const struct listener *me, SNDFILE *file, const struct held *held)
{
    const struct position *position = (const struct position *)held->frame.user;
    if (position->first != (uint64_t)sf_seek(file, 0, SEEK_CUR))
        errx(1, "%s: sample %llu is not the next one", me->output,
             (unsigned long long)position->first);
    const struct shmview_view *samples = &held->samples;
    sf_count_t n = samples->shape[0];
    if (sf_writef_short(file, SHMVIEW_DATA(const int16_t, samples), n) != n)
        errx(1, "%s: cannot be written: %s", me->output, sf_strerror(file));
}

static void listen_to(const struct listener *me, struct shmview_stream *stream)
{
    SNDFILE *file = me->output ? open_output(me) : NULL;
    struct held held = {0};
    struct answer answer = {0};
    char turn;
    tell(me, &answer); /* it has joined */
    while (read(me->fd, &turn, 1) == 1) {
        give_back(me, &held);
        answer = (struct answer){0};
        if (take(me, stream, &held)) {
            answer.sequence = held.frame.sequence;
            answer.missed = held.frame.missed;
            answer.peak = peak_of(&held.samples);
            if (file)
                record(me, file, &held);
        } else if (file) {
            sf_close(file);
            file = NULL;
        }
        tell(me, &answer);
        if (answer.sequence == 0)
            break;
    }
    must(me, shmview_stream_close(stream), "close");
}

static void run(const struct listener *me, const char *name)
{
    struct shmview_connection *connection;
    struct shmview_stream *stream;
    must(me, shmview_connect(NULL, 0, &connection), "connect");
    must(me, shmview_stream_open(connection, name, SHMVIEW_READ, &stream), "open");
    must(me, shmview_stream_join(stream), "join");
    listen_to(me, stream);
    must(me, shmview_disconnect(connection), "disconnect");
}

/* --- The parent ---------------------------------------------------------- */

static struct answer hear(struct listener *listener)
{
    struct answer answer;
    if (read(listener->fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
        errx(1, "the %s has failed", listener->name);
    return answer;
}

void listener_start(struct listener *listener, const char *stream)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        err(1, "socketpair");
    fflush(stdout);
    listener->pid = fork();
    if (listener->pid < 0)
        err(1, "fork");
    if (listener->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it has nothing to do without its parent */
        close(ends[0]);
        listener->fd = ends[1];
        run(listener, stream);
        _exit(0);
    }
    close(ends[1]);
    listener->fd = ends[0];
    hear(listener);
}

struct answer listener_turn(struct listener *listener)
{
    if (write(listener->fd, "", 1) != 1)
        err(1, "%s", listener->name);
    struct answer answer = hear(listener);
    listener->taken += answer.sequence != 0;
    listener->missed += answer.missed;
    return answer;
}

static int wait_for(struct listener *listener)
{
    int status;
    if (waitpid(listener->pid, &status, 0) != listener->pid)
        err(1, "waitpid");
    close(listener->fd);
    listener->pid = 0;
    return status;
}

void listener_kill(struct listener *listener)
{
    kill(listener->pid, SIGKILL);
    listener->was_killed = 1;
    wait_for(listener);
}

void listener_end(struct listener *listener)
{
    if (wait_for(listener) != 0)
        errx(1, "the %s has failed", listener->name);
}
