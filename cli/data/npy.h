/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the header of numpy's .npy files, versions 1 to 3. The header describes the
 * elements that follow it; here their type is a format of shmview/view.h.
 *
 *     "\x93NUMPY" major minor length:2 (or 4 from version 2 on) text
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   blanks, newline
 *
 * The functions take bytes and return bytes, so that a fuzzer calls them without files. They trust
 * nothing in a header: a type that a view cannot have (objects, wide characters, times) is refused
 * with the character at fault, and every length is checked for overflow.
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
#define NPY_HEADER_LIMIT (64u * 1024u) /* a longer header is refused before it is read */

/* What a header describes: the type, the order and the shape of one array. */
struct npy {
    char format[SHMVIEW_FORMAT_BYTES]; /* canonical */
    bool is_opaque;     /* numpy's V: bytes without a type; format is that of a string */
    bool fortran_order; /* the first index is the fastest in the file, not the last one */
    uint32_t itemsize;
    uint32_t ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
    uint64_t nbytes; /* of all elements */
};

/* Finds the size of the whole header, with the prefix, from the first n bytes of a file. n is less
 * than NPY_PREFIX_BYTES only if the file is shorter. Returns 0 with *ret_bytes, which is at least
 * NPY_PREFIX_BYTES, or -1 with *problem. */
int npy_header_bytes(const unsigned char *prefix, size_t n, size_t *ret_bytes,
                     struct problem *problem);

/* Reads a header of n bytes, the size that npy_header_bytes() returned. Returns 0 with *ret, or -1
 * with *problem and *ret unchanged. */
int npy_read(const unsigned char *header, size_t n, struct npy *ret, struct problem *problem);

/* Makes a header of version 1 for npy's format, order and shape; ignores the other members. The
 * caller frees *ret_header. *ret_bytes is a multiple of 64, because numpy aligns the elements to
 * that. Returns 0, or -1 with *problem. */
int npy_write(const struct npy *npy, unsigned char **ret_header, size_t *ret_bytes,
              struct problem *problem);

/* Writes numpy's description of a format into ret, as in a header: '<f4', [('x', '<i2'), ...]. A
 * type that numpy lacks, such as bfloat16, becomes bytes without a type: '|V2'. Returns 0, or -1
 * with *problem. */
int npy_descr(const char *format, char *ret, size_t bytes, struct problem *problem);

#endif
