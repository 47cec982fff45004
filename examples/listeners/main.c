/* SPDX-License-Identifier: Apache-2.0 */
/* listeners - one process streams a sound, three others listen, at different speeds.
 *
 * The writer puts the blocks of a sound file into a stream, without a copy on the way to anybody:
 *
 *     recorder   takes every block, and writes them to another sound file
 *     meter      needs the time of three blocks for one, so it takes the newest one, and misses
 * some display    needs the time of four, and is killed while it holds a block
 *
 * The stream is a "latest" one, whose writer waits for nobody: not for slow listeners, and not for
 * a dead one. A block that a listener holds is not overwritten all the same.
 *
 * Time is counted in blocks, so that the program prints the same on each machine: after each block
 * the writer gives a turn to the listeners that would be done with the one before by then. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <shmview/shmview.h>
#include <shmview/stream.h>
#include <sndfile.h>

#include "listener.h"

#define BLOCKS_PER_SECOND 10
#define KILLED_AT         10 /* the block after which the display is killed */
#define N_LISTENERS       3
#define CELL_BYTES        64

/* One for the writer, one that the newest block keeps, and one for each listener: with these the
 * writer always finds a slot. */
#define N_SLOTS (2 + N_LISTENERS)

static void must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
}

/* --- The writer ---------------------------------------------------------- */

static SNDFILE *open_sound(const char *path, SF_INFO *ret_info)
{
    *ret_info = (SF_INFO){0};
    SNDFILE *file = sf_open(path, SFM_READ, ret_info);
    if (!file)
        errx(1, "%s: %s", path, sf_strerror(NULL));
    if (ret_info->samplerate < BLOCKS_PER_SECOND)
        errx(1, "%s: %d samples per second are too few", path, ret_info->samplerate);
    return file;
}

static struct shmview_stream *create_stream(struct shmview_connection *connection, const char *name,
                                            const SF_INFO *info)
{
    const int64_t shape[] = {info->samplerate / BLOCKS_PER_SECOND, info->channels};
    const struct shmview_view_spec samples = {
        .name = "samples", .format = "int16", .ndim = 2, .shape = shape};
    const struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = SHMVIEW_LATEST,
        .n_slots = N_SLOTS,
        .views = &samples,
        .n_views = 1,
    };
    struct shmview_stream *stream;
    must(shmview_stream_create(connection, name, &spec, &stream), "create");
    return stream;
}

/* Publishes the next block of the file, which libsndfile reads into the slot. Its deadline is 0:
 * the writer has no time to wait for a slot. Returns its number, or 0 at the end of the file. */
static uint64_t publish_block(struct shmview_stream *stream, SNDFILE *file, uint64_t *first)
{
    struct shmview_frame frame;
    struct shmview_view samples;
    must(shmview_stream_loan(stream, 0, &frame), "loan");
    must(shmview_frame_view(&frame, "samples", &samples), "view");
    sf_count_t n = sf_readf_short(file, SHMVIEW_DATA(int16_t, &samples), samples.shape[0]);
    if (n <= 0) {
        shmview_frame_discard(&frame);
        return 0;
    }
    *(struct position *)frame.user = (struct position){.first = *first};
    frame.user_bytes = sizeof(struct position);
    *first += (uint64_t)n;
    must(shmview_frame_set_length(&frame, 0, (uint64_t)n), "length"); /* the last one is shorter */
    must(shmview_frame_publish(&frame), "publish");
    return frame.sequence;
}

/* --- What is printed ----------------------------------------------------- */

static void describe(const struct listener *listener, const struct answer *answer, int is_turn,
                     char *cell)
{
    if (listener->pid == 0)
        snprintf(cell, CELL_BYTES, "dead");
    else if (!is_turn)
        snprintf(cell, CELL_BYTES, "  holds %" PRIu64, answer->sequence);
    else if (listener->output)
        snprintf(cell, CELL_BYTES, "%" PRIu64, answer->sequence);
    else
        snprintf(cell, CELL_BYTES, "%" PRIu64 ", missed %" PRIu64 ", peak %d %%", answer->sequence,
                 answer->missed, answer->peak * 100 / INT16_MAX);
}

