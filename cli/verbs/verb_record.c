/* SPDX-License-Identifier: Apache-2.0 */
/* record: writes the frames of a stream to one npy file, whose first dimension counts them.
 *
 * How many there will be is known only at the end, so the header is written twice: first with room
 * for any number, and at the end with the right one. Ctrl-C is such an end, and so is each failure,
 * such as a frame of another shape or a full disk: frames cannot be recorded again, so the file has
 * all those before it. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/data/outfile.h"
#include "cli/data/pieces.h"
#include "cli/data/scratch.h"
#include "cli/shell/progress.h"
#include "cli/text/bus_error.h"
#include "cli/verbs/stop.h"
#include "cli/verbs/transfer.h"

#define LOOK_NS INT64_C(10000000) /* between two looks at a stream that has ended */

/* The command line, and the file while it is written. */
struct record {
    struct context *c;
    const char *path;
    int64_t count; /* 0: no limit */
    bool has_seconds, json, has_ended;
    int status; /* of take_frames() */
    int64_t seconds_ns;
    struct target target; /* only parsed: names, view and slice */
    struct shmview_stream *stream;
    size_t view; /* its number */
    struct outfile file;
    struct progress progress;
    struct npy npy; /* of the file; without the first dimension until the end */
    size_t header_bytes;
    uint64_t frame_bytes, n_frames, missed;
};

/* Opens the stream, joins it, and finds the view. Returns 0 or the exit status. */
static int open_stream(struct record *rec)
{
    char name[TARGET_NAME_BYTES + sizeof rec->target.stage];
    snprintf(name, sizeof name, "%s%s", rec->target.name, rec->target.stage);
    int status = connect_daemon(rec->c);
    if (status)
        return status;
    int r = shmview_stream_open(rec->c->connection, name, SHMVIEW_READ, &rec->stream);
    if (r)
        return fail_attach(rec->c, r, rec->target.name);
    status = stream_find_view(rec->c, rec->stream, rec->target.name, rec->target.view, &rec->view);
    r = status ? 0 : shmview_stream_join(rec->stream);
    return r ? fail_call(rec->c, r) : status;
}

/* Applies the slice to the view of a frame. Returns 0 or the exit status. */
static int frame_part(struct record *rec, const struct shmview_frame *frame,
                      struct shmview_view *ret)
{
    struct problem problem;
    int r = shmview_frame_view_at(frame, rec->view, ret);
    if (r)
        return fail_call(rec->c, r);
    target_flatten(ret);
    if (slice_apply(&rec->target.slice, ret, ret, &problem))
        return fail_text(rec->c, "%s: %s", target_text(&rec->target), problem.text);
    return 0;
}

/* --- The header ---------------------------------------------------------- */

/* Makes the header of a file with n frames. If room is not 0, it has that size. Returns 0 or the
 * exit status. */
static int make_header(struct record *rec, int64_t n, size_t room, unsigned char **ret,
                       size_t *ret_bytes)
{
    struct npy all = rec->npy;
    struct problem problem;
    if (all.ndim == SHMVIEW_MAX_NDIM)
        return fail_text(rec->c, "%s has %u dimensions, and the file needs one more: name a part",
                         target_text(&rec->target), all.ndim);
    memmove(all.shape + 1, all.shape, all.ndim * sizeof all.shape[0]);
    all.shape[0] = n;
    all.ndim++;
    all.fortran_order = false;
    if (npy_write(&all, ret, ret_bytes, &problem))
        return fail_text(rec->c, "%s: %s", target_text(&rec->target), problem.text);
    if (room <= *ret_bytes)
        return 0;
    unsigned char *wide = malloc(room);
    if (!wide)
        return fail_memory(rec->c);
    memset(wide, ' ', room);
    memcpy(wide, *ret, *ret_bytes - 1); /* all but the newline */
    wide[room - 1] = '\n';
    wide[8] = (unsigned char)((room - 10) & 0xff); /* the length of what follows it */
    wide[9] = (unsigned char)((room - 10) >> 8);
    free(*ret);
    *ret = wide;
    *ret_bytes = room;
    return 0;
}

/* Opens the file and leaves room for its header. v is the view of the first frame. Returns 0 or the
 * exit status. */
