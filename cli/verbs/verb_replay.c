/* SPDX-License-Identifier: Apache-2.0 */
/* replay: publishes the rows of an npy file as the frames of a stream.
 *
 * The file is compared with the view before the first frame. Each frame is published at its time,
 * counted from the first one, so that a delay of one frame does not move those after it. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/data/infile.h"
#include "cli/data/pieces.h"
#include "cli/data/scratch.h"
#include "cli/shell/progress.h"
#include "cli/text/bus_error.h"
#include "cli/verbs/stop.h"
#include "cli/verbs/transfer.h"

#define NOTICE_NS INT64_C(1000000000) /* after this time the readers in the way are printed */
#define RATE_MOST 1e6

/* The command line, and the file while it is read. */
struct replay {
    struct context *c;
    double rate; /* 0: as fast as readers allow */
    int64_t count;
    bool loops, has_timeout;
    int64_t timeout_ns;
    struct target target; /* only parsed: names and view */
    struct shmview_stream *stream;
    size_t view;
    struct infile file;
    struct npy npy;       /* of the file */
    const char *format;   /* by which its bytes are read */
    struct npy row;       /* one frame of it */
    uint64_t n, n_frames; /* published; to publish, UINT64_MAX: until Ctrl-C */
    int64_t begin_ns;     /* of the first frame */
    bool was_noticed;
    struct progress progress;
};

/* --- Comparing the file with the view ------------------------------------ */

/* Checks that a row fits into the view, which has its full length. Returns 0 or the exit status. */
static int check_row(struct replay *p, const struct shmview_view *v)
{
    char has[256], wants[256];
    struct npy view;
    transfer_npy(v, &view);
    bool fits = p->row.ndim == view.ndim;
    for (uint32_t d = 0; fits && d < view.ndim; d++)
        fits = p->row.shape[d] == view.shape[d] || (d == 0 && p->row.shape[0] < view.shape[0]);
    if (!fits) {
        transfer_shape(p->row.ndim, p->row.shape, has, sizeof has);
        transfer_shape(view.ndim, view.shape, wants, sizeof wants);
        return fail_text(p->c,
                         "%s has rows of shape %s, and the frames of %s have %s: the first "
                         "dimension of the file counts the frames",
                         p->file.path, has, target_text(&p->target), wants);
    }
    p->format = p->npy.format;
    if (p->npy.is_opaque && p->npy.itemsize == v->itemsize)
        p->format = v->format; /* bytes without a type fit elements of the same size */
    else if (strcmp(p->npy.format, v->format) && !transfer_same_type(p->npy.format, v->format))
        return fail_text(p->c,
                         "%s has elements \"%s\", and %s has \"%s\": convert the file with numpy's "
                         "astype()",
                         p->file.path, p->npy.format, target_text(&p->target), v->format);
    return 0;
}

/* Reads the header of the file. Returns 0 or the exit status. */
static int open_file(struct replay *p, const char *path)
{
    int status = infile_open(p->c, &p->file, path);
    status = status ? status : infile_read_npy(&p->file, &p->npy);
    if (status)
        return status;
    if (p->npy.ndim == 0)
        return fail_text(p->c, "%s has no dimension that counts frames: reshape it to (1,)",
                         p->file.path);
    if (p->npy.fortran_order && p->npy.ndim > 1)
        return fail_text(p->c,
                         "%s is in Fortran order, in which no frame is in one piece: write it with "
                         "numpy.ascontiguousarray()",
                         p->file.path);
    if (p->npy.shape[0] == 0)
        return fail_text(p->c, "%s has no frame: record some first", p->file.path);
    p->row = p->npy;
    p->row.ndim--;
    memmove(p->row.shape, p->row.shape + 1, p->row.ndim * sizeof p->row.shape[0]);
    p->row.nbytes = p->npy.nbytes / (uint64_t)p->npy.shape[0];
    return 0;
}

