/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of streams in the course of time: frames and bytes of a second, and how far each
 * reader is behind. A stream stays attached from one page to the next, so that a page needs no
 * request for it. */
#ifndef CLI_TOP_STREAMS_H
#define CLI_TOP_STREAMS_H

#include "cli/text/stream_show.h"
#include "cli/top/top.h"

/* A struct of zeroes is empty; its owner owes top_streams_deinit(). */
struct top_streams {
    struct watched *list; /* all segments that fitted the filter at the last page, by id; owned */
    size_t n;
};

/* Finds new streams among the rows of t, forgets those that are gone, and gets the figures of all.
 * Returns 0 or the exit status. */
int top_streams_update(struct top_streams *s, struct context *c, const struct top *t);

/* Prints a page: a line for each stage, and one for each reader below it. */
void top_streams_print(const struct top_streams *s, FILE *out);

void top_streams_deinit(struct top_streams *s);

#endif