static int begin_file(struct record *rec, const struct shmview_view *v)
{
    CLEANUP_FREE unsigned char *header = NULL;
    transfer_npy(v, &rec->npy);
    rec->frame_bytes = v->nbytes;
    int status = make_header(rec, INT64_MAX, 0, &header, &rec->header_bytes);
    uint64_t bytes = (uint64_t)rec->count * v->nbytes;
    status = status ? status : outfile_open(rec->c, &rec->file, rec->path, bytes);
    if (status == 0 && !outfile_is_regular(&rec->file))
        status = fail_usage(rec->c,
                            "%s is no regular file: the number of frames is written to its "
                            "beginning at the end",
                            rec->file.path);
    stop_catch();
    progress_begin(&rec->progress, rec->count ? bytes : PROGRESS_UNKNOWN);
    return status ? status : outfile_write(&rec->file, header, rec->header_bytes);
}

/* Writes the header with the number of frames, cuts off a part of a further frame, and gives the
 * file its name. */
static int end_file(struct record *rec)
{
    CLEANUP_FREE unsigned char *header = NULL;
    size_t bytes = 0;
    int status = make_header(rec, (int64_t)rec->n_frames, rec->header_bytes, &header, &bytes);
    if (status)
        return status;
    status = outfile_cut(&rec->file, bytes + rec->n_frames * rec->frame_bytes);
    status = status ? status : outfile_rewrite(&rec->file, header, bytes);
    return status ? status : outfile_commit(&rec->file);
}

/* --- Frames -------------------------------------------------------------- */

/* Writes the elements of a frame, gathered if they have gaps. Returns 0 or the exit status. */
static int write_elements(struct record *rec, const struct shmview_view *v)
{
    CLEANUP_SCRATCH struct scratch scratch = {0};
    struct pieces pieces;
    struct shmview_view piece, copy;
    int status = 0;
    if (shmview_is_contiguous(v))
        return outfile_write(&rec->file, v->data, v->nbytes);
    int r = scratch_init(&scratch, v, v->format);
    pieces_begin(&pieces, v, SCRATCH_BYTES);
    while (r == 0 && status == 0 && (r = pieces_next(&pieces, &piece)) == PIECES_NEXT) {
        r = scratch_like(&scratch, &piece, &copy);
        r = r ? r : shmview_copy(&copy, &piece);
        if (r == 0)
            status = outfile_write(&rec->file, copy.data, copy.nbytes);
    }
    return status ? status : r < 0 ? fail_call(rec->c, r) : 0;
}

/* Refuses a frame that is longer or shorter than the first one. Returns 0 or the exit status. */
static int check_shape(struct record *rec, const struct shmview_frame *frame,
                       const struct shmview_view *v)
{
    struct npy npy;
    char first[256], now[256];
    transfer_npy(v, &npy);
    if (memcmp(npy.shape, rec->npy.shape, npy.ndim * sizeof npy.shape[0]) == 0)
        return 0;
    transfer_shape(rec->npy.ndim, rec->npy.shape, first, sizeof first);
    transfer_shape(npy.ndim, npy.shape, now, sizeof now);
    return fail_text(rec->c,
                     "frame %" PRIu64 " has the shape %s and the first one %s, which do not fit "
                     "into one array",
                     frame->sequence, now, first);
}

/* Adds one frame to the file. Returns 0 or the exit status. */
static int add_frame(struct record *rec, const struct shmview_frame *frame)
{
    struct shmview_view v;
    int status = frame_part(rec, frame, &v);
    if (status == 0 && !rec->header_bytes)
        status = begin_file(rec, &v);
    status = status ? status : check_shape(rec, frame, &v);
    status = status ? status : write_elements(rec, &v);
    if (status)
        return status;
    rec->n_frames++;
    rec->missed += frame->missed;
    progress_update(&rec->progress, rec->n_frames * v.nbytes);
    return 0;
}

static void warn_of_death(struct record *rec)
{
    struct shmview_death death;
    if (shmview_stream_death(rec->stream, &death) == 0)
        warn_text(rec->c, "the writer %" PRIu32 " %.16s has died: waiting for another one",
                  death.pid, death.command);
}

