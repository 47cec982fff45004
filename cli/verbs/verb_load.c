/* SPDX-License-Identifier: Apache-2.0 */
/* load: reads an npy file, or plain bytes, into a view.
 *
 * A file that does not fit changes nothing. Header, shape, type and length are compared first. If
 * elements must be converted, all of them are converted once into private memory, and only if every
 * one fits are they converted again into the view. That takes twice the time, but a copy of the
 * whole array would take memory that the machine may not have.
 *
 * After that only an error in reading can leave the view half written: the file has become shorter,
 * or its disk fails. The lock is then given back as not repaired, and the next holder
 * learns of it. A pipe cannot fail so late, because it is read to its end before the lock is taken.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/data/infile.h"
#include "cli/data/pieces.h"
#include "cli/data/prefault.h"
#include "cli/data/scratch.h"
#include "cli/shell/progress.h"
#include "cli/text/target.h"
#include "cli/verbs/transfer.h"

/* The command line, and the file while it is read. */
struct load {
    struct context *c;
    struct target_options how;
    bool raw, convert, create, notify, json;
    bool created; /* this process made the segment, and removes it after a failure */
    struct infile file;
    struct npy npy;     /* the array in the file; with --raw that of the view */
    const char *format; /* format by which the bytes of the file are read; borrowed */
    struct progress progress;
};

/* --- Comparing the file with the view ---------------------------------------- */

/* Requires equal shapes. Unlike numpy it does not broadcast. Returns 0 or the exit status. */
static int check_shape(struct load *l, struct target *t, const struct npy *view)
{
    char has[256], wants[256];
    if (l->npy.ndim == view->ndim &&
        memcmp(l->npy.shape, view->shape, view->ndim * sizeof view->shape[0]) == 0)
        return 0;
    transfer_shape(l->npy.ndim, l->npy.shape, has, sizeof has);
    transfer_shape(view->ndim, view->shape, wants, sizeof wants);
    return fail_text(
        l->c,
        "%s is an array of shape %s, %s is one of %s: name the part that it fits, as in "
        "'%s/VIEW[0:10]', or reshape the array",
        l->file.path, has, target_text(t), wants, t->name);
}

/* Decides how the bytes of the file are read, and sets l->format. If it equals the format of the
 * view, the bytes are copied; otherwise each element is converted. Elements of one type in the
 * other byte order are always converted, other types only with --convert. Returns 0 or the exit
 * status. */
static int check_type(struct load *l, struct target *t, const struct npy *view)
{
    l->format = l->npy.format;
    if (strcmp(l->npy.format, view->format) == 0)
        return 0;
    if (l->npy.is_opaque && l->npy.itemsize == view->itemsize) {
        l->format = view->format; /* bytes without a type fit elements of the same size */
        return 0;
    }
    if (transfer_same_type(l->npy.format, view->format)) {
        struct shmview_format file, own;
        shmview_format_parse(l->npy.format, &file, NULL, 0);
        shmview_format_parse(view->format, &own, NULL, 0);
        if (((file.dtype ^ own.dtype) & SHMVIEW_SWAPPED) == 0)
            l->format = view->format;
        return 0;
    }
    if (l->convert)
        return 0;
    return fail_text(
        l->c, "%s has elements \"%s\", %s has \"%s\": --convert converts each, if all of them fit",
        l->file.path, l->npy.format, target_text(t), view->format);
}

/* With --raw: requires as many bytes as the view has, and takes type and shape from the view.
 * Returns 0 or the exit status. */
static int check_bytes(struct load *l, struct target *t, const struct npy *view)
{
    l->npy = *view;
    l->npy.fortran_order = false;
    l->format = l->npy.format;
    if (l->file.nbytes == view->nbytes)
        return 0;
    return fail_text(
        l->c,
        "%s has %" PRIu64 " bytes, %s has %" PRIu64 ": name a part of that size, as in "
        "'%s[0:%" PRIu64 "]'",
        l->file.path, l->file.nbytes, target_text(t), view->nbytes, t->name, l->file.nbytes);
}

/* --- Copying the elements ---------------------------------------------------- */

/* Reads the file into the shared memory itself, without a copy in between. The view has the order
 * of the file and no gaps. Returns 0 or the exit status. */
