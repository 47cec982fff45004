/* SPDX-License-Identifier: Apache-2.0 */
/* The header of numpy's .npy files, versions 1 to 3: what the elements behind it are, in the
 * words of shmview/view.h. Pure: bytes in, bytes out; nothing in a file is trusted.
 *
 *     "\x93NUMPY" major minor length:2 (or 4 from version 2 on) text
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   blanks, newline
 *
 * Source: numpy.org, numpy.lib.format. */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/view.h>

#include "cli/shell/problem.h"

#define NPY_PREFIX_BYTES 12            /* enough to know how long the header is */
#define NPY_HEADER_LIMIT (64u * 1024u) /* longer ones are refused */

struct npy {
    char format[SHMVIEW_FORMAT_BYTES]; /* canonical */
    bool is_opaque;                    /* numpy's V: bytes without a type; format is a string */
    bool fortran_order;
    uint32_t itemsize;
    uint32_t ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
    uint64_t nbytes; /* of all elements */
};

/* Tells from the first n bytes of a file how many the header has, itself included. n is
 * NPY_PREFIX_BYTES, or less where the file ends. Returns 0 or -1. */
int npy_header_bytes(const unsigned char *prefix, size_t n, size_t *ret_bytes,
                     struct problem *problem);

/* Reads a header of n bytes, which npy_header_bytes() has told. Returns 0 or -1. */
int npy_read(const unsigned char *header, size_t n, struct npy *ret, struct problem *problem);

/* Makes the header of elements of npy's format, order and shape; the other members are not
 * looked at. *ret_header is the caller's, to be freed; *ret_bytes is a multiple of 64.
 * Returns 0 or -1. */
int npy_write(const struct npy *npy, unsigned char **ret_header, size_t *ret_bytes,
              struct problem *problem);

/* numpy's description of a format, as it stands in a header: '<f4', [('x', '<i2'), ...].
 * What numpy has no type for is bytes: '|V2'. Returns 0 or -1. */
int npy_descr(const char *format, char *ret, size_t bytes, struct problem *problem);

#endif
