/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through which pieces of a view pass on their way to or from a file. */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

#include "cli/shell/cli.h"

#define SCRATCH_BYTES (UINT64_C(4) << 20) /* at a time */
/* The same between a file and the shared memory itself: more takes ext4 many times as long. */
#define STRAIGHT_BYTES (UINT64_C(128) << 10)

struct scratch {
    void *memory;
    struct shmview_segment *segment;
    const char *format;
};

/* Room for a piece of view (see pieces_begin() with SCRATCH_BYTES) as elements of format, which is
 * borrowed. Returns 0 or a negated SHMVIEW_ERR_*; in any case it owes scratch_deinit(). */
int scratch_init(struct scratch *s, const struct shmview_view *view, const char *format);
/* A C-contiguous view of the scratch that has the shape of piece. */
int scratch_like(struct scratch *s, const struct shmview_view *piece, struct shmview_view *ret);
void scratch_deinit(struct scratch *s);
#define CLEANUP_SCRATCH CLEANUP(scratch_deinit)

#endif
