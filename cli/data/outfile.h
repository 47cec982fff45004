/* SPDX-License-Identifier: Apache-2.0 */
/* The target of shmviewctl save. A regular file appears complete or not at all.
 *
 * A new file is written without a name (O_TMPFILE), or under a temporary name if the file system
 * cannot do that, and renamed to its place at the end. Otherwise a reader could find half an array,
 * and a full disk would destroy the previous file. A pipe, a device and standard output are written
 * directly.
 *
 * All functions print the error themselves and return the exit status. */
#ifndef CLI_OUTFILE_H
#define CLI_OUTFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/shell/cli.h"

/* Belongs to one verb, on its stack. Only one can exist at a time, because the signal handler knows
 * one temporary name. */
struct outfile {
    struct context *c;
    const char *path; /* as given */
    char *place;      /* path with its symbolic links resolved; owned. NULL: written directly */
    char *temporary;  /* name that must be removed or renamed; owned. NULL: the file has none */
    int fd;
    bool is_ours; /* outfile_close() closes fd */
};

/* Opens path; "-" is standard output, unless that is a terminal. A file that exists keeps its mode,
 * and must be writable. bytes is the final size: fails now if the file system has less room.
 * Ignores SIGPIPE and SIGXFSZ from now on, so that a reader that ends and a limit of the process
 * become error messages. The caller owes outfile_close() on failure too. Returns 0, or the exit
 * status. */
int outfile_open(struct context *c, struct outfile *file, const char *path, uint64_t bytes);

/* Writes n bytes, which may be shared memory: if another client truncates it, write() fails, and no
 * signal is raised. Blocks as long as the reader of a pipe does. Returns 0, or the exit status. */
int outfile_write(struct outfile *file, const void *data, size_t n);

/* Whether the file is a regular one that outfile_commit() puts in its place. */
bool outfile_is_regular(const struct outfile *file);

/* Cuts a regular file, of which at least so many bytes have been written, to n bytes. Returns 0, or
 * the exit status. */
int outfile_cut(struct outfile *file, uint64_t n);

/* Replaces the first n bytes of a regular file, of which so many have been written. Returns 0, or
 * the exit status. */
int outfile_rewrite(struct outfile *file, const void *data, size_t n);

/* Gives the complete file its name, and replaces an older one. Does nothing for a file that was
 * written directly. Returns 0, or the exit status. */
int outfile_commit(struct outfile *file);

/* Closes the file. Without outfile_commit() before, removes what was written. */
void outfile_close(struct outfile *file);
#define CLEANUP_OUTFILE CLEANUP(outfile_close)

#endif