static int read_straight(struct load *l, const struct shmview_view *v)
{
    struct prefault prefault;
    int status = 0;
    prefault_begin(&prefault, v->data, v->nbytes, true);
    for (uint64_t at = 0; status == 0 && at < v->nbytes; at += STRAIGHT_BYTES) {
        uint64_t left = v->nbytes - at;
        status = infile_read(&l->file, v->data + at, left < STRAIGHT_BYTES ? left : STRAIGHT_BYTES);
        progress_update(&l->progress, l->file.at);
    }
    prefault_end(&prefault);
    return status;
}

/* Reads the file piece by piece and converts its elements: into v, or if is_trial into private
 * memory, to find out whether all of them fit. A trial shows no progress, because it is only the
 * first half. Returns 0 or the exit status. */
static int read_pieces(struct load *l, const struct shmview_view *v, bool is_trial)
{
    CLEANUP_SCRATCH struct scratch in = {0};
    CLEANUP_SCRATCH struct scratch out = {0};
    struct pieces pieces;
    struct shmview_view piece, from, to;
    int status = 0, r = scratch_init(&in, v, l->format);
    if (r == 0 && is_trial)
        r = scratch_init(&out, v, v->format);
    pieces_begin(&pieces, v, SCRATCH_BYTES);
    while (r == 0 && status == 0 && (r = pieces_next(&pieces, &piece)) == PIECES_NEXT) {
        to = piece;
        r = scratch_like(&in, &piece, &from);
        if (r == 0 && is_trial)
            r = scratch_like(&out, &piece, &to);
        if (r == 0)
            status = infile_read(&l->file, from.data, from.nbytes);
        if (r == 0 && status == 0)
            r = shmview_copy(&to, &from);
        if (!is_trial)
            progress_update(&l->progress, l->file.at);
    }
    return status ? status : r < 0 ? fail_call(l->c, r) : 0;
}

/* Copies or converts all elements into the view, whose lock is held. Returns 0 or the exit status.
 */
static int move(struct load *l, struct target *t, const struct shmview_view *view)
{
    struct shmview_view v = *view;
    int status = 0, r = 0;
    /* a transposed view has its elements in the order of a file in Fortran order */
    if (l->npy.fortran_order && v.ndim > 1)
        r = shmview_view_transpose(&v, NULL, &v);
    if (r)
        return fail_call(l->c, r);
    const bool is_same = strcmp(l->format, v.format) == 0;
    if (!is_same)
        status = read_pieces(l, &v, true);
    if (status)
        return status;
    infile_rewind(&l->file);
    progress_begin(&l->progress, l->file.nbytes);
    bool was_spoilt = t->owner_died;
    t->owner_died = true; /* until all elements are there: see target_unlock() */
    status =
        is_same && shmview_is_contiguous(&v) ? read_straight(l, &v) : read_pieces(l, &v, false);
    progress_end(&l->progress);
    if (status == 0)
        t->owner_died = was_spoilt;
    return status;
}

/* --- Finding the view -------------------------------------------------------- */

/* Creates a segment of the size of the elements, and with the names of the command line (default
 * "array") a layout with one view, and makes it current. With --raw the segment has no layout,
 * because bytes need none. Returns 0 or the exit status; run() removes the segment if l->created.
 */
static int create(struct load *l, struct target *t)
{
    const struct shmview_create_options options = {.struct_bytes = sizeof options,
                                                   .lifetime = SHMVIEW_MANUAL};
    const char *layout = t->layout[0] ? t->layout : "array", *view = t->view[0] ? t->view : "array";
    int64_t strides[SHMVIEW_MAX_NDIM];
    const struct shmview_view_spec spec = {
        .name = view,
        .format = l->npy.format,
        .ndim = l->npy.ndim,
        .shape = l->npy.shape,
        .strides = l->npy.fortran_order ? strides : NULL,
    };
    struct shmview_segment *segment;
    if (t->slice.n || t->how->as)
        return fail_usage(l->c, "with --create '%s' takes a name alone, or a name and a view",
                          target_text(t));
    int status = connect_or_start(l->c);
    if (status)
        return status;
    /* an array may be empty, a segment may not */
    int r = shmview_create(l->c->connection, t->name, l->file.nbytes ? l->file.nbytes : 1, &options,
                           &segment);
    if (r)
        return fail_call(l->c, r);
    l->created = true;
    if (!l->raw) {
        if (l->npy.fortran_order)
            shmview_fill_strides(l->npy.ndim, l->npy.shape, l->npy.itemsize, 'F', strides);
        r = shmview_define(segment, layout, &spec, 1);
        r = r ? r : shmview_lock(segment);
        r = r < 0 ? r : shmview_switch(segment, layout);
        shmview_unlock(segment);
        if (layout != t->layout)
            snprintf(t->layout, sizeof t->layout, "%s", layout);
        if (view != t->view)
            snprintf(t->view, sizeof t->view, "%s", view);
    }
    status = r < 0 ? fail_call(l->c, r) : 0;
    shmview_detach(segment);
    return status;
}

