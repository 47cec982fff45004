/* SPDX-License-Identifier: Apache-2.0 */
/* get: prints elements of a view, of all views of the current layout, or bytes.
 *
 * Other programs wait while this one holds the lock, and standard output may be a pipe whose reader
 * is slow. Therefore the lock is never held while text is written to standard output:
 *
 *   the summary, which is short    is printed to memory under the lock, and written after that
 *   --all and --json               copy the elements under the lock, and print the copies
 *
 * Copies cost as much memory as the elements; their text would usually cost several times that.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/text/array_text.h"
#include "cli/text/hexdump.h"
#include "cli/text/target.h"

#define DUMP_BYTES 512 /* bytes that are printed without --all */
#define MARGIN     2   /* of the elements below the name of their view */

/* The command line. */
struct get {
    struct context *c;
    bool json, hex, all;
    size_t width; /* columns of the terminal */
};

/* Prints text as a JSON string, with its quotes. If memory is short, prints null, so that the
 * output stays valid JSON. */
static void print_string(const char *text, FILE *out)
{
    json_t *json = json_string(text);
    if (!json || json_dumpf(json, out, JSON_ENCODE_ANY))
        fputs("null", out);
    json_decref(json);
}

/* Prints the members of the JSON object that come before the elements. It is printed piece by piece
 * because jansson would need a value for each element. Names of segments, layouts and views need no
 * escapes: they have letters, digits and "._-" only. */
static void print_json_head(const struct target *t, const char *layout, const char *view,
                            const struct shmview_view *v, FILE *out)
{
    fprintf(out, "{\"segment\": \"%s\", ", t->name);
    if (layout[0])
        fprintf(out, "\"layout\": \"%s\", ", layout);
    if (view[0])
        fprintf(out, "\"view\": \"%s\", ", view);
    fputs("\"format\": ", out);
    print_string(v->format, out);
    fputs(", \"shape\": [", out);
    for (uint32_t d = 0; d < v->ndim; d++)
        fprintf(out, "%s%td", d ? ", " : "", v->shape[d]);
    fputs("], \"data\": ", out);
}

/* Prints the elements of v, without a newline at the end; with --json the whole object. margin is
 * the number of columns before each line but the first. Returns 0 or the exit status. */
static int print_view(const struct get *g, const struct target *t, const char *layout,
                      const char *view, const struct shmview_view *v, unsigned margin, FILE *out)
{
    const struct array_style style = {
        .width = g->width > margin ? g->width - margin : 1,
        .all = g->all,
        .is_hex = g->hex,
        .margin = margin,
    };
    int r;
    if (g->json) {
        print_json_head(t, layout, view, v, out);
        r = array_print_json(v, g->hex, out);
        fputc('}', out);
    } else {
        r = array_print(v, &style, out);
    }
    return r ? fail_call(g->c, r) : 0;
}

/* Replaces the views by copies and gives the lock back, if all elements will be printed. Otherwise
 * the lock stays taken; see the top of this file. Returns 0 or the exit status. */
static int settle(const struct get *g, struct target *t, struct shmview_view *views, size_t n)
{
    int status = 0;
    if (!target_holds(t) || !(g->all || g->json))
        return 0;
    for (size_t i = 0; status == 0 && i < n; i++)
        status = target_copy(t, &views[i]);
    target_unlock(t);
    return status;
}

/* Prints the view, or the part of it, that the user named. Returns 0 or the exit status. */
static int get_one(const struct get *g, struct target *t, FILE *out)
{
    struct shmview_view v;
    int status = target_view(t, &v);
    status = status ? status : settle(g, t, &v, 1);
    status = status ? status : print_view(g, t, t->found, t->view, &v, 0, out);
    if (status == 0)
        fputc('\n', out);
    return status;
}

/* Prints "A  f4[10,20]" and a newline. */
static void print_title(const char *name, const struct shmview_view *v, FILE *out)
{
    fprintf(out, "%s  %s[", name, v->format);
    for (uint32_t i = 0; i < v->ndim; i++)
        fprintf(out, "%s%td", i ? "," : "", v->shape[i]);
    fputs("]\n", out);
}