static void print_totals(const struct listener *listeners)
{
    for (int i = 0; i < N_LISTENERS; i++)
        printf("%-9s took %2" PRIu64 " blocks, missed %2" PRIu64 "%s\n", listeners[i].name,
               listeners[i].taken, listeners[i].missed,
               listeners[i].was_killed ? ", and was killed" : "");
}

/* --- The play ------------------------------------------------------------ */

/* Streams the file, and returns how many blocks it has. */
static uint64_t play(struct shmview_stream *stream, SNDFILE *file, struct listener *listeners)
{
    struct answer answers[N_LISTENERS] = {0};
    char cells[N_LISTENERS][CELL_BYTES];
    uint64_t block, last = 0, first = 0;
    while ((block = publish_block(stream, file, &first)) != 0) {
        last = block;
        if (block == KILLED_AT) {
            printf("        the display is killed while it holds block %" PRIu64 "\n",
                   answers[2].sequence);
            listener_kill(&listeners[2]);
        }
        for (int i = 0; i < N_LISTENERS; i++) {
            int is_turn = listeners[i].pid != 0 && (block - 1) % listeners[i].pace == 0;
            if (is_turn)
                answers[i] = listener_turn(&listeners[i]);
            describe(&listeners[i], &answers[i], is_turn, cells[i]);
        }
        printf("%5" PRIu64 "   %-12s%-26s%s\n", block, cells[0], cells[1], cells[2]);
    }
    return last;
}

/* Ends the stream. Each listener that lives takes what is left, and then learns of the end. */
static void finish(struct shmview_stream *stream, struct listener *listeners)
{
    must(shmview_stream_end(stream), "end");
    for (int i = 0; i < N_LISTENERS; i++)
        if (listeners[i].pid != 0) {
            while (listener_turn(&listeners[i]).sequence != 0)
                continue;
            listener_end(&listeners[i]);
        }
}

/* Loans all slots but that of the newest block: the one of the dead listener is free as soon as the
 * daemon has noticed the death. */
static void expect_free_slots(struct shmview_stream *stream)
{
    struct shmview_frame frames[N_SLOTS - 1];
    for (int i = 0; i < N_SLOTS - 1; i++)
        must(shmview_stream_loan(stream, shmview_deadline(INT64_C(10000000000)), &frames[i]),
             "a slot of a dead listener");
    for (int i = 0; i < N_SLOTS - 1; i++)
        shmview_frame_discard(&frames[i]);
    printf("%d of %d slots are free; the newest block keeps the other one\n", N_SLOTS - 1, N_SLOTS);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        errx(2, "usage: listeners INPUT OUTPUT.wav");
    struct shmview_connection *connection;
    SF_INFO info;
    SNDFILE *file = open_sound(argv[1], &info);
    char name[32];
    snprintf(name, sizeof name, "listeners-%d", getpid());
    must(shmview_connect(NULL, 0, &connection), "connect");
    struct shmview_stream *stream = create_stream(connection, name, &info);

    struct listener listeners[N_LISTENERS] = {
        {.name = "recorder", .pace = 1, .output = argv[2]},
        {.name = "meter", .pace = 3},
        {.name = "display", .pace = 4},
    };
    for (int i = 0; i < N_LISTENERS; i++) {
        listeners[i].rate = info.samplerate;
        listeners[i].channels = info.channels;
        listener_start(&listeners[i], name);
    }
    printf("block   recorder    meter                     display\n");
    uint64_t n_blocks = play(stream, file, listeners);
    finish(stream, listeners);
    printf("writer    published %" PRIu64 " blocks, and waited for nobody\n", n_blocks);
    print_totals(listeners);
    expect_free_slots(stream);
    sf_close(file);
    must(shmview_stream_close(stream), "close");
    must(shmview_disconnect(connection), "disconnect");
    return 0;
}