/* Finds the view that the user named, or else the only one. In a segment without layouts it makes
 * one of the array in the file, from byte 0 on. Returns 0 or the exit status. */
static int find_view(struct load *l, struct target *t, struct shmview_view *ret)
{
    int64_t strides[SHMVIEW_MAX_NDIM];
    int status = transfer_choose(t);
    if (status || l->raw || t->view[0] || t->how->as || t->slice.n) {
        return status ? status : target_view(t, ret);
    }
    const struct shmview_view_spec spec = {
        .format = l->npy.format,
        .ndim = l->npy.ndim,
        .shape = l->npy.shape,
        .strides = l->npy.fortran_order ? strides : NULL,
    };
    int r = l->npy.fortran_order
                ? shmview_fill_strides(l->npy.ndim, l->npy.shape, l->npy.itemsize, 'F', strides)
                : 0;
    r = r ? r : shmview_view_make(t->segment, &spec, ret);
    return r ? fail_call(l->c, r) : 0;
}

/* Takes the lock, checks that the file fits, and fills the view. Returns the exit status. */
static int fill(struct load *l, struct target *t)
{
    struct shmview_view v;
    struct npy view;
    int status = target_open(t, SHMVIEW_WRITE);
    status = status ? status : find_view(l, t, &v);
    if (status)
        return status;
    if (v.flags & SHMVIEW_VIEW_READ_ONLY)
        return fail_text(l->c, "view '%s' was declared read-only: load into another one", t->view);
    transfer_npy(&v, &view);
    if (l->raw)
        status = check_bytes(l, t, &view);
    else
        status = check_shape(l, t, &view) || check_type(l, t, &view) ? EXIT_FAILED : 0;
    status = status ? status : move(l, t, &v);
    if (status == 0 && l->notify && shmview_notify(t->segment))
        status = fail_call(l->c, -SHMVIEW_ERR_NO_LOCK);
    target_unlock(t);
    if (status == 0 && l->json)
        status = transfer_print_json(l->c, t, l->file.path, &l->npy, l->file.nbytes);
    return status;
}

/* Opens the file before the segment: the end of a pipe may take long, and the lock must not be held
 * for that time. Returns the exit status. */
static int run(struct load *l, const char *path, const char *text)
{
    CLEANUP_TARGET struct target t = {0};
    int status = target_parse(l->c, &l->how, text, &t);
    status = status || l->create ? status : connect_daemon(l->c);
    status = status ? status : infile_open(l->c, &l->file, path);
    if (status == 0)
        status = l->raw ? infile_read_raw(&l->file) : infile_read_npy(&l->file, &l->npy);
    if (status == 0 && l->create)
        status = create(l, &t);
    status = status ? status : fill(l, &t);
    if (status && l->created)
        shmview_remove(l->c->connection, t.name); /* a segment without its array is useless */
    infile_close(&l->file);
    return status;
}

static int run_load(struct context *c, int argc, char **argv)
{
    struct load l = {.c = c};
    const struct verb_option options[] = {
        OPT_FLAG("raw", 'r', &l.raw),
        OPT_FLAG("convert", 'c', &l.convert),
        OPT_FLAG("create", '\0', &l.create),
        OPT_FLAG("notify", 'N', &l.notify),
        OPT_FLAG("json", 'J', &l.json),
        TARGET_OPTIONS(&l.how),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 2, 2))
        return c->status;
    return run(&l, argv[optind], argv[optind + 1]);
}

const struct verb verb_load = {
    .name = "load",
    .arguments = "FILE NAME[/[LAYOUT:]VIEW][SLICE]",
    .summary = "Read an npy file into a view; '-' is standard input",
    .help = "A file that does not fit changes nothing. Holds the lock while it writes.\n\n"
            "  -r, --raw                 the file contains only the bytes, in C order\n"
            "  -c, --convert             convert each element to the type of the view\n"
            "      --create              create the segment first, with one view\n"
            "  -N, --notify              add one to the counter of changes afterwards\n"
            "  -J, --json                print a description of the array\n" TARGET_HELP,
    .run = run_load,
};
