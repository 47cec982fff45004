/* SPDX-License-Identifier: Apache-2.0 */
/* Private memory for the pieces of a view (see pieces.h) between the segment and a file.
 *
 * It is wrapped as a segment, so that the library's views and shmview_copy() work on it: they
 * convert, gather and reorder the elements. */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

#include "cli/shell/cli.h"

#define SCRATCH_BYTES (UINT64_C(4) << 20) /* largest piece, unless an element is larger */
/* Bytes for each read() or write() directly between a file and shared memory. With larger calls
 * ext4 takes many times as long. */
#define STRAIGHT_BYTES (UINT64_C(128) << 10)

struct scratch {
    void *memory;                    /* owned */
    struct shmview_segment *segment; /* wraps the memory; owned */
    const char *format;              /* borrowed */
};

/* Allocates room for the largest piece of view that pieces_begin() makes with SCRATCH_BYTES, with
 * elements of format, which is borrowed. The caller owes scratch_deinit() on failure too. Returns
 * 0, or a negated SHMVIEW_ERR_*. */
int scratch_init(struct scratch *s, const struct shmview_view *view, const char *format);
/* Makes a C-contiguous view of the memory with the shape of piece. It replaces the view of the
 * piece before, because all begin at byte 0. Returns 0, or a negated SHMVIEW_ERR_*. */
int scratch_like(struct scratch *s, const struct shmview_view *piece, struct shmview_view *ret);
/* Frees the memory. A struct of zeroes is valid. */
void scratch_deinit(struct scratch *s);
#define CLEANUP_SCRATCH CLEANUP(scratch_deinit)

#endif
