/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/table.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include <libsmartcols.h>

struct table {
    struct context *c;
    const struct table_options *options;
    const struct column *columns;
    size_t n;
    size_t *wanted; /* indices of the selected columns, in the order in which they are shown */
    size_t n_wanted;
    size_t n_certain; /* the columns after these are shown if a row has something in them */
    bool *is_filled;  /* of each selected column: a row has */
    struct libscols_table *scols;
};

/* --- Which columns ------------------------------------------------------- */

/* Prints the list for '-o help'. Returns EXIT_OK, with which the program ends. */
static int list_columns(const struct table *t)
{
    static const char *const notes[] = {" (with -o)", "", " (if any has it, or with -o)"};
    for (size_t i = 0; i < t->n; i++)
        printf("%-14s %s%s\n", t->columns[i].name, t->columns[i].help,
               notes[t->columns[i].is_default]);
    return EXIT_OK;
}

/* Selects one column. Returns GO_ON, or the exit status. */
static int want_column(struct table *t, const char *name, size_t length)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *has = t->columns[i].name;
        if (strlen(has) == length && strncasecmp(has, name, length) == 0) {
            for (size_t k = 0; k < t->n_wanted; k++)
                if (t->wanted[k] == i)
                    return fail_usage(t->c, "column %s is named twice", has);
            t->wanted[t->n_wanted++] = i;
            return GO_ON;
        }
    }
    return fail_usage(t->c, "there is no column '%.*s': '-o help' lists them", (int)length, name);
}

/* Selects the columns of -o, or the default ones. Returns GO_ON, or the exit status. */
static int want_columns(struct table *t)
{
    const char *text = t->options->columns;
    if (text && strcmp(text, "help") == 0)
        return list_columns(t);
    bool wants_default = !text || text[0] == '+';
    for (size_t i = 0; i < t->n && wants_default; i++)
        if (t->columns[i].is_default == COLUMN_YES)
            t->wanted[t->n_wanted++] = i;
    if (text && text[0] == '+')
        text++;
    while (text) {
        size_t length = strcspn(text, ",");
        int r = want_column(t, text, length);
        if (r != GO_ON)
            return r;
        text = text[length] ? text + length + 1 : NULL;
    }
    t->n_certain = t->n_wanted;
    wants_default = wants_default && !t->options->json && !t->options->raw;
    for (size_t i = 0; i < t->n && wants_default; i++)
        if (t->columns[i].is_default == COLUMN_IF_ANY && !table_shows(t, i))
            t->wanted[t->n_wanted++] = i;
    return GO_ON;
}

/* --- Making it ----------------------------------------------------------- */

static bool is_right(enum cell_kind kind)
{
    return kind == CELL_NUMBER || kind == CELL_BYTES || kind == CELL_DURATION;
}

static int json_kind(enum cell_kind kind)
{
    if (kind == CELL_FLAG)
        return SCOLS_JSON_BOOLEAN;
    return is_right(kind) ? SCOLS_JSON_NUMBER : SCOLS_JSON_STRING;
}

static int make_scols(struct table *t, const char *key)
{
    const struct table_options *o = t->options;
    t->scols = scols_new_table();
    if (!t->scols || scols_table_set_name(t->scols, key) ||
        scols_table_enable_json(t->scols, o->json) ||
        scols_table_enable_raw(t->scols, o->raw && !o->json) ||
        scols_table_enable_noheadings(t->scols, o->no_headings) ||
        scols_table_enable_colors(t->scols, wants_color() && !o->raw && !o->json))
        return -1;
    for (size_t i = 0; i < t->n_wanted; i++) {
        const struct column *column = &t->columns[t->wanted[i]];
        struct libscols_column *made = scols_table_new_column(
            t->scols, column->name, 0, is_right(column->kind) ? SCOLS_FL_RIGHT : 0);
        if (!made || scols_column_set_json_type(made, json_kind(column->kind)))
            return -1;
    }
    return 0;
}

int table_new(struct context *c, const struct table_options *options, const char *key,
              const struct column *columns, size_t n, struct table **ret_table, int *ret_status)
{
    struct table *t = calloc(1, sizeof *t);
    if (t)
        *t = (struct table){.c = c, .options = options, .columns = columns, .n = n};
    if (!t || !(t->wanted = calloc(n, sizeof *t->wanted)) ||
        !(t->is_filled = calloc(n, sizeof *t->is_filled))) {
        *ret_status = fail_memory(c);
        table_free(t);
        return -1;
    }
    *ret_status = want_columns(t);
    if (*ret_status == GO_ON && make_scols(t, key))
        *ret_status = fail_memory(c);
    if (*ret_status != GO_ON) {
        table_free(t);
        return -1;
    }
    *ret_table = t;
    return 0;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    scols_unref_table(table->scols);
    free(table->wanted);
    free(table->is_filled);
    free(table);
}

/* --- Rows ---------------------------------------------------------------- */

/* Returns the text of a cell, in buffer of HUMAN_BYTES or its own; NULL if it is unknown. In JSON
 * numbers and flags are plain digits, which libsmartcols prints by the type of the column. */
static const char *cell_show(const struct table *t, enum cell_kind kind, const struct cell *cell,
                             char *buffer)
{
    const struct table_options *o = t->options;
    if (kind == CELL_TEXT)
        return cell->text && cell->text[0] ? cell->text : NULL;
    if (cell->number < 0)
        return NULL;
    if (kind == CELL_BYTES && !o->json && !o->bytes)
        return human_bytes(buffer, cell->number);
    if (kind == CELL_DURATION && !o->json && !o->raw)
        return human_duration(buffer, cell->number);
    if (kind == CELL_TIME)
        return iso_time(buffer, cell->number);
    if (kind == CELL_DURATION)
        snprintf(buffer, HUMAN_BYTES, "%" PRId64 ".%06" PRId64, cell->number / 1000000,
                 cell->number % 1000000);
    else if (kind == CELL_MODE)
        snprintf(buffer, HUMAN_BYTES, "%04" PRIo64, (uint64_t)cell->number);
    else if (kind == CELL_FLAG && !o->json)
        snprintf(buffer, HUMAN_BYTES, "%s", cell->number ? "yes" : "no");
    else
        snprintf(buffer, HUMAN_BYTES, "%" PRId64, cell->number);
    return buffer;
}

bool table_shows(const struct table *table, size_t column)
{
    for (size_t i = 0; i < table->n_wanted; i++)
        if (table->wanted[i] == column)
            return true;
    return false;
}

int table_add(struct table *t, const struct cell *cells)
{
    struct libscols_line *line = scols_table_new_line(t->scols, NULL);
    int r = line ? 0 : -1;
    for (size_t i = 0; r == 0 && i < t->n_wanted; i++) {
        char buffer[HUMAN_BYTES];
        const struct cell *cell = &cells[t->wanted[i]];
        const char *shown = cell_show(t, t->columns[t->wanted[i]].kind, cell, buffer);
        t->is_filled[i] |= shown != NULL;
        if (!shown && !t->options->json)
            shown = "-";
        r = shown ? scols_line_set_data(line, i, shown) : 0;
        if (r == 0 && cell->color)
            r = scols_cell_set_color(scols_line_get_cell(line, i), cell->color);
    }
    return r ? fail_memory(t->c) : 0;
}

int table_print(struct table *t)
{
    for (size_t i = t->n_certain; i < t->n_wanted; i++)
        if (!t->is_filled[i])
            scols_column_set_flags(scols_table_get_column(t->scols, i), SCOLS_FL_HIDDEN);
    return scols_print_table(t->scols) ? fail_memory(t->c) : EXIT_OK;
}
