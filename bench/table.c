/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static const char *verdict(const struct row *row)
{
    switch (row->target.kind) {
    case TARGET_RATIO:
        return row->ratio <= row->target.bound ? "ok" : "MISSED";
    case TARGET_VALUE:
        return row->ours <= row->target.bound ? "ok" : "MISSED";
    case TARGET_LEAST:
        return row->ours >= row->target.bound ? "ok" : "MISSED";
    default:
        return "";
    }
}

/* Three digits that count. */
static const char *figure(char *ret, size_t bytes, double v)
{
    int digits = v >= 100 || v == 0 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;
    snprintf(ret, bytes, "%.*f", digits, v);
    return ret;
}

void table_begin(const struct table *table)
{
    if (table->form == FORM_TEXT)
        printf("%-34s %8s  %-26s %8s  %-9s %6s  %-12s %-8s\n", "what", "ours", "reference", "",
               "unit", "ratio", "min..max", "target");
    else if (table->form == FORM_MARKDOWN)
        puts("| row | ours | reference | | unit | ratio | min..max | target |\n"
             "|---|---|---|---|---|---|---|---|");
    fflush(stdout);
}

static void print_row(const struct row *row, bool markdown)
{
    char ours[32], reference[32] = "", ratio[16] = "", range[48] = "", target[32] = "";
    figure(ours, sizeof ours, row->ours);
    if (row->reference_name[0]) {
        figure(reference, sizeof reference, row->reference);
        snprintf(ratio, sizeof ratio, "%.2f", row->ratio);
        snprintf(range, sizeof range, "%.2f..%.2f", row->ratio_min, row->ratio_max);
    }
    if (row->target.kind == TARGET_RATIO)
        snprintf(target, sizeof target, "<= %.2fx", row->target.bound);
    else if (row->target.kind == TARGET_VALUE)
        snprintf(target, sizeof target, "<= %g", row->target.bound);
    else if (row->target.kind == TARGET_LEAST)
        snprintf(target, sizeof target, ">= %g", row->target.bound);
    if (markdown)
        printf("| %s | %s | %s | %s | %s | %s | %s | %s %s |\n", row->what, ours,
               row->reference_name, reference, row->unit, ratio, range, target, verdict(row));
    else
        printf("%-34s %8s  %-26s %8s  %-9s %6s  %-12s %-8s %s\n", row->what, ours,
               row->reference_name, reference, row->unit, ratio, range, target, verdict(row));
    fflush(stdout);
}

int table_add(struct table *table, const struct row *row)
{
    struct row *rows = realloc(table->rows, (table->n + 1) * sizeof *rows);
    if (!rows)
        return failed("out of memory");
    table->rows = rows;
    rows[table->n++] = *row;
    table->n_missed += verdict(row)[0] == 'M';
    if (table->form != FORM_JSON)
        print_row(row, table->form == FORM_MARKDOWN);
    return 0;
}

static json_t *write_row(const struct row *row)
{
    json_t *o =
        json_pack("{s:s, s:f, s:s}", "what", row->what, "ours", row->ours, "unit", row->unit);
    if (row->reference_name[0])
        json_object_update_new(o, json_pack("{s:s, s:f, s:f, s:f, s:f}", "reference_name",
                                            row->reference_name, "reference", row->reference,
                                            "ratio", row->ratio, "ratio_min", row->ratio_min,
                                            "ratio_max", row->ratio_max));
    if (row->target.kind != TARGET_NONE)
        json_object_update_new(
            o, json_pack("{s:s, s:s, s:f, s:b}", "target_of",
                         row->target.kind == TARGET_RATIO ? "ratio" : "ours", "bound",
                         row->target.kind == TARGET_LEAST ? "least" : "most", "target",
                         row->target.bound, "ok", verdict(row)[0] == 'o'));
    return o;
}

void table_end(struct table *table)
{
    if (table->form == FORM_JSON) {
        json_t *list = json_array();
        for (size_t i = 0; i < table->n; i++)
            json_array_append_new(list, write_row(&table->rows[i]));
        json_t *root = json_pack("{s:o}", "rows", list);
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(root);
    }
    free(table->rows);
    table->rows = NULL;
    table->n = 0;
}