/* Waits for the first frame of a stage that had ended before this program joined it. */
static void await_beginning(int64_t end)
{
    int64_t at = shmview_deadline(LOOK_NS);
    at = at < end ? at : end;
    struct timespec until = {.tv_sec = (time_t)(at / 1000000000),
                             .tv_nsec = (long)(at % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Takes the next frame, if one comes soon. Sets rec->has_ended at the end of the stream. Returns 0
 * or the exit status. */
static int take_frame(struct record *rec, int64_t end)
{
    struct shmview_frame frame;
    int status = 0, r = shmview_stream_take(rec->stream, stop_slice(end), &frame);
    if (r == SHMVIEW_STREAM_ENDED && rec->n_frames == 0)
        await_beginning(end);
    else if (r == SHMVIEW_STREAM_ENDED)
        rec->has_ended = true;
    else if (r == SHMVIEW_WRITER_DIED)
        warn_of_death(rec);
    else if (r == 0)
        status = add_frame(rec, &frame);
    else if (r != -SHMVIEW_ERR_TIMED_OUT)
        status = fail_call(rec->c, r);
    if (r == 0)
        shmview_frame_release(&frame);
    return status;
}

/* Takes frames until the end of the stream, of --seconds or of --count, Ctrl-C, or a failure, for
 * bus_error_guard(). Sets the exit status. */
static void take_frames(void *arg)
{
    struct record *rec = arg;
    const int64_t end = rec->has_seconds ? shmview_deadline(rec->seconds_ns) : SHMVIEW_FOREVER;
    const uint64_t most = rec->count ? (uint64_t)rec->count : UINT64_MAX;
    while (rec->status == 0 && !rec->has_ended && !stop_is_wanted() && rec->n_frames < most) {
        rec->status = take_frame(rec, end);
        rec->has_ended |= shmview_deadline(0) >= end;
    }
}

/* --- The verb ------------------------------------------------------------ */

static int print_json_of(const struct record *rec)
{
    json_t *shape = json_array();
    json_array_append_new(shape, json_integer((json_int_t)rec->n_frames));
    for (uint32_t d = 0; d < rec->npy.ndim; d++)
        json_array_append_new(shape, json_integer(rec->npy.shape[d]));
    json_auto_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:I}", "segment", rec->target.name, "view",
                  shmview_stream_view_name(rec->stream, rec->view), "file", rec->path, "format",
                  rec->npy.format, "shape", shape, "frames", (json_int_t)rec->n_frames, "missed",
                  (json_int_t)rec->missed);
    return print_json(rec->c, json);
}

/* Takes the frames, and gives the file its name if it has one. Returns 0 or the exit status. */
static int write_file(struct record *rec)
{
    const bool is_whole = bus_error_guard(take_frames, rec);
    progress_end(&rec->progress);
    if (!is_whole)
        rec->status = fail_text(rec->c, "the stream's memory is gone: a client has truncated it");
    if (rec->status == 0 && !rec->n_frames)
        return fail_text(rec->c, "no frame of '%s' was published: there is no file",
                         rec->target.name);
    const int ended = rec->n_frames ? end_file(rec) : 0;
    if (rec->status && rec->n_frames && ended == 0)
        warn_text(rec->c, "%s has the %" PRIu64 " frames before that", rec->path, rec->n_frames);
    if (rec->missed)
        warn_text(rec->c,
                  "%" PRIu64 " frames were missed, because they came faster than they were "
                  "written: create the stream with more --slots, or as lossless",
                  rec->missed);
    if (!is_whole) {
        /* The signal may have left a mutex of the library locked, so nothing is closed. */
        outfile_close(&rec->file);
        _exit(rec->status);
    }
    return rec->status ? rec->status : ended;
}

static int run(struct record *rec, const char *text)
{
    static const struct target_options none;
    int status = target_parse(rec->c, &none, text, &rec->target);
    if (status == 0 && rec->target.layout[0] && strcmp(rec->target.layout, STREAM_LAYOUT) != 0)
        status = fail_usage(
            rec->c, "'%s': the layout of a stream is '" STREAM_LAYOUT "': write NAME/VIEW", text);
    status = status ? status : open_stream(rec);
    if (status)
        return status;
    bus_error_catch();
    stop_catch();
    status = write_file(rec);
    return status || !rec->json ? status : print_json_of(rec);
}

static int run_record(struct context *c, int argc, char **argv)
{
    struct record rec = {.c = c, .file.fd = -1};
    const struct verb_option options[] = {
        OPT_NUMBER("count", 'n', &rec.count, 1, INT64_MAX >> 32),
        OPT_TIME("seconds", 't', &rec.seconds_ns, 0, &rec.has_seconds),
        OPT_FLAG("json", 'J', &rec.json),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 2, 2))
        return c->status;
    rec.path = argv[optind + 1];
    int status = run(&rec, argv[optind]);
    outfile_close(&rec.file);
    shmview_stream_close(rec.stream);
    return status;
}

const struct verb verb_record = {
    .name = "record",
    .arguments = "NAME[:STAGE][/VIEW][SLICE] FILE",
    .summary = "Write the frames of a stream to an npy file, until it ends",
    .help = "The first dimension of the array counts the frames. Ctrl-C ends it, too. The\n"
            "file appears at the end, also at that of a failure.\n"
            "\n"
            "  -n, --count N             end after that many frames\n"
            "  -t, --seconds TIME        end after that time\n"
            "  -J, --json                print a description of the array\n",
    .run = run_record,
};
