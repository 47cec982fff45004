/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is there as a whole or not at all: written without a name, or with another one, and
 * put in its place at the end. */
#ifndef CLI_OUTFILE_H
#define CLI_OUTFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/shell/cli.h"

struct outfile {
    struct context *c;
    const char *path; /* as given */
    char *place;      /* where symbolic links lead to; NULL: written directly */
    char *temporary;  /* NULL while it has no name */
    int fd;
    bool is_ours; /* to be closed */
};

/* Opens it; "-" is standard output. What is there and no regular file (a pipe, a device) is written
 * directly. bytes is how long it will be: where the file system has no room for that it says so
 * now. Returns 0 or the exit status; in any case it owes outfile_close(). */
int outfile_open(struct context *c, struct outfile *file, const char *path, uint64_t bytes);

/* Writes n bytes. A peer that takes the memory at data away is an error, no signal. Returns 0 or
 * the exit status. */
int outfile_write(struct outfile *file, const void *data, size_t n);

/* Puts it in its place. Returns 0 or the exit status. */
int outfile_commit(struct outfile *file);

/* Without outfile_commit() nothing is left. */
void outfile_close(struct outfile *file);
#define CLEANUP_OUTFILE CLEANUP(outfile_close)

#endif
