/* SPDX-License-Identifier: Apache-2.0 */
/* set: sets elements one by one. fill: sets all elements to one value.
 *
 * All values are converted before the first element is changed, so that nothing is changed if one
 * does not fit. They are converted in a private copy of the elements, which is then copied back as
 * a whole. This happens under the lock, because the type of the elements is known only then: the
 * phase decides which view a name means. */
#include <inttypes.h>
#include <string.h>

#include "cli/data/value.h"
#include "cli/text/target.h"

/* The command line. */
struct set {
    struct context *c;
    struct target_options how;
    bool notify;
    bool is_fill;
    char **values;
    size_t n_values;
};

/* Number of elements. */
static uint64_t count(const struct shmview_view *v)
{
    return v->nbytes / v->itemsize;
}

/* Computes the index of element i in C order, in which the last index varies fastest. */
static void index_of(const struct shmview_view *v, uint64_t i, ptrdiff_t *ret)
{
    for (uint32_t d = v->ndim; d-- > 0; i /= (uint64_t)v->shape[d])
        ret[d] = (ptrdiff_t)(i % (uint64_t)v->shape[d]);
}

/* Fails unless there is exactly one value for each element. fill needs no check: it has one value.
 */
static int check_count(const struct set *s, struct target *t, const struct shmview_view *v)
{
    if (s->is_fill || count(v) == s->n_values)
        return 0;
    return fail_usage(s->c,
                      "%s has %" PRIu64 " elements, and %zu value%s given: 'fill' sets all "
                      "elements to one value",
                      target_text(t), count(v), s->n_values, s->n_values == 1 ? " was" : "s were");
}

/* Converts the values in a copy of the elements, and copies all of them back at once. For fill the
 * copy has one element. Returns 0 or the exit status. */
static int write_values(const struct set *s, struct target *t, struct shmview_view *v)
{
    struct shmview_view made = *v;
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    struct problem problem;
    int status, r;
    if (v->flags & SHMVIEW_VIEW_READ_ONLY)
        return fail_text(s->c, "view '%s' was declared read-only: write through another one",
                         t->view);
    if (s->is_fill)
        for (uint32_t d = 0; d < made.ndim; d++) { /* the first element */
            if (made.shape[d] == 0)
                return 0;
            shmview_view_slice(&made, d, 0, 1, SHMVIEW_OMIT, &made);
        }
    status = target_copy(t, &made);
    for (size_t i = 0; status == 0 && i < s->n_values; i++) {
        index_of(&made, i, index);
        if (value_set(&made, index, s->values[i], &problem))
            status = fail_text(s->c, "%s: value %zu: %s", target_text(t), i + 1, problem.text);
    }
    if (status)
        return status;
    r = s->is_fill ? shmview_fill(v, made.data) : shmview_copy(v, &made);
    if (r == 0 && s->notify)
        r = shmview_notify(t->segment);
    return r ? fail_call(s->c, r) : 0;
}

/* Refuses a segment that is named without a view, a part or --as. Returns the exit status. */
static int run(struct set *s, const char *text)
{
    CLEANUP_TARGET struct target t = {0};
    struct shmview_view v;
    int status = target_parse(s->c, &s->how, text, &t);
    if (status == 0 && !t.view[0] && !t.how->as && !t.slice.n)
        status = fail_usage(s->c, "'%s': name a view, or bytes as in '%s[0:4]', or give --as", text,
                            text);
    status = status ? status : target_open(&t, SHMVIEW_WRITE);
    status = status ? status : target_view(&t, &v);
    status = status ? status : check_count(s, &t, &v);
    return status ? status : write_values(s, &t, &v);
}

static int run_verb(struct context *c, int argc, char **argv, bool is_fill)
{
    struct set s = {.c = c, .is_fill = is_fill};
    const struct verb_option options[] = {
        OPT_FLAG("notify", 'N', &s.notify),
        TARGET_OPTIONS(&s.how),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 2, is_fill ? 2 : argc))
        return c->status;
    s.values = argv + optind + 1;
    s.n_values = (size_t)(argc - optind - 1);
    return run(&s, argv[optind]);
}

static int run_set(struct context *c, int argc, char **argv)
{
    return run_verb(c, argc, argv, false);
}

static int run_fill(struct context *c, int argc, char **argv)
{
    return run_verb(c, argc, argv, true);
}

#define HELP                                                                                       \
    "NAME needs a VIEW, a SLICE or --as. Options come before it.\n"                                \
    "Values are 12, 0xff, 2.5, nan, true, 1+2j, text.\n\n"                                         \
    "  -N, --notify              add one to the counter of changes afterwards\n" TARGET_HELP

const struct verb verb_set = {
    .name = "set",
    .arguments = "NAME[/[LAYOUT:]VIEW][SLICE] VALUE...",
    .summary = "Set elements, one value each",
    .help = HELP,
    .run = run_set,
    .stops_at_argument = true,
};

const struct verb verb_fill = {
    .name = "fill",
    .arguments = "NAME[/[LAYOUT:]VIEW][SLICE] VALUE",
    .summary = "Set all elements to one value",
    .help = HELP,
    .run = run_fill,
    .stops_at_argument = true,
};
