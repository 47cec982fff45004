/* SPDX-License-Identifier: Apache-2.0 */
/* The source of shmviewctl load: a regular file, or a pipe.
 *
 * A regular file is read piece by piece with pread(), so a load of any size needs little memory and
 * can start again after a trial conversion. A pipe can be neither measured nor read twice.
 * Therefore infile_read_npy() and infile_read_raw() read it to its end into memory: a pipe that
 * breaks off is refused before the first byte of the view changes.
 *
 * All functions print the error themselves and return the exit status. */
#ifndef CLI_INFILE_H
#define CLI_INFILE_H

#include "cli/data/npy.h"
#include "cli/shell/cli.h"

/* Belongs to one verb, on its stack. Only the functions below change it. */
struct infile {
    struct context *c;
    const char *path; /* for messages; borrowed */
    int fd;
    bool is_ours;          /* infile_close() closes fd; standard input stays open */
    bool is_regular;       /* a file that can be read with pread() from its first byte */
    uint64_t file_bytes;   /* size of a regular file when it was opened */
    uint64_t data_at;      /* offset of the first element in the file */
    uint64_t nbytes;       /* size of all elements */
    unsigned char *memory; /* the elements from a pipe; owned, NULL for a regular file */
    uint64_t at;           /* position of infile_read() within nbytes */
};

/* Opens path; "-" is standard input. The caller owes infile_close() on failure too. Refuses a
 * directory, and a terminal, on which the user would wait without a prompt. Returns 0, or the exit
 * status. */
int infile_open(struct context *c, struct infile *file, const char *path);

/* Reads the header of an npy file into *ret, and checks that exactly the elements that it announces
 * follow. Reads the elements too if the source is a pipe, and blocks until its end. Returns 0, or
 * the exit status. */
int infile_read_npy(struct infile *file, struct npy *ret);
/* Takes the whole file as elements without a header. Reads a pipe to its end. Returns 0, or the
 * exit status. */
int infile_read_raw(struct infile *file);

/* Reads the next n bytes of the elements into data. The caller requests at most nbytes in total.
 * Fails if the file cannot be read, or has become shorter since it was opened. Returns 0, or the
 * exit status. */
int infile_read(struct infile *file, void *data, size_t n);
/* Lets the next infile_read() begin at the first element. */
void infile_rewind(struct infile *file);

/* Closes the file and frees the memory. Needs infile_open() first, whatever that returned. */
void infile_close(struct infile *file);
#define CLEANUP_INFILE CLEANUP(infile_close)

#endif
