/* SPDX-License-Identifier: Apache-2.0 */
/* get: elements of a view, of all views of the phase, or bytes. */
#include <inttypes.h>
#include <string.h>

#include "cli/text/array_text.h"
#include "cli/text/hexdump.h"
#include "cli/text/target.h"

#define DUMP_BYTES 512 /* of a segment without layouts, unless --all */
#define MARGIN     2   /* of the elements below the name of their view */

struct get {
    struct context *c;
    bool json, hex, all;
    size_t width;
};

static void print_string(const char *text, FILE *out)
{
    json_t *json = json_string(text);
    if (!json || json_dumpf(json, out, JSON_ENCODE_ANY))
        fputs("null", out);
    json_decref(json);
}

/* What is known of a view beside its elements, in JSON. */
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

/* What takes long to print is copied, and the lock is given back. */
static int settle(const struct get *g, struct target *t, struct shmview_view *views, size_t n)
{
    int status = 0;
    if (!t->is_locked || !(g->all || g->json))
        return 0;
    for (size_t i = 0; status == 0 && i < n; i++)
        status = target_copy(t, &views[i]);
    target_unlock(t);
    return status;
}

/* The view, or the part of it, that was asked for. */
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

/* "A f4[10,20]" */
static void print_title(const struct shmview_view_description *d, FILE *out)
{
    fprintf(out, "%s  %s[", d->name, d->format);
    for (uint32_t i = 0; i < d->ndim; i++)
        fprintf(out, "%s%" PRId64, i ? "," : "", d->shape[i]);
    fputs("]\n", out);
}

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
            print_title(layout->views[i], out);
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

/* Every view of the layout. */
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

/* Bytes, as a segment without layouts has them. */
static int get_bytes(const struct get *g, struct target *t, FILE *out)
{
    struct shmview_view v;
    int status = target_view(t, &v);
    if (status)
        return status;
    if (g->json || v.ndim != 1 || !shmview_is_contiguous(&v))
        return get_one(g, t, out);
    uint64_t n = v.nbytes, shown = g->all || n <= DUMP_BYTES ? n : DUMP_BYTES;
    uint64_t first = (uint64_t)(v.data - (unsigned char *)shmview_data(t->segment));
    status = settle(g, t, &v, 1);
    if (status)
        return status;
    hexdump(v.data, shown, first, out);
    if (shown < n)
        fprintf(out, "... %" PRIu64 " bytes more: --all, or a part: '%s[%" PRIu64 ":]'\n",
                n - shown, t->name, first + shown);
    return 0;
}

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

/* What is long is written as it comes; what is short only after the lock was given back. */
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
    .summary = "Print elements of a view, of all views of the phase, or bytes",
    .help = "  -A, --all                 leave nothing out\n"
            "  -x, --hex                 the bytes of each element\n"
            "  -J, --json                all elements, nested lists\n" TARGET_HELP,
    .run = run_get,
};
