/* SPDX-License-Identifier: Apache-2.0 */
/* save: a view as an npy file, or its bytes. What has no gaps is written from the shared memory
 * itself. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/data/npy.h"
#include "cli/data/outfile.h"
#include "cli/data/pieces.h"
#include "cli/data/prefault.h"
#include "cli/data/scratch.h"
#include "cli/shell/progress.h"
#include "cli/text/target.h"
#include "cli/verbs/transfer.h"

struct save {
    struct context *c;
    struct target_options how;
    bool raw, json;
    const char *path;
    struct outfile file;
    struct progress progress;
    uint64_t done;
};

static int write_some(struct save *s, const void *data, size_t n)
{
    int status = outfile_write(&s->file, data, n);
    s->done += n;
    progress_update(&s->progress, s->done);
    return status;
}

/* From the shared memory itself. */
static int write_straight(struct save *s, const struct shmview_view *v)
{
    struct prefault prefault;
    int status = 0;
    prefault_begin(&prefault, v->data, v->nbytes, false);
    for (uint64_t at = 0; status == 0 && at < v->nbytes; at += STRAIGHT_BYTES) {
        uint64_t left = v->nbytes - at;
        status = write_some(s, v->data + at, left < STRAIGHT_BYTES ? left : STRAIGHT_BYTES);
    }
    prefault_end(&prefault);
    return status;
}

/* Piece by piece through memory of our own. */
static int write_gathered(struct save *s, const struct shmview_view *v)
{
    CLEANUP_SCRATCH struct scratch scratch = {0};
    struct pieces pieces;
    struct shmview_view piece, copy;
    int r = scratch_init(&scratch, v, v->format), status = 0;
    pieces_begin(&pieces, v, SCRATCH_BYTES);
    while (r == 0 && status == 0 && (r = pieces_next(&pieces, &piece)) == PIECES_NEXT) {
        r = scratch_like(&scratch, &piece, &copy);
        r = r ? r : shmview_copy(&copy, &piece);
        if (r == 0)
            status = write_some(s, copy.data, copy.nbytes);
    }
    return status ? status : r < 0 ? fail_call(s->c, r) : 0;
}

static int write_elements(struct save *s, const struct shmview_view *v, bool fortran_order)
{
    int status =
        fortran_order || shmview_is_contiguous(v) ? write_straight(s, v) : write_gathered(s, v);
    progress_end(&s->progress);
    return status;
}

/* Whether what is written is read as it comes, by somebody who may be slow. */
static bool is_stream(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return fstat(STDOUT_FILENO, &st) == 0 && !S_ISREG(st.st_mode);
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int write_file(struct save *s, struct target *t, const struct npy *npy,
                      const struct shmview_view *v)
{
    struct problem problem;
    CLEANUP_FREE unsigned char *header = NULL;
    size_t header_bytes = 0;
    if (!s->raw && npy_write(npy, &header, &header_bytes, &problem))
        return fail_text(s->c, "%s: %s: save it with --raw", target_text(t), problem.text);
    int status = outfile_open(s->c, &s->file, s->path, header_bytes + v->nbytes);
    progress_begin(&s->progress, v->nbytes);
    status = status ? status : outfile_write(&s->file, header, header_bytes);
    status = status ? status : write_elements(s, v, npy->fortran_order);
    target_unlock(t);
    status = status ? status : outfile_commit(&s->file);
    outfile_close(&s->file);
    return status;
}

static int run(struct save *s, const char *text)
{
    CLEANUP_TARGET struct target t = {0};
    struct shmview_view v;
    struct npy npy;
    int status = target_parse(s->c, &s->how, text, &t);
    status = status ? status : target_open(&t, SHMVIEW_READ);
    status = status ? status : transfer_choose(&t);
    status = status ? status : target_view(&t, &v);
    if (status)
        return status;
    if (t.is_locked && is_stream(s->path)) {
        status = target_copy(&t, &v);
        target_unlock(&t);
        if (status)
            return status;
    }
    transfer_npy(&v, &npy);
    npy.fortran_order &= !s->raw;
    status = write_file(s, &t, &npy, &v);
    if (status == 0 && s->json)
        status = transfer_print_json(s->c, &t, s->path, &npy, v.nbytes);
    return status;
}

static int run_save(struct context *c, int argc, char **argv)
{
    struct save s = {.c = c};
    const struct verb_option options[] = {
        OPT_FLAG("raw", 'r', &s.raw),
        OPT_FLAG("json", 'J', &s.json),
        TARGET_OPTIONS(&s.how),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 2, 2))
        return c->status;
    s.path = argv[optind + 1];
    if (s.json && strcmp(s.path, "-") == 0)
        return fail_usage(c, "--json and the file cannot both go to standard output");
    return run(&s, argv[optind]);
}

const struct verb verb_save = {
    .name = "save",
    .arguments = "NAME[/[LAYOUT:]VIEW][SLICE] FILE",
    .summary = "Write a view to an npy file; '-' is standard output",
    .help = "The file is there as a whole or not at all. The lock is held, shared, meanwhile.\n\n"
            "  -r, --raw                 only the bytes, in C order\n"
            "  -J, --json                tell what was written\n" TARGET_HELP,
    .run = run_save,
};
