/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of shmviewctl top, without a terminal: the figures of two moments, the selected rows
 * in order, and the lines that show them. Neither top.c nor top_page.c prints anything, so tests
 * compare rows and lines.
 *
 * Rates, such as changes per second, need two moments. Therefore the figures before the current
 * ones are kept too. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <shmview/stats.h>

#include "cli/shell/cli.h"

/* The columns by which rows are sorted. */
enum top_key {
    TOP_NAME,
    TOP_SIZE,
    TOP_RESIDENT,
    TOP_ATTACHED,
    TOP_HELD,
    TOP_WAITING,
    TOP_CHANGES,
    TOP_DEATHS,
    TOP_AGE,
    N_TOP_KEYS
};

/* The words for --sort, in the order of enum top_key; end with NULL. */
extern const char *const top_key_names[];

/* One segment that fits the filter. The pointers lead into top->now. */
struct top_row {
    const struct shmview_segment_stats *segment;
    const struct shmview_party_stats *holder; /* the first of the holders, or NULL */
    int64_t n_holders, n_waiters;
    int64_t held_us, waited_us; /* the longest time; -1: none, or not known */
    double changes;             /* per second; -1: not known yet */
};

#define TOP_FILTER 129

struct top_streams;

/* The caller sets key, name_most, wants_bytes and streams; struct screen changes key, order and
 * filter and then calls top_arrange(). */
struct top {
    const struct shmview_stats *now, *before; /* owned; before is NULL until the second update */
    int64_t now_us, before_us;                /* CLOCK_REALTIME of the two */
    struct top_row *rows; /* the segments that fit the filter, in order; owned */
    size_t n_rows;
    enum top_key key;
    bool is_reversed;
    char filter[TOP_FILTER]; /* a pattern of the shell, or a part of the name; "": all */
    const char *trouble;     /* why the figures are old; NULL: they are current */
    bool wants_bytes;
    struct top_streams *streams; /* among the rows; the caller's */
    int name_width, name_most;   /* columns for names: as the longest needs, at most name_most */
};

/* Frees the figures and the rows. */
void top_deinit(struct top *top);

/* Replaces the figures by stats, which top owns from now on, also on failure. now_us is the time of
 * stats. Returns 0, or -1 if memory is short. */
int top_update(struct top *top, const struct shmview_stats *stats, int64_t now_us);
/* Makes the rows again after a change of the filter or the order. Returns 0, or -1 if memory is
 * short. */
int top_arrange(struct top *top);
/* Returns the row of the segment with this id, or SIZE_MAX. Segments keep their id, but not their
 * row. */
size_t top_find(const struct top *top, int64_t id);

/* --- Pages --------------------------------------------------------------- */

/* How a line is shown. top_screen.c chooses the colours. */
enum top_style {
    TOP_PLAIN,
    TOP_BOLD,
    TOP_HEADING,
    TOP_WARN,
    TOP_BAD,
    TOP_DIM
};

#define TOP_LINE 400 /* bytes; a longer line is cut */

struct top_line {
    enum top_style style;
    char text[TOP_LINE];
};

#define TOP_HEADER 4 /* lines before the rows: three of the daemon, one of columns */

/* Writes a line, as printf() does. */
__attribute__((format(printf, 3, 4))) void top_put(struct top_line *line, enum top_style style,
                                                   const char *format, ...);
/* Writes a number of bytes, exact or rounded, or "-" if it is negative. Returns buffer. */
const char *top_bytes(const struct top *top, char buffer[HUMAN_BYTES], int64_t n);

/* Writes the lines above the rows. top must have figures. */
void top_header(const struct top *top, struct top_line lines[TOP_HEADER]);
/* Writes the line of one row. */
void top_row_line(const struct top *top, const struct top_row *row, struct top_line *line);

/* Writes the page of one segment, in at most `room` lines: facts, attachments, and which program
 * waits for which. Returns the number of lines; 0 if room is less than 6. */
size_t top_segment(const struct top *top, const struct shmview_segment_stats *segment,
                   struct top_line *lines, size_t room);

#endif
