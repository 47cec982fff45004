/* SPDX-License-Identifier: Apache-2.0 */
/* What save and load share: views as files have them, and memory on the way. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "cli/data/npy.h"
#include "cli/shell/target.h"

#define TRANSFER_BYTES (UINT64_C(4) << 20) /* at a time */
/* The same between a file and the shared memory itself: more takes ext4 many times as long. */
#define TRANSFER_STRAIGHT_BYTES (UINT64_C(128) << 10)

/* What an npy file of the view is: in Fortran order where that is how it lies, else in C order. */
void transfer_npy(const struct shmview_view *v, struct npy *ret);

/* Where a segment was named without a view, --as or a part: the only view of the phase. If there is
 * more than one it must be named. Where there is none it is the bytes. Returns 0 or the exit
 * status. */
int transfer_choose(struct target *t);

/* {"segment": ..., "file": ..., "format": ...} */
int transfer_print_json(struct context *c, const struct target *t, const char *path,
                        const struct npy *npy, uint64_t bytes);

/* Memory for pieces of a view. */
struct scratch {
    void *memory;
    struct shmview_segment *segment;
    const char *format;
};

/* Room for a piece of view (see pieces_begin() with TRANSFER_BYTES) as elements of format, which is
 * borrowed. Returns 0 or a negated SHMVIEW_ERR_*; in any case it owes scratch_deinit(). */
int scratch_init(struct scratch *s, const struct shmview_view *view, const char *format);
/* A C-contiguous view of the scratch that has the shape of piece. */
int scratch_like(struct scratch *s, const struct shmview_view *piece, struct shmview_view *ret);
void scratch_deinit(struct scratch *s);
#define CLEANUP_SCRATCH CLEANUP(scratch_deinit)

#endif
