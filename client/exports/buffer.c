/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: a view in the terms of PEP 3118, with the members that the consumer asked for.
 *
 * PEP 3118 wants addresses of this process where a segment stores offsets of rows. So the buffer of
 * a view with suboffsets has a table of its own: all dimensions up to the last one with a suboffset
 * become one C-ordered array of addresses of rows. Each stored offset is loaded once, and the whole
 * row to which it leads is checked before its address goes into the table. Another program may
 * change the offset later, and the consumer still stays inside the segment.
 *
 * A buffer keeps its segment mapped (client/segment/export.h), because the consumer has bare
 * addresses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/segment/export.h"
#include "client/views/handle.h"
#include "common/base/util.h"

/* The most rows in a table, which is 1 GiB of addresses. Strides of 0 make any number of rows out
 * of a few bytes, and another program may have declared the view. */
#define ROWS_MAX ((uint64_t)1 << 27)

/* What buffer->internal points to: one allocation with everything to which members of the buffer
 * point. */
struct buffer_parts {
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    ptrdiff_t strides[SHMVIEW_MAX_NDIM];
    ptrdiff_t suboffsets[SHMVIEW_MAX_NDIM];
    char *rows[];
};

/* --- The request --------------------------------------------------------- */

/* Whether flags have all bits of wish. Most wishes have several bits, as in Python. */
static bool asks(unsigned flags, unsigned wish)
{
    return (flags & wish) == wish;
}

/* Refuses flags that no PyBUF_* combination gives. Returns 0 or an error. */
static int check_flags(unsigned flags)
{
    const unsigned alone = SHMVIEW_BUFFER_WRITABLE | SHMVIEW_BUFFER_FORMAT | SHMVIEW_BUFFER_ND;
    const unsigned known = alone | SHMVIEW_BUFFER_C_CONTIGUOUS | SHMVIEW_BUFFER_F_CONTIGUOUS |
                           SHMVIEW_BUFFER_ANY_CONTIGUOUS | SHMVIEW_BUFFER_INDIRECT;
    if (flags & ~known)
        return fail(SHMVIEW_ERR_INVALID, "unknown flags 0x%x", flags & ~known);
    if (flags & ~alone && !asks(flags, SHMVIEW_BUFFER_STRIDES))
        return fail(SHMVIEW_ERR_INVALID, "flags 0x%x: 0x%x needs the whole of STRIDES, 0x%x", flags,
                    flags & ~alone, SHMVIEW_BUFFER_STRIDES);
    if (asks(flags, SHMVIEW_BUFFER_FORMAT) && !asks(flags, SHMVIEW_BUFFER_ND))
        return fail(SHMVIEW_ERR_INVALID,
                    "flags 0x%x: FORMAT needs ND, without a shape there are only bytes", flags);
    return 0;
}

/* Refuses a view whose elements the consumer would not find, because it asked for no strides or
 * suboffsets, or for an order that the view does not have. Returns 0 or an error. */
static int check_order(const struct view_desc *desc, unsigned flags)
{
    static const struct {
        unsigned wish;
        char order;
        const char *text;
    } orders[] = {
        {SHMVIEW_BUFFER_C_CONTIGUOUS, 'C', "C order"},
        {SHMVIEW_BUFFER_F_CONTIGUOUS, 'F', "Fortran's order"},
        {SHMVIEW_BUFFER_ANY_CONTIGUOUS, 'A', "C or Fortran's order"},
    };
    if (desc->indirect && !asks(flags, SHMVIEW_BUFFER_INDIRECT))
        return fail(SHMVIEW_ERR_CONTIGUOUS,
                    "the view has suboffsets, the consumer (flags 0x%x) does not accept them",
                    flags);
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (asks(flags, orders[i].wish) && !view_is_contiguous(desc, orders[i].order))
            return fail(SHMVIEW_ERR_CONTIGUOUS,
                        "the consumer (flags 0x%x) wants %s without gaps, the view has gaps or "
                        "another order",
                        flags, orders[i].text);
    if (!asks(flags, SHMVIEW_BUFFER_STRIDES) && !view_is_contiguous(desc, 'C'))
        return fail(SHMVIEW_ERR_CONTIGUOUS,
                    "the consumer (flags 0x%x) takes no strides, the view is not in C order "
                    "without gaps",
                    flags);
    return 0;
}

