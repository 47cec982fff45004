/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with the columns that the user selects: aligned for people, or as JSON for programs.
 *
 * One list of cells makes both forms, so that they cannot differ. libsmartcols draws the table; it
 * also escapes control characters in texts that other programs chose. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/shell/cli.h"

enum cell_kind {
    CELL_TEXT,
    CELL_NUMBER,
    CELL_BYTES,    /* "1.5M"; a number with --bytes and in JSON */
    CELL_DURATION, /* microseconds; shown as "5min", with --raw and in JSON as seconds */
    CELL_TIME,     /* microseconds of CLOCK_REALTIME */
    CELL_MODE,     /* of a file, octal; in JSON a string */
    CELL_FLAG,     /* 0 or 1 */
};

/* Whether a column is shown without -o. One that is COLUMN_IF_ANY comes last, and only if a row has
 * something in it. JSON and --raw do not have it without -o, because programs read them. */
enum column_default {
    COLUMN_NO = false,
    COLUMN_YES = true,
    COLUMN_IF_ANY,
};

/* One column that a table can have. Static. */
struct column {
    const char *name; /* "LOCK-OWNER"; in JSON "lock_owner" */
    enum cell_kind kind;
    enum column_default is_default;
    const char *help;
};

/* The value of one cell. A negative number, and NULL or "", mean unknown: "-", in JSON null. */
struct cell {
    int64_t number;
    const char *text;
    const char *color; /* of libsmartcols: "red"; NULL: none */
};

/* The options that all verbs with a table have. */
struct table_options {
    bool json;
    bool raw;
    bool bytes;
    bool no_headings;
    const char *columns; /* "NAME,SIZE", "+MODE" or NULL */
};

/* Rows of struct verb_option; o is a struct table_options. */
#define TABLE_OPTIONS(o)                                                                           \
    OPT_FLAG("json", 'J', &(o)->json), OPT_FLAG("raw", 'r', &(o)->raw),                            \
        OPT_FLAG("bytes", 'b', &(o)->bytes), OPT_FLAG("noheadings", 'n', &(o)->no_headings),       \
        OPT_TEXT("output", 'o', &(o)->columns)
#define TABLE_HELP                                                                                 \
    "  -o, --output COLUMNS      these columns, with commas; +COLUMNS: these as well;\n"           \
    "                            'help' lists them\n"                                              \
    "  -b, --bytes               sizes in bytes\n"                                                 \
    "  -n, --noheadings          no line of headings\n"                                            \
    "  -r, --raw                 one space between columns, nothing aligned\n"                     \
    "  -J, --json                print JSON, sizes in bytes, durations in seconds\n"

struct table;

/* Makes a table of the columns that options select out of n. key is the name of its rows in JSON.
 * options and columns are borrowed until table_free(). Returns 0 with *ret_table, or -1 with
 * *ret_status, with which the caller must exit: an error was printed, or the list for '-o help'. */
int table_new(struct context *c, const struct table_options *options, const char *key,
              const struct column *columns, size_t n, struct table **ret_table, int *ret_status);

/* Whether the table shows the column with this index, or does if a row has something in it: the
 * cells of another one need not be found out. */
bool table_shows(const struct table *table, size_t column);

/* Adds a row. cells has one cell for each of the n columns, also for those that are not shown.
 * Copies the texts. Returns 0, or the exit status. */
int table_add(struct table *table, const struct cell *cells);

/* Prints the table. Returns the exit status. */
int table_print(struct table *table);

/* table may be NULL. */
void table_free(struct table *table);
static inline void table_freep(struct table **table)
{
    table_free(*table);
}
#define CLEANUP_TABLE CLEANUP(table_freep)

/* Make a cell; the other member is unknown. */
static inline struct cell cell_number(int64_t number)
{
    return (struct cell){.number = number};
}
static inline struct cell cell_text(const char *text)
{
    return (struct cell){.number = -1, .text = text};
}

#endif
