/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error. It appears only on a terminal, and only after half a second, so
 * that scripts and short transfers never see it. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The total of a transfer whose end is not known: its bar is left out. */
#define PROGRESS_UNKNOWN UINT64_MAX

struct progress {
    uint64_t total;             /* bytes */
    int64_t begin_ns, shown_ns; /* CLOCK_MONOTONIC: of the start, and of the last line */
    bool is_terminal, is_shown;
    bool has_utf8;
};

/* Starts the clock; prints nothing yet. */
void progress_begin(struct progress *p, uint64_t total_bytes);
/* `done` bytes are transferred. Prints at most ten times a second. */
void progress_update(struct progress *p, uint64_t done);
/* Removes the bar. */
void progress_end(struct progress *p);

/* Writes one line of width columns: " 37% ━━━━━       380M of 1G  850M/s  0:01 left". Returns text.
 */
const char *progress_text(char *text, size_t bytes, size_t width, bool utf8, uint64_t done,
                          uint64_t total, int64_t elapsed_ns);

#endif
