/* SPDX-License-Identifier: Apache-2.0 */
/* stats: prints a summary of the elements of views, and a histogram.
 *
 * All views of a layout are examined under one lock, so that the figures belong together, and
 * printed after the lock is given back. The library computes least, largest and sum;
 * cli/data/values adds mean and standard deviation as numpy defines them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/data/scalar.h"
#include "cli/data/values.h"
#include "cli/draw/histogram.h"
#include "cli/text/target.h"

#define BINS_DEFAULT 10
#define INDENT       2

/* The command line. */
struct stats {
    struct context *c;
    struct target_options how;
    bool json;
    int64_t bins; /* 0: no histogram; -1: --bins was not given */
};

/* The figures of one view. They outlive the lock; format is borrowed from the view's segment. */
struct finding {
    char layout[TARGET_VIEW_BYTES], view[TARGET_VIEW_BYTES];
    const char *format;
    uint32_t dtype, ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
    bool is_real; /* the elements are real numbers; otherwise the members below have no meaning */
    struct values_summary s;
    struct histogram histogram; /* n is 0 if there is none */
};

/* Called by values_each() with some of the elements. */
static void visit(void *arg, uint64_t first, const double *values, size_t n)
{
    (void)first;
    histogram_add(arg, values, n);
}

/* Fills *f from a view. Elements that are not real numbers are no error here: a layout may have
 * such views among others. Returns 0 or the exit status. */
static int examine(const struct stats *s, const struct shmview_view *v, struct finding *f)
{
    int r = values_summarize(v, &f->s);
    f->is_real = r != -SHMVIEW_ERR_CONVERSION;
    if (r == 0 && s->bins && !isnan(f->s.finite_min)) {
        histogram_init(&f->histogram, f->s.finite_min, f->s.finite_max, (size_t)s->bins);
        r = values_each(v, &f->histogram, visit);
    }
    f->format = v->format;
    f->dtype = v->dtype;
    f->ndim = v->ndim;
    for (uint32_t d = 0; d < v->ndim; d++)
        f->shape[d] = v->shape[d];
    return r && f->is_real ? fail_call(s->c, r) : 0;
}

/* --- Printing ---------------------------------------------------------------- */

/* Whether `extreme` is the least or largest element exactly. A double would round large integers.
 */
static bool is_int64(const struct finding *f, int64_t extreme)
{
    return shmview_dtype_kind(f->dtype) != SHMVIEW_VALUE_REAL && extreme != INT64_MAX;
}

/* Prints min or max with all its digits, as an element of the view. */
static void print_extreme(const char *what, const struct finding *f, double real, int64_t integer)
{
    const bool is_real = shmview_dtype_kind(f->dtype) == SHMVIEW_VALUE_REAL;
    struct shmview_value x = {.kind = SHMVIEW_VALUE_REAL, .z = {(long double)real}};
    char text[SCALAR_TEXT_BYTES];
    if (is_int64(f, integer))
        x = (struct shmview_value){.kind = SHMVIEW_VALUE_INT, .i = integer};
    printf("%*s%-8s  %s\n", INDENT, "", what,
           scalar_text(is_real ? f->dtype : SHMVIEW_FLOAT64, &x, text));
}

static void print_mean(const char *what, double x)
{
    /* printf() shows the sign of a NaN, which has no meaning */
    printf("%*s%-8s  %.7g\n", INDENT, "", what, isnan(x) ? fabs(x) : x);
}

/* Prints one view for people. */
static void print_finding(const struct target *t, const struct finding *f)
{
    const struct shmview_summary *of = &f->s.of_library;
    printf("%s%s%s  %s[", t->name, f->view[0] ? "/" : "", f->view, f->format);
    for (uint32_t d = 0; d < f->ndim; d++)
        printf("%s%" PRId64, d ? "," : "", f->shape[d]);
    puts("]");
    if (!f->is_real) {
        printf("%*sno real numbers\n", INDENT, "");
        return;
    }
    printf("%*s%-8s  %" PRIu64 "\n", INDENT, "", "elements", of->n);
    if (of->n_nan)
        printf("%*s%-8s  %" PRIu64 "\n", INDENT, "", "nan", of->n_nan);
    if (f->s.n_infinite)
        printf("%*s%-8s  %" PRIu64 "\n", INDENT, "", "infinite", f->s.n_infinite);
    if (of->n == of->n_nan)
        return;
    print_extreme("min", f, of->min, of->min_int64);
    print_extreme("max", f, of->max, of->max_int64);
    print_mean("mean", f->s.mean);
    print_mean("std", f->s.std);
    if (f->histogram.n)
        histogram_print(&f->histogram, terminal_width(), has_utf8(), stdout);
}

/* Makes a JSON number. JSON has no NaN and no infinity: they are null or strings. */
static json_t *json_number(double x)
{
    return isfinite(x) ? json_real(x)
           : isnan(x)  ? json_null()
                       : json_string(x < 0 ? "-inf" : "inf");
}

static json_t *json_extreme(const struct finding *f, double real, int64_t integer)
{
    if (f->s.of_library.n == f->s.of_library.n_nan)
        return json_null();
    return is_int64(f, integer) ? json_integer(integer) : json_number(real);
}