static int open_stream(struct replay *p)
{
    int status = connect_daemon(p->c);
    if (status)
        return status;
    int r = shmview_stream_open(p->c->connection, p->target.name, SHMVIEW_WRITE, &p->stream);
    return r ? fail_attach(p->c, r, p->target.name)
             : stream_find_view(p->c, p->stream, p->target.name, p->target.view, &p->view);
}

/* --- Frames -------------------------------------------------------------- */

/* Reads the elements of the next row into v. Returns 0 or the exit status. */
static int read_row(struct replay *p, const struct shmview_view *v)
{
    CLEANUP_SCRATCH struct scratch scratch = {0};
    struct pieces pieces;
    struct shmview_view piece, from;
    int status = 0;
    if (strcmp(p->format, v->format) == 0 && shmview_is_contiguous(v))
        return infile_read(&p->file, v->data, v->nbytes);
    int r = scratch_init(&scratch, v, p->format);
    pieces_begin(&pieces, v, SCRATCH_BYTES);
    while (r == 0 && status == 0 && (r = pieces_next(&pieces, &piece)) == PIECES_NEXT) {
        r = scratch_like(&scratch, &piece, &from);
        if (r == 0)
            status = infile_read(&p->file, from.data, from.nbytes);
        if (r == 0 && status == 0)
            r = shmview_copy(&piece, &from);
    }
    return status ? status : r < 0 ? fail_call(p->c, r) : 0;
}

/* Waits for a slot, and prints once who is in the way. Sets *ret_stops if the user ends it. Returns
 * 0 or the exit status. */
static int loan(struct replay *p, struct shmview_frame *frame, bool *ret_stops)
{
    const int64_t begin = shmview_deadline(0);
    const int64_t end = p->has_timeout ? begin + p->timeout_ns : SHMVIEW_FOREVER;
    for (;;) {
        int r = shmview_stream_loan(p->stream, stop_slice(end), frame);
        if (r == 0 || r != -SHMVIEW_ERR_TIMED_OUT)
            return r ? fail_call(p->c, r) : 0;
        *ret_stops = stop_is_wanted();
        if (*ret_stops)
            return 0;
        if (shmview_deadline(0) >= end) {
            warn_text(p->c, "%s: give a longer --timeout, or end those processes",
                      shmview_error_text());
            return EXIT_TIMED_OUT;
        }
        if (!p->was_noticed && shmview_deadline(0) > begin + NOTICE_NS) {
            warn_text(p->c, "waiting: %s", shmview_error_text());
            p->was_noticed = true;
        }
    }
}

