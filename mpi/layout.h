/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a view's elements in C order, as nested loops over runs of bytes; and a cursor that
 * packs and unpacks them in pieces of any length. */
#ifndef MPI_LAYOUT_H
#define MPI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/element.h>

/* One loop. If at is NULL, turn i is at i * stride bytes, else at at[i] bytes. */
struct layout_loop {
    int64_t n;
    int64_t stride;
    const int64_t *at;
};

/* Loops of one turn are left out, and neighbouring ones that a single stride can describe are one.
 * Therefore views of the same bytes in the same order have equal layouts, up to data. */
struct layout {
    unsigned char *data;
    uint64_t n_bytes;                           /* all of them */
    uint64_t run;                               /* bytes that lie together, in the innermost loop */
    uint32_t n_loops;                           /* 0: contiguous */
    struct layout_loop loops[SHMVIEW_MAX_NDIM]; /* the outermost first */
};

/* A place in the order of a layout's bytes. */
struct layout_cursor {
    int64_t turn[SHMVIEW_MAX_NDIM];
    uint64_t in_run;
};

/* Makes the layout of a view without suboffsets. */
void layout_of_view(const struct shmview_view *view, struct layout *ret_layout);

/* Makes a layout of loops over items of itemsize bytes. */
void layout_of_loops(unsigned char *data, uint64_t itemsize, uint32_t n_loops,
                     const struct layout_loop *loops, struct layout *ret_layout);

static inline bool layout_is_contiguous(const struct layout *layout)
{
    return layout->n_loops == 0;
}

/* Whether MPI can describe it: no loop has places of its own, and counts are ints. */
bool layout_fits_datatype(const struct layout *layout);

/* The next n bytes, which must be there, from the layout to bytes or back. A zeroed cursor is at
 * the first byte. */
void layout_pack(const struct layout *layout, struct layout_cursor *cursor, unsigned char *bytes,
                 size_t n);
void layout_unpack(const struct layout *layout, struct layout_cursor *cursor,
                   const unsigned char *bytes, size_t n);

#endif
