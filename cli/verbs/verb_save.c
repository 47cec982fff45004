/* SPDX-License-Identifier: Apache-2.0 */
/* save: writes a view to an npy file, or only its bytes.
 *
 * The lock is held while the file is written, so that the elements belong together. A view without
 * gaps is written from the shared memory itself; another one is gathered piece by piece in private
 * memory, so that no view needs a copy of its full size. There is one exception: the reader of a
 * pipe may be slow, and other programs must not wait for it. Such a view is copied first, and the
 * lock given back.
 *
 * A file appears under its name as a whole or not at all (cli/data/outfile). */
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

/* The command line, and the file while it is written. */
struct save {
    struct context *c;
    struct target_options how;
    bool raw, json;
    const char *path;
    struct outfile file;
    struct progress progress;
    uint64_t done; /* bytes of elements that are written */
};

/* Writes n bytes of elements. Returns 0 or the exit status. */
static int write_some(struct save *s, const void *data, size_t n)
{
    int status = outfile_write(&s->file, data, n);
    s->done += n;
    progress_update(&s->progress, s->done);
    return status;
}

/* Writes from the shared memory itself, in steps of STRAIGHT_BYTES, because file systems are slower
 * with larger ones. A thread maps the pages ahead, because a page fault for each page inside
 * write() costs as much as the copying. */
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

/* Gathers the elements piece by piece in private memory, and writes each piece. */
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

/* Writes the elements. A view without gaps that has the order of the file is written as it is. */
static int write_elements(struct save *s, const struct shmview_view *v, bool fortran_order)
{
    int status =
        fortran_order || shmview_is_contiguous(v) ? write_straight(s, v) : write_gathered(s, v);
    progress_end(&s->progress);
    return status;
}

/* Whether the file is a pipe, a terminal or a device, whose reader may be slow. A path that does
 * not exist becomes a regular file. */
static bool is_stream(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return fstat(STDOUT_FILENO, &st) == 0 && !S_ISREG(st.st_mode);
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Writes header and elements. Gives the lock back before the file is put in its place, which needs
 * no elements but may wait for a disk. Returns 0 or the exit status. */
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

/* Returns the exit status. */
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
    if (target_holds(&t) && is_stream(s->path)) {
        status = target_copy(&t, &v);
        target_unlock(&t);
        if (status)
            return status;
    }
    transfer_npy(&v, &npy);
    npy.fortran_order &= !s->raw; /* plain bytes have no header that could report the order */
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
    .help = "The file appears as a whole or not at all. Holds the lock, shared, while it is\n"
            "written.\n\n"
            "  -r, --raw                 write only the bytes, in C order\n"
            "  -J, --json                print a description of the array\n" TARGET_HELP,
    .run = run_save,
};
