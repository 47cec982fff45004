/* SPDX-License-Identifier: Apache-2.0 */
/* What top shows, without a terminal: figures of two moments, what is chosen, and pages of lines.
 */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <shmview/stats.h>

#include "cli/shell/cli.h"

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

/* For --sort; ends with NULL. */
extern const char *const top_key_names[];

struct top_row {
    const struct shmview_segment_stats *segment;
    const struct shmview_party_stats *holder; /* of those who hold, the first; NULL */
    int64_t n_holders, n_waiters;
    int64_t held_us, waited_us; /* the longest; -1: nobody, or not known */
    double changes;             /* a second, -1: not known yet */
};

#define TOP_FILTER 129

struct top {
    const struct shmview_stats *now, *before; /* before: NULL at first */
    int64_t now_us, before_us;
    struct top_row *rows; /* that fit the filter, in order */
    size_t n_rows;
    enum top_key key;
    bool is_reversed;
    char filter[TOP_FILTER]; /* a pattern as the shell's, or a part of the name; "": all */
    const char *trouble;     /* why the figures are old; NULL: they are not */
    bool wants_bytes;
    int name_width, name_most; /* columns for names: as the longest needs, at most that many */
};

void top_deinit(struct top *top);

/* New figures, which it owns from now on. Returns 0, or -1: memory is short, and they are freed. */
int top_update(struct top *top, const struct shmview_stats *stats, int64_t now_us);
/* The filter or the order is another one. Returns 0, or -1: memory is short. */
int top_arrange(struct top *top);
/* Which row has the segment with that id; SIZE_MAX: none. */
size_t top_find(const struct top *top, int64_t id);

/* --- Pages --------------------------------------------------------------- */

enum top_style {
    TOP_PLAIN,
    TOP_BOLD,
    TOP_HEADING,
    TOP_WARN,
    TOP_BAD,
    TOP_DIM
};

#define TOP_LINE 400

struct top_line {
    enum top_style style;
    char text[TOP_LINE];
};

#define TOP_HEADER 4 /* lines before the rows: three of the daemon, one of columns */

/* The lines above the rows. */
void top_header(const struct top *top, struct top_line lines[TOP_HEADER]);
void top_row_line(const struct top *top, const struct top_row *row, struct top_line *line);

/* All about one segment, in at most room lines: facts, attachments, who waits for whom. Returns how
 * many. */
size_t top_segment(const struct top *top, const struct shmview_segment_stats *segment,
                   struct top_line *lines, size_t room);

#endif