static json_t *json_histogram(const struct histogram *h)
{
    json_t *edges = json_array(), *counts = json_array();
    for (size_t i = 0; i < h->n; i++)
        json_array_append_new(counts, json_integer((json_int_t)h->counts[i]));
    for (size_t i = 0; i <= h->n; i++)
        json_array_append_new(edges, json_real(histogram_edge(h, i)));
    return json_pack("{s:o, s:o}", "edges", edges, "counts", counts);
}

/* Makes the object of one view; without figures if the elements are not real numbers. */
static json_t *json_finding(const struct finding *f)
{
    const struct shmview_summary *of = &f->s.of_library;
    json_t *json = json_pack("{s:s?, s:s?, s:s}", "layout", f->layout[0] ? f->layout : NULL, "view",
                             f->view[0] ? f->view : NULL, "format", f->format);
    json_t *shape = json_array();
    for (uint32_t d = 0; d < f->ndim; d++)
        json_array_append_new(shape, json_integer(f->shape[d]));
    json_object_set_new(json, "shape", shape);
    if (!f->is_real)
        return json;
    json_object_set_new(json, "n", json_integer((json_int_t)of->n));
    json_object_set_new(json, "nan", json_integer((json_int_t)of->n_nan));
    json_object_set_new(json, "infinite", json_integer((json_int_t)f->s.n_infinite));
    json_object_set_new(json, "min", json_extreme(f, of->min, of->min_int64));
    json_object_set_new(json, "max", json_extreme(f, of->max, of->max_int64));
    json_object_set_new(json, "sum", json_number(of->sum));
    json_object_set_new(json, "mean", json_number(f->s.mean));
    json_object_set_new(json, "std", json_number(f->s.std));
    if (f->histogram.n)
        json_object_set_new(json, "histogram", json_histogram(&f->histogram));
    return json;
}

static int print_all(const struct stats *s, const struct target *t, const struct finding *f,
                     size_t n)
{
    if (!s->json) {
        for (size_t i = 0; i < n; i++)
            print_finding(t, &f[i]);
        return 0;
    }
    json_t *views = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(views, json_finding(&f[i]));
    json_t *json = json_pack("{s:s, s:o}", "segment", t->name, "views", views);
    int status = print_json(s->c, json);
    json_decref(json);
    return status;
}

/* --- Examining views ----------------------------------------------------------- */

/* Examines and prints the view that the user named. Here other elements than real numbers are an
 * error. Returns the exit status. */
static int examine_one(const struct stats *s, struct target *t)
{
    CLEANUP_FREE struct finding *f = calloc(1, sizeof *f);
    struct shmview_view v;
    int status = f ? target_view(t, &v) : fail_memory(s->c);
    if (status)
        return status;
    snprintf(f->view, sizeof f->view, "%s", t->view);
    snprintf(f->layout, sizeof f->layout, "%s", t->found);
    status = examine(s, &v, f);
    target_unlock(t);
    if (status == 0 && !f->is_real)
        return fail_text(
            s->c,
            "%s has elements \"%s\", which are not real numbers: name a field of a struct, "
            "as in [field], or see them as floats with --as",
            target_text(t), f->format);
    return status ? status : print_all(s, t, f, 1);
}

/* Examines and prints all views of a layout. Returns the exit status. */
static int examine_layout(const struct stats *s, struct target *t,
                          const struct shmview_layout_description *layout)
{
    CLEANUP_FREE struct finding *f = calloc(layout->n_views + 1, sizeof *f);
    int status = f ? 0 : fail_memory(s->c);
    for (size_t i = 0; status == 0 && i < layout->n_views; i++) {
        struct shmview_view v;
        status = target_open_view(t, layout->name, layout->views[i]->name, &v);
        if (status)
            break;
        snprintf(f[i].view, sizeof f[i].view, "%s", layout->views[i]->name);
        snprintf(f[i].layout, sizeof f[i].layout, "%s", layout->name);
        status = examine(s, &v, &f[i]);
    }
    target_unlock(t);
    return status ? status : print_all(s, t, f, layout->n_views);
}

static int run(struct stats *s, const char *text)
{
    CLEANUP_TARGET struct target t = {0};
    const struct shmview_layout_description *layout = NULL;
    int status = target_parse(s->c, &s->how, text, &t);
    status = status ? status : target_open(&t, SHMVIEW_READ);
    if (status == 0 && !t.view[0] && !t.how->as && !t.slice.n)
        status = target_layout(&t, &layout);
    if (status)
        return status;
    /* several histograms would not fit on a screen */
    if (s->bins < 0)
        s->bins = layout && layout->n_views > 1 ? 0 : BINS_DEFAULT;
    return layout ? examine_layout(s, &t, layout) : examine_one(s, &t);
}

static int run_stats(struct context *c, int argc, char **argv)
{
    struct stats s = {.c = c, .bins = -1};
    const struct verb_option options[] = {
        OPT_NUMBER("bins", 'b', &s.bins, 0, HISTOGRAM_BINS),
        OPT_FLAG("json", 'J', &s.json),
        TARGET_OPTIONS(&s.how),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 1, 1))
        return c->status;
    return run(&s, argv[optind]);
}

const struct verb verb_stats = {
    .name = "stats",
    .arguments = "NAME[/[LAYOUT:]VIEW][SLICE]",
    .summary = "Print figures of the elements of views, with a histogram",
    .help = "  -b, --bins N              bins of histogram, 0: none (10 for one view, else 0)\n"
            "  -J, --json                print JSON\n" TARGET_HELP,
    .run = run_stats,
};
