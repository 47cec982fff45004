/* SPDX-License-Identifier: Apache-2.0 */
/* What save and load share: views as files have them, and memory on the way. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "cli/data/npy.h"
#include "cli/text/target.h"

/* What an npy file of the view is: in Fortran order where that is how it lies, else in C order. */
void transfer_npy(const struct shmview_view *v, struct npy *ret);

/* Where a segment was named without a view, --as or a part: the only view of the phase. If there is
 * more than one it must be named. Where there is none it is the bytes. Returns 0 or the exit
 * status. */
int transfer_choose(struct target *t);

/* {"segment": ..., "file": ..., "format": ...} */
int transfer_print_json(struct context *c, const struct target *t, const char *path,
                        const struct npy *npy, uint64_t bytes);

#endif
