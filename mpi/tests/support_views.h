/* SPDX-License-Identifier: Apache-2.0 */
/* Views of every format, shape and kind of strides, each in memory of its own. */
#ifndef SUPPORT_VIEWS_H
#define SUPPORT_VIEWS_H

#include <shmview/shmview.h>
#include <shmview/view.h>
#include <stdint.h>

enum strides {
    STRIDES_C,
    STRIDES_FORTRAN,
    STRIDES_PADDED,   /* rows with a gap of an element between them */
    STRIDES_STEPPED,  /* every second element of the last dimension */
    STRIDES_REVERSED, /* all of them negative */
    STRIDES_MIXED,    /* the first reversed, the last stepped, dimensions out of order */
    N_STRIDES,
};

struct made_view {
    struct shmview_segment *segment;
    void *memory;
    struct shmview_view view;
};

/* Makes a view with zeros in its memory. */
void made_view_init(struct made_view *made, const char *format, uint32_t ndim, const int64_t *shape,
                    enum strides strides);
void made_view_deinit(struct made_view *made);

/* Fills the elements with bytes that follow from their index and seed. The gap bytes of an element
 * are those from gap_begin to gap_end, which remain 0. */
void made_view_number(const struct made_view *made, unsigned seed, unsigned gap_begin,
                      unsigned gap_end);

/* All elements in C order, one after the other. The caller frees. */
unsigned char *made_view_elements(const struct made_view *made);

/* Whether every byte of the memory that belongs to no element is still 0. */
int made_view_is_clean(const struct made_view *made);

#endif
