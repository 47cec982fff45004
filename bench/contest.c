/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

bool bench_wants(const struct bench *bench, const char *what)
{
    char pattern[128];
    if (!bench->only)
        return true;
    snprintf(pattern, sizeof pattern, "*%s*", bench->only);
    return fnmatch(pattern, what, 0) == 0;
}

bool bench_wants_placed(const struct bench *bench, const char *what)
{
    bool wanted = false;
    for (enum place place = PLACE_TWO; place <= PLACE_FREE; place++) {
        char name[64];
        snprintf(name, sizeof name, "%s, %s", what, place_name(place));
        wanted |= bench_wants(bench, name);
    }
    return wanted;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* figures[contestant][round]; scratch has room for one contestant's. */
static int add_row(struct bench *bench, const struct contest *contest, size_t i, unsigned rounds,
                   const double *figures, double *scratch)
{
    const double *reference = figures + i * rounds;
    struct row row = {.unit = contest->unit, .target = contest->list[i].target};
    snprintf(row.what, sizeof row.what, "%s", contest->what);
    snprintf(row.reference_name, sizeof row.reference_name, "%s", contest->list[i].name);
    for (unsigned r = 0; r < rounds; r++)
        scratch[r] = figures[r] / reference[r];
    row.ratio = median(scratch, rounds);
    row.ratio_min = scratch[0];
    row.ratio_max = scratch[rounds - 1];
    for (unsigned r = 0; r < rounds; r++)
        scratch[r] = figures[r] * contest->scale;
    row.ours = median(scratch, rounds);
    for (unsigned r = 0; r < rounds; r++)
        scratch[r] = reference[r] * contest->scale;
    row.reference = median(scratch, rounds);
    return table_add(&bench->table, &row);
}

static int run(struct bench *bench, const struct contest *contest, unsigned rounds, double *figures)
{
    double unused;
    for (size_t i = 0; i < contest->n; i++)
        if (contest->list[i].run(contest->list[i].arg, &unused))
            return -1;
    for (unsigned r = 0; r < rounds; r++)
        for (size_t i = 0; i < contest->n; i++)
            if (contest->list[i].run(contest->list[i].arg, &figures[i * rounds + r]))
                return -1;
    for (size_t i = 1; i < contest->n; i++)
        if (add_row(bench, contest, i, rounds, figures, figures + contest->n * rounds))
            return -1;
    return 0;
}

void contest_run(struct bench *bench, const struct contest *contest)
{
    unsigned rounds = bench->rounds  ? bench->rounds
                      : bench->quick ? contest->rounds_quick
                                     : contest->rounds;
    if (!bench_wants(bench, contest->what))
        return;
    double *figures = calloc((contest->n + 1) * rounds, sizeof *figures);
    if (!figures || run(bench, contest, rounds, figures)) {
        failed("not measured: %s", contest->what);
        bench->n_failed++;
    }
    free(figures);
}