/* --- The table of rows --------------------------------------------------- */

/* The bytes of one row: those before its first element, and those from there on. */
struct row_reach {
    uint64_t before, from; /* `from` includes the first element */
};

/* Returns the number of dimensions that the table replaces: up to the last one with a suboffset; 0
 * if there is none. */
static uint32_t table_ndim(const struct view_desc *desc)
{
    uint32_t n = 0;
    for (uint32_t d = 0; desc->indirect && d < desc->ndim; d++)
        if (desc->suboffsets[d] >= 0)
            n = d + 1;
    return n;
}

/* Returns the number of rows, or UINT64_MAX if it overflows. A length of 0 is looked for first,
 * because the product of the other lengths may overflow. */
static uint64_t count_rows(const struct view_desc *desc, uint32_t ndim)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < ndim; d++)
        if (desc->shape[d] == 0)
            return 0;
    for (uint32_t d = 0; d < ndim; d++)
        if (__builtin_mul_overflow(n, (uint64_t)desc->shape[d], &n))
            return UINT64_MAX;
    return n;
}

/* Returns the reach of a row, whose dimensions begin with `first`. Cannot overflow: view_check()
 * has checked that a row is no larger than the segment. */
static struct row_reach reach_of_row(const struct view_desc *desc, uint32_t first)
{
    struct row_reach reach = {.from = desc->item->itemsize};
    for (uint32_t d = first; d < desc->ndim; d++) {
        int64_t steps = (desc->shape[d] - 1) * desc->strides[d];
        if (steps < 0)
            reach.before += (uint64_t)-steps;
        else
            reach.from += (uint64_t)steps;
    }
    return reach;
}

/* Adds the index of the row to the fault of one row. */
static int fail_row(uint32_t ndim, const int64_t *index, const struct view_fault *fault)
{
    char text[SHMVIEW_MAX_NDIM * 24];
    int n = 0;
    for (uint32_t d = 0; d < ndim; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, d ? ", " : "", index[d]);
    return fail((int)fault->error, "row [%s]: %s", text, fault->text);
}

/* Finds one row and checks that all of it lies in the segment; view_locate() checks its first
 * element only. Returns 0, or -1 with *fault. */
static int locate_row(const struct shmview_segment *s, const struct view_desc *desc,
                      const struct row_reach *reach, const int64_t *index, char **ret,
                      struct view_fault *fault)
{
    uint64_t at;
    if (view_locate(desc, s->data, s->size, index, &at, fault))
        return -1;
    if (at < reach->before || s->size - at < reach->from)
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "it goes from %" PRIu64 " bytes before byte %" PRIu64 " to %" PRIu64
                              " bytes after, the segment has %" PRIu64 " bytes",
                              reach->before, at, reach->from, s->size);
    *ret = (char *)s->data + at;
    return 0;
}

/* Fills the table with the addresses of n rows. Rows of a view without elements get an address too,
 * for consumers that add to it. Returns 0 or an error. */
static int fill_rows(const struct shmview_view *view, const struct view_desc *desc, uint32_t ndim,
                     char **rows, uint64_t n)
{
    struct view_fault fault;
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    if (view->nbytes == 0) {
        for (uint64_t i = 0; i < n; i++)
            rows[i] = view->segment->data;
        return 0;
    }
    struct row_reach reach = reach_of_row(desc, ndim);
    for (uint64_t i = 0; i < n; i++) {
        if (locate_row(view->segment, desc, &reach, index, &rows[i], &fault))
            return fail_row(ndim, index, &fault);
        for (uint32_t d = ndim; d-- > 0;) {
            if (++index[d] < desc->shape[d])
                break;
            index[d] = 0;
        }
    }
    return 0;
}

/* --- The parts ----------------------------------------------------------- */

/* Fills shape, strides and suboffsets. Dimensions in the table have the strides of the table; the
 * last of them has suboffset 0, which in PEP 3118 means "follow the pointer, add nothing". */
