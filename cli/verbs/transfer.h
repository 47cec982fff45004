/* SPDX-License-Identifier: Apache-2.0 */
/* What save, load, plot, record and replay share: the choice of a view if the user named only a
 * segment, and the description of a view as a file of numpy. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "cli/data/npy.h"
#include "cli/text/target.h"

/* Describes the npy file that a view fits into. The file is in Fortran order if the view is stored
 * in that order, because its bytes can then be copied as they are; otherwise in C order. Cannot
 * fail. */
void transfer_npy(const struct shmview_view *v, struct npy *ret);

/* Chooses the view if the user named a segment without a view, --as or a part. Sets t->layout and
 * t->view to the only view of the current layout. Leaves both empty, which means the bytes, if
 * target_layout() finds no layout. If the layout has another number of views, prints their names.
 * t must be open. Returns 0 or the exit status. */
int transfer_choose(struct target *t);

/* Writes "[3,4]", cut if it is too long. */
void transfer_shape(uint32_t ndim, const int64_t *shape, char *text, size_t bytes);

/* Whether numpy describes two formats by the same type. The byte order of a number may differ, but
 * not those within a struct. */
bool transfer_same_type(const char *a, const char *b);

/* Prints {"segment": ..., "file": ..., "format": ...}, for --json. bytes is the length of the
 * elements in the file. Returns the exit status. */
int transfer_print_json(struct context *c, const struct target *t, const char *path,
                        const struct npy *npy, uint64_t bytes);

#endif
