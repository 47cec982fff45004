/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a file of numpy, format version 1.0. */
#ifndef MPI_NPY_H
#define MPI_NPY_H

#include <shmview/element.h>
#include <stddef.h>
#include <stdint.h>

/* Room for every header: 8 lengths and the name of a type. */
#define NPY_HEADER_BYTES 512

/* Writes the header of an array in C order, whose elements are those of view, and returns its
 * length. */
size_t npy_header(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                  char header[NPY_HEADER_BYTES]);

#endif
