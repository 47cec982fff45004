/* SPDX-License-Identifier: Apache-2.0 */
/* An operation of MPI or of the program on the elements of views: for which formats it is defined,
 * and how elements look when it works on them. */
#ifndef MPI_OPERATION_H
#define MPI_OPERATION_H

#include <mpi.h>
#include <shmview/view.h>
#include <stdbool.h>

struct operation {
    MPI_Op op;
    MPI_Datatype type; /* of one element */
    bool owns_type, commutes;
    uint32_t identity; /* what ranks compare: the operation of MPI, or 0, and whether it commutes */
    char format[SHMVIEW_FORMAT_BYTES]; /* of an element that op works on: native, aligned */
    uint32_t itemsize;                 /* bytes of it */
};

/* Finds out how op works on the elements of view. Returns 0, or -SHMVIEW_ERR_CONVERSION if it does
 * not. The caller must pass *ret to operation_deinit(). */
int operation_init(struct operation *ret, MPI_Op op, const struct shmview_view *view);
void operation_deinit(struct operation *operation);

/* Elements of inout become what op makes of in and inout. n may exceed 2^31. */
int operation_apply(const struct operation *operation, const void *in, void *inout, uint64_t n);

#endif
