/* SPDX-License-Identifier: Apache-2.0 */
/* plot: draws a view of one or two dimensions, in the terminal or as a PNG.
 *
 * cli/draw reduces the elements to as many cells as the picture has, and draws these. Reducing is
 * the only step that needs the shared memory, so the lock is given back before anything is drawn.
 * PNGs need cairo, which is optional when shmviewctl is built. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/data/outfile.h"
#include "cli/draw/draw.h"
#include "cli/draw/raster.h"
#include "cli/text/target.h"
#include "cli/verbs/transfer.h"
#ifdef SHMVIEW_CAIRO
#include "cli/draw/picture_png.h"
#endif

#define HEIGHT_DEFAULT 20 /* lines */
#define PIXELS_WIDTH   800
#define PIXELS_HEIGHT  500
#define PIXELS_MOST    10000 /* also of columns and lines */

/* The command line. */
struct plot {
    struct context *c;
    struct target_options how;
    const char *output;    /* NULL: the terminal */
    int64_t width, height; /* 0: not given */
};

/* Returns the colours of the terminal. $COLORTERM is how terminals announce 24-bit colours. */
static enum draw_colors colors(void)
{
    const char *set = getenv("COLORTERM");
    if (!wants_color())
        return DRAW_NO_COLOR;
    return set && (strcmp(set, "truecolor") == 0 || strcmp(set, "24bit") == 0) ? DRAW_TRUE_COLOR
                                                                               : DRAW_256;
}

/* Refuses a view that cannot be drawn. Returns 0 or the exit status. */
static int check(const struct plot *p, struct target *t, const struct shmview_view *v)
{
    if (v->ndim != 1 && v->ndim != 2)
        return fail_text(p->c,
                         "%s has %u dimensions, but a picture has one or two: name a part, as in "
                         "'%s/%s[0]'",
                         target_text(t), v->ndim, t->name, t->view[0] ? t->view : "VIEW");
    if (v->nbytes == 0)
        return fail_text(p->c, "%s has no elements: there is nothing to draw", target_text(t));
    return 0;
}

/* Reduces the elements to rows * columns cells, and gives the lock back. The caller owes
 * raster_deinit(). Returns 0 or the exit status. */
static int read_raster(const struct plot *p, struct target *t, const struct shmview_view *v,
                       size_t rows, size_t columns, struct raster *r)
{
    int result = raster_init(r, v, rows, columns);
    target_unlock(t);
    if (result == -SHMVIEW_ERR_CONVERSION)
        return fail_text(
            p->c,
            "%s has elements \"%s\", which are not real numbers: name a field of a struct, "
            "as in [field], or see them as floats with --as",
            target_text(t), v->format);
    if (result)
        return fail_call(p->c, result);
    if (isnan(r->min))
        return fail_text(p->c, "%s has no finite number: there is nothing to draw", target_text(t));
    return 0;
}

/* Draws on standard output, a line for one dimension and an image for two. Returns the exit status.
 */
static int plot_terminal(const struct plot *p, struct target *t, const struct shmview_view *v)
{
    struct raster r = {0};
    const struct draw_style style = {
        .width = p->width ? (size_t)p->width : terminal_width(),
        .height = p->height ? (size_t)p->height : HEIGHT_DEFAULT,
        .utf8 = has_utf8(),
        .colors = colors(),
    };
    size_t rows = 1, columns;
    if (v->ndim == 1)
        draw_line_cells(&style, &columns);
    else
        draw_image_cells(&style, (uint64_t)v->shape[0], (uint64_t)v->shape[1], &rows, &columns);
    int status = read_raster(p, t, v, rows, columns, &r);
    if (status == 0 &&
        (v->ndim == 1 ? draw_line(&r, &style, stdout) : draw_image(&r, &style, stdout)))
        status = fail_memory(p->c);
    raster_deinit(&r);
    return status;
}

#ifdef SHMVIEW_CAIRO
/* Writes the PNG to p->output, which appears as a whole or not at all. Returns the exit status. */
static int plot_png(const struct plot *p, struct target *t, const struct shmview_view *v)
{
    struct raster r = {0};
    struct outfile file = {.fd = -1};
    char title[600];
    const struct png_style style = {
        .width = p->width ? (size_t)p->width : PIXELS_WIDTH,
        .height = p->height ? (size_t)p->height : PIXELS_HEIGHT,
        .title = title,
    };
    size_t rows, columns;
    snprintf(title, sizeof title, "%s  %s", target_text(t), v->format);
    png_cells(&style, &rows, &columns);
    int status = read_raster(p, t, v, rows, columns, &r);
    status = status ? status : outfile_open(p->c, &file, p->output, 0);
    status = status ? status : png_write(&r, &style, v->ndim == 2, &file);
    status = status ? status : outfile_commit(&file);
    outfile_close(&file);
    raster_deinit(&r);
    return status;
}
#else
/* In a build without cairo: refuses. */
static int plot_png(const struct plot *p, struct target *t, const struct shmview_view *v)
{
    (void)v;
    return fail_text(
        p->c,
        "this shmviewctl was built without cairo and draws no files: save the data with "
        "'shmviewctl save %s FILE.npy'",
        target_text(t));
}
#endif

static int run(const struct plot *p, const char *text)
{
    CLEANUP_TARGET struct target t = {0};
    struct shmview_view v;
    int status = target_parse(p->c, &p->how, text, &t);
    status = status ? status : target_open(&t, SHMVIEW_READ);
    status = status ? status : transfer_choose(&t);
    status = status ? status : target_view(&t, &v);
    if (status)
        return status;
    status = check(p, &t, &v);
    if (status)
        return status;
    return p->output ? plot_png(p, &t, &v) : plot_terminal(p, &t, &v);
}

static int run_plot(struct context *c, int argc, char **argv)
{
    struct plot p = {.c = c};
    const struct verb_option options[] = {
        OPT_TEXT("output", 'o', &p.output),
        OPT_NUMBER("width", '\0', &p.width, 16, PIXELS_MOST),
        OPT_NUMBER("height", '\0', &p.height, 4, PIXELS_MOST),
        TARGET_OPTIONS(&p.how),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 1, 1))
        return c->status;
    return run(&p, argv[optind]);
}

const struct verb verb_plot = {
    .name = "plot",
    .arguments = "NAME[/[LAYOUT:]VIEW][SLICE]",
    .summary = "Draw a view of one or two dimensions",
    .help = "  -o, --output FILE         draw a PNG; '-' is standard output\n"
            "      --width N             columns, or pixels of a PNG (800)\n"
            "      --height N            lines (20), or pixels of a PNG (500)\n" TARGET_HELP,
    .run = run_plot,
};