/* Prints the n_views views of a layout, in its order. Returns 0 or the exit status. */
static int print_layout(const struct get *g, const struct target *t,
                        const struct shmview_layout_description *layout,
                        const struct shmview_view *views, FILE *out)
{
    int status = 0;
    if (g->json)
        fprintf(out, "{\"segment\": \"%s\", \"layout\": \"%s\", \"views\": [", t->name,
                layout->name);
    for (size_t i = 0; status == 0 && i < layout->n_views; i++) {
        if (g->json && i)
            fputs(", ", out);
        if (!g->json) {
            print_title(layout->views[i]->name, &views[i], out);
            fprintf(out, "%*s", MARGIN, "");
        }
        status = print_view(g, t, layout->name, layout->views[i]->name, &views[i], MARGIN, out);
        if (!g->json)
            fputc('\n', out);
    }
    if (g->json)
        fputs("]}\n", out);
    return status;
}

/* Opens all views of the layout before it prints the first one, so that all of them are copied
 * under one lock and fit each other. Returns 0 or the exit status. */
static int get_layout(const struct get *g, struct target *t,
                      const struct shmview_layout_description *layout, FILE *out)
{
    CLEANUP_FREE struct shmview_view *views = calloc(layout->n_views + 1, sizeof *views);
    int status = views ? 0 : fail_memory(g->c);
    for (size_t i = 0; status == 0 && i < layout->n_views; i++)
        status = target_open_view(t, layout->name, layout->views[i]->name, &views[i]);
    status = status ? status : settle(g, t, views, layout->n_views);
    return status ? status : print_layout(g, t, layout, views, out);
}

/* Prints bytes, of a segment without layouts or of a part of a segment: like hexdump, or as
 * elements if they are not one run of bytes. Returns 0 or the exit status. */
static int get_bytes(const struct get *g, struct target *t, FILE *out)
{
    struct shmview_view v;
    int status = target_view(t, &v);
    if (status)
        return status;
    if (g->json || v.ndim != 1 || !shmview_is_contiguous(&v))
        return get_one(g, t, out);
    uint64_t n = v.nbytes, shown = g->all || n <= DUMP_BYTES ? n : DUMP_BYTES;
    /* before settle(), after which v may be a copy */
    uint64_t first = (uint64_t)(v.data - (unsigned char *)shmview_data(t->segment));
    status = settle(g, t, &v, 1);
    if (status)
        return status;
    hexdump(v.data, shown, first, out);
    if (shown < n)
        fprintf(out,
                "... %" PRIu64 " more bytes: print them with --all, or a part: '%s[%" PRIu64
                ":]'\n",
                n - shown, t->name, first + shown);
    return 0;
}

/* Prints what the argument names: a view, the views of a layout, or bytes. */
static int get(const struct get *g, struct target *t, FILE *out)
{
    const struct shmview_layout_description *layout = NULL;
    if (t->view[0] || t->how->as)
        return get_one(g, t, out);
    int status = t->slice.n ? 0 : target_layout(t, &layout);
    if (status)
        return status;
    return layout ? get_layout(g, t, layout, out) : get_bytes(g, t, out);
}

/* Prints to standard output directly if settle() has given the lock back; otherwise to memory,
 * which is written after the lock is given back. Returns the exit status. */
static int run(const struct get *g, struct target *t)
{
    char *text = NULL;
    size_t n;
    int status = target_open(t, SHMVIEW_READ);
    if (status)
        return status;
    if (g->all || g->json)
        return get(g, t, stdout);
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return fail_memory(g->c);
    status = get(g, t, out);
    if (fclose(out) && status == 0)
        status = fail_memory(g->c);
    target_unlock(t);
    if (status == 0)
        fwrite(text, 1, n, stdout);
    free(text);
    return status;
}

static int run_get(struct context *c, int argc, char **argv)
{
    struct target_options how = {0};
    struct get g = {.c = c, .width = terminal_width()};
    const struct verb_option options[] = {
        OPT_FLAG("json", 'J', &g.json),
        OPT_FLAG("hex", 'x', &g.hex),
        OPT_FLAG("all", 'A', &g.all),
        TARGET_OPTIONS(&how),
        OPT_END,
    };
    CLEANUP_TARGET struct target t = {0};
    if (!options_read(c, argc, argv, options, 1, 1))
        return c->status;
    int status = target_parse(c, &how, argv[optind], &t);
    return status ? status : run(&g, &t);
}

const struct verb verb_get = {
    .name = "get",
    .arguments = "NAME[/[LAYOUT:]VIEW][SLICE]",
    .summary = "Print elements of a view or of all current views, or bytes",
    .help = "  -A, --all                 print every element\n"
            "  -x, --hex                 print the bytes of each element\n"
            "  -J, --json                print all elements as nested lists\n" TARGET_HELP,
    .run = run_get,
};