/* Sleeps until the time of frame p->n, or until the user ends it. */
static void await_time(const struct replay *p)
{
    if (p->rate == 0)
        return;
    int64_t at = p->begin_ns + (int64_t)((double)p->n * 1e9 / p->rate);
    while (shmview_deadline(0) < at && !stop_is_wanted()) {
        int64_t slice = stop_slice(at);
        struct timespec until = {.tv_sec = (time_t)(slice / 1000000000),
                                 .tv_nsec = (long)(slice % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

/* Fills a loaned frame and publishes it at its time. Returns 0 or the exit status. */
static int publish(struct replay *p, struct shmview_frame *frame)
{
    struct shmview_view v;
    int status = 0, r = shmview_frame_view_at(frame, p->view, &v);
    if (r == 0)
        target_flatten(&v);
    if (r == 0 && p->n == 0)
        status = check_row(p, &v);
    if (r == 0 && status == 0 && v.ndim && p->row.shape[0] < v.shape[0]) {
        r = shmview_frame_set_length(frame, p->view, (uint64_t)p->row.shape[0]);
        r = r ? r : shmview_frame_view_at(frame, p->view, &v);
        if (r == 0)
            target_flatten(&v);
    }
    if (r || status)
        return r ? fail_call(p->c, r) : status;
    if (p->n && p->n % (uint64_t)p->npy.shape[0] == 0)
        infile_rewind(&p->file);
    status = read_row(p, &v);
    if (status)
        return status;
    await_time(p);
    r = shmview_frame_publish(frame);
    return r ? fail_call(p->c, r) : 0;
}

/* Publishes all frames. Returns 0 or the exit status. */
static int publish_all(struct replay *p)
{
    int status = 0;
    bool stops = false;
    p->begin_ns = shmview_deadline(0);
    progress_begin(&p->progress,
                   p->n_frames == UINT64_MAX ? PROGRESS_UNKNOWN : p->n_frames * p->row.nbytes);
    while (status == 0 && p->n < p->n_frames && !stop_is_wanted()) {
        struct shmview_frame frame = {.stream = NULL};
        status = loan(p, &frame, &stops);
        if (stops)
            break;
        status = status ? status : publish(p, &frame);
        shmview_frame_discard(&frame); /* does nothing once it is published */
        p->n += status == 0;
        progress_update(&p->progress, p->n * p->row.nbytes);
    }
    progress_end(&p->progress);
    return status;
}

/* --- The verb ------------------------------------------------------------ */

static int run(struct replay *p, const char *path, const char *text)
{
    static const struct target_options none;
    int status = target_parse(p->c, &none, text, &p->target);
    if (status == 0 && (p->target.slice.n || p->target.stage[0]))
        status = fail_usage(p->c,
                            "'%s': whole frames are published, in stage 0: write NAME or "
                            "NAME/VIEW",
                            text);
    status = status ? status : open_file(p, path);
    status = status ? status : open_stream(p);
    if (status)
        return status;
    p->n_frames = p->count ? (uint64_t)p->count : p->loops ? UINT64_MAX : (uint64_t)p->npy.shape[0];
    if (!p->loops && p->n_frames > (uint64_t)p->npy.shape[0])
        return fail_usage(p->c, "%s has %" PRId64 " frames, fewer than --count: add --loop",
                          p->file.path, p->npy.shape[0]);
    bus_error_catch();
    stop_catch();
    status = publish_all(p);
    int r = p->n ? shmview_stream_end(p->stream) : 0;
    return r && status == 0 ? fail_call(p->c, r) : status;
}

static int read_rate(struct context *c, const char *value, void *to)
{
    char *end;
    double rate = strtod(value, &end);
    if (end == value || *end || !(rate > 0 && rate <= RATE_MOST))
        return fail_usage(c,
                          "rate '%s': write the frames of a second, like 30 or 0.5, at most %.0f",
                          value, RATE_MOST);
    *(double *)to = rate;
    return 0;
}

static int run_replay(struct context *c, int argc, char **argv)
{
    struct replay p = {.c = c, .file.fd = -1};
    const struct verb_option options[] = {
        OPT_CALL("rate", 'r', &p.rate, read_rate),
        OPT_FLAG("loop", 'l', &p.loops),
        OPT_NUMBER("count", 'n', &p.count, 1, INT64_MAX >> 32),
        OPT_TIME("timeout", 't', &p.timeout_ns, 0, &p.has_timeout),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 2, 2))
        return c->status;
    int status = run(&p, argv[optind], argv[optind + 1]);
    infile_close(&p.file);
    shmview_stream_close(p.stream);
    return status;
}

const struct verb verb_replay = {
    .name = "replay",
    .arguments = "FILE NAME[/VIEW]",
    .summary = "Publish the rows of an npy file as the frames of a stream",
    .help = "Rows may be shorter than the frames. Other views keep the bytes of an earlier\n"
            "frame. At the end, and at Ctrl-C, the readers learn that the stream has ended.\n"
            "\n"
            "  -r, --rate HZ             frames of a second (as fast as readers allow)\n"
            "  -l, --loop                begin again after the last row, until Ctrl-C\n"
            "  -n, --count N             end after that many frames\n"
            "  -t, --timeout TIME        wait at most that long for the readers of a frame\n",
    .run = run_replay,
};
