/* SPDX-License-Identifier: Apache-2.0 */
/* The streams among the rows of top, and their figures in the course of time: frames and bytes of a
 * second, and the lag of each reader. They are shown without an option, so an update costs at most
 * STREAMS_MOST looks and STREAMS_DESCRIBED_MOST descriptions, and streams stay attached from one
 * update to the next. They are attached for reading, because with SHMVIEW_PEEK readers are not
 * seen. */
#ifndef CLI_TOP_STREAMS_H
#define CLI_TOP_STREAMS_H

#include "cli/text/stream_metrics.h"
#include "cli/text/streams.h"
#include "cli/top/top.h"

#define STREAMS_DESCRIBED_MOST 256

struct top_stream {
    int64_t id;
    char name[129];
    struct shmview_stream *stream;                         /* owned; NULL: not attached */
    struct stream_facts *now;                              /* owned; NULL: not known */
    uint64_t published[SHMVIEW_STREAM_STAGES_MAX], missed; /* at the update before */
    int64_t before_ns;                                     /* when that was; 0: there was none */
    char trouble[200];                                     /* why there are no figures, or "" */
    unsigned n_gone;                                       /* looks that a bus error has ended */
    bool is_damaged;                                       /* another look would find the same */
    bool is_unused; /* only programs like this one have it attached */
    bool is_there;  /* among the rows of this update */
};

/* A segment that is no stream. */
struct top_other {
    int64_t id;
    unsigned n_looks;
};

/* A struct of zeroes is empty; its owner owes top_streams_deinit(). */
struct top_streams {
    struct top_stream *list; /* by id, at most STREAMS_MOST; owned */
    size_t n;
    struct top_other *others; /* by id; owned */
    size_t n_others;
    size_t n_left;           /* segments that may be streams, but were not looked at */
    bool lets_go;            /* detach after each update, because the next one is far away */
    size_t looks, described; /* in this update */
};

/* Finds new streams among the rows of t, drops those that are gone, and gets the figures of all. A
 * stream that cannot be shown has the reason in `trouble`. Returns 0 or the exit status. */
int top_streams_update(struct top_streams *s, struct context *c, const struct top *t);

/* Whether a program writes the segment, or may do so. */
bool top_stream_is_written(const struct shmview_segment_stats *segment);

/* Returns the stream with this id, or NULL. */
const struct top_stream *top_streams_find(const struct top_streams *s, int64_t id);

void top_streams_deinit(struct top_streams *s);

/* --- Lines (top_stream_page.c) ------------------------------------------- */

/* Writes the headings of the columns. */
void top_stream_heading(const struct top *t, struct top_line *line);
/* Writes the row of a stream. */
void top_stream_row(const struct top *t, const struct top_stream *w, struct top_line *line);
/* Writes a line for each stage, and below it one for each of its readers, in at most `room` lines.
 * Returns their number. */
size_t top_stream_details(const struct top *t, const struct top_stream *w, struct top_line *lines,
                          size_t room);

/* Returns a new array with the heading, the row of each stream that t shows, in the order of t,
 * with its details below it if they are wanted, and a line that counts those that are not shown.
 * *ret_n is the number of lines, 0 without streams. NULL: memory is short. */
struct top_line *top_stream_lines(const struct top *t, bool with_details, size_t *ret_n);

#endif
