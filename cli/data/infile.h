/* SPDX-License-Identifier: Apache-2.0 */
/* An array to be loaded: from a file, or from a pipe, which is read to its end first. */
#ifndef CLI_INFILE_H
#define CLI_INFILE_H

#include "cli/data/npy.h"
#include "cli/shell/cli.h"

struct infile {
    struct context *c;
    const char *path;
    int fd;
    bool is_ours;
    bool is_regular;
    uint64_t file_bytes;   /* of a regular file */
    uint64_t data_at;      /* where the elements begin */
    uint64_t nbytes;       /* of the elements */
    unsigned char *memory; /* of a pipe: all of them */
    uint64_t at;           /* the next byte to be read, of nbytes */
};

/* Opens it; "-" is standard input. Returns 0 or the exit status; in any case it owes
 * infile_close(). */
int infile_open(struct context *c, struct infile *file, const char *path);

/* Reads the header of an npy file, and checks that the file has exactly its elements. Those
 * of a pipe are read now. Returns 0 or the exit status. */
int infile_read_npy(struct infile *file, struct npy *ret);
/* Takes it as bytes without a header. */
int infile_read_raw(struct infile *file);

/* Reads the next n bytes of the elements. Returns 0 or the exit status: the file has become shorter
 * meanwhile, or cannot be read. */
int infile_read(struct infile *file, void *data, size_t n);
/* Goes back to the first of them. */
void infile_rewind(struct infile *file);

void infile_close(struct infile *file);
#define CLEANUP_INFILE CLEANUP(infile_close)

#endif