static void fill_parts(struct buffer_parts *parts, const struct view_desc *desc, uint32_t ndim)
{
    size_t step = sizeof *parts->rows; /* unsigned: may overflow if there are no elements */
    for (uint32_t d = 0; d < desc->ndim; d++) {
        parts->shape[d] = (ptrdiff_t)desc->shape[d];
        parts->strides[d] = (ptrdiff_t)desc->strides[d];
        parts->suboffsets[d] = -1;
    }
    for (uint32_t d = ndim; d-- > 0;) {
        parts->strides[d] = (ptrdiff_t)step;
        step *= parts->shape[d] ? (size_t)parts->shape[d] : 1;
    }
    if (ndim)
        parts->suboffsets[ndim - 1] = 0;
}

/* Makes the parts of a buffer, with a table for a view with suboffsets. The caller must free *ret.
 * Returns 0 or an error. */
static int make_parts(const struct shmview_view *view, const struct view_desc *desc,
                      struct buffer_parts **ret)
{
    uint32_t ndim = table_ndim(desc);
    uint64_t n = ndim ? count_rows(desc, ndim) : 0;
    if (n > ROWS_MAX)
        return fail(SHMVIEW_ERR_NO_MEMORY,
                    "a table of the addresses of %s%" PRIu64 " rows, the limit is %" PRIu64,
                    n == UINT64_MAX ? "more than " : "", n, ROWS_MAX);
    CLEANUP_FREE struct buffer_parts *parts = malloc(sizeof *parts + n * sizeof *parts->rows);
    if (!parts)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory: addresses of %" PRIu64 " rows", n);
    fill_parts(parts, desc, ndim);
    int r = ndim ? fill_rows(view, desc, ndim, parts->rows, n) : 0;
    if (r == 0)
        *ret = STEAL(parts);
    return r;
}

/* --- Public -------------------------------------------------------------- */

int shmview_buffer_get(const struct shmview_view *view, unsigned flags,
                       struct shmview_buffer *ret_buffer)
{
    struct view_desc desc;
    CLEANUP_FREE struct buffer_parts *parts = NULL;
    int r = check_flags(flags);
    if (r)
        return r;
    if (asks(flags, SHMVIEW_BUFFER_WRITABLE) && view->flags & SHMVIEW_VIEW_READ_ONLY)
        return fail(SHMVIEW_ERR_READ_ONLY, "the consumer wants to write, the view is read-only");
    view_describe(view, &desc);
    r = check_order(&desc, flags);
    if (r == 0 && asks(flags, SHMVIEW_BUFFER_ND) && view->ndim)
        r = make_parts(view, &desc, &parts);
    if (r)
        return r;
    struct shmview_buffer b = {
        .buf = desc.indirect ? (void *)parts->rows : view->data,
        .segment = view->segment,
        .len = view->nbytes,
        .itemsize = view->itemsize,
        .readonly = view->flags & SHMVIEW_VIEW_READ_ONLY ? 1 : 0,
        .ndim = asks(flags, SHMVIEW_BUFFER_ND) ? view->ndim : 1,
        .format = asks(flags, SHMVIEW_BUFFER_FORMAT) ? view->format : NULL,
        .shape = parts ? parts->shape : NULL,
        .strides = parts && asks(flags, SHMVIEW_BUFFER_STRIDES) ? parts->strides : NULL,
        .suboffsets = desc.indirect ? parts->suboffsets : NULL,
        .internal = parts,
    };
    NOT_FORKED;
    r = segment_hold(view->segment);
    if (r)
        return r;
    *ret_buffer = b;
    parts = NULL;
    return 0;
}

void shmview_buffer_release(struct shmview_buffer *buffer)
{
    if (!buffer || !buffer->segment)
        return;
    struct shmview_segment *segment = buffer->segment;
    bool last;
    {
        NOT_FORKED;
        free(buffer->internal);
        memset(buffer, 0, sizeof *buffer);
        last = segment_drop(segment);
    }
    if (last)
        segment_close(segment);
}
