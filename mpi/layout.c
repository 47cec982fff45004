/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <limits.h>
#include <string.h>

/* Runs of these lengths are copied by loads and stores; longer ones by calls of memcpy(). */
#define RUNS_OF(bytes)                                                                             \
    case bytes:                                                                                    \
        for (size_t i = 0; i < n; i++, packed += (bytes), at += stride)                            \
            pack ? memcpy(packed, at, bytes) : memcpy(at, packed, bytes);                          \
        return

/* Copies n runs between packed and at, where they lie stride bytes apart. */
static inline __attribute__((always_inline)) void copy_runs(bool pack, unsigned char *packed,
                                                            unsigned char *at, size_t n, size_t run,
                                                            ptrdiff_t stride)
{
    switch (run) {
        RUNS_OF(1);
        RUNS_OF(2);
        RUNS_OF(4);
        RUNS_OF(8);
        RUNS_OF(12);
        RUNS_OF(16);
        RUNS_OF(24);
        RUNS_OF(32);
        RUNS_OF(64);
    default:
        for (size_t i = 0; i < n; i++, packed += run, at += stride)
            pack ? memcpy(packed, at, run) : memcpy(at, packed, run);
    }
}

static inline __attribute__((always_inline)) void copy_bytes(bool pack, unsigned char *packed,
                                                             unsigned char *at, size_t n)
{
    pack ? memcpy(packed, at, n) : memcpy(at, packed, n);
}

static ptrdiff_t loop_place(const struct layout_loop *loop, int64_t turn)
{
    return (ptrdiff_t)(loop->at ? loop->at[turn] : turn * loop->stride);
}

static unsigned char *cursor_row(const struct layout *layout, const struct layout_cursor *cursor)
{
    unsigned char *row = layout->data;
    for (uint32_t d = 0; d + 1 < layout->n_loops; d++)
        row += loop_place(&layout->loops[d], cursor->turn[d]);
    return row;
}

/* Carries from the innermost loop, which has ended, to those around it. */
static void cursor_carry(const struct layout *layout, struct layout_cursor *cursor)
{
    for (uint32_t d = layout->n_loops; d-- > 0;) {
        if (cursor->turn[d] < layout->loops[d].n)
            return;
        if (d == 0)
            return;
        cursor->turn[d] = 0;
        cursor->turn[d - 1]++;
    }
}

/* Part of one run. Returns how many bytes. */
static size_t copy_part(bool pack, const struct layout *layout, struct layout_cursor *cursor,
                        unsigned char *at, unsigned char *bytes, size_t n)
{
    size_t part = (size_t)(layout->run - cursor->in_run);
    if (part > n)
        part = n;
    copy_bytes(pack, bytes, at + cursor->in_run, part);
    cursor->in_run += part;
    if (cursor->in_run == layout->run) {
        cursor->in_run = 0;
        if (layout->n_loops) {
            cursor->turn[layout->n_loops - 1]++;
            cursor_carry(layout, cursor);
        }
    }
    return part;
}

/* Whole runs of the innermost loop. Returns how many bytes. */
static inline __attribute__((always_inline)) size_t
copy_whole(bool pack, const struct layout *layout, struct layout_cursor *cursor, unsigned char *row,
           unsigned char *bytes, size_t n)
{
    const struct layout_loop *loop = &layout->loops[layout->n_loops - 1];
    int64_t *turn = &cursor->turn[layout->n_loops - 1];
    size_t n_runs = n / layout->run;
    if (n_runs > (uint64_t)(loop->n - *turn))
        n_runs = (size_t)(loop->n - *turn);
    if (loop->at)
        for (size_t i = 0; i < n_runs; i++)
            copy_runs(pack, bytes + i * layout->run, row + loop->at[*turn + (int64_t)i], 1,
                      (size_t)layout->run, 0);
    else
        copy_runs(pack, bytes, row + *turn * loop->stride, n_runs, (size_t)layout->run,
                  (ptrdiff_t)loop->stride);
    *turn += (int64_t)n_runs;
    cursor_carry(layout, cursor);
    return n_runs * (size_t)layout->run;
}

static inline __attribute__((always_inline)) void copy(bool pack, const struct layout *layout,
                                                       struct layout_cursor *cursor,
                                                       unsigned char *bytes, size_t n)
{
    while (n) {
        unsigned char *row = cursor_row(layout, cursor);
        size_t done;
        if (layout->n_loops == 0) {
            done = copy_part(pack, layout, cursor, row, bytes, n);
        } else if (cursor->in_run || n < layout->run) {
            const struct layout_loop *loop = &layout->loops[layout->n_loops - 1];
            row += loop_place(loop, cursor->turn[layout->n_loops - 1]);
            done = copy_part(pack, layout, cursor, row, bytes, n);
        } else {
            done = copy_whole(pack, layout, cursor, row, bytes, n);
        }
        bytes += done;
        n -= done;
    }
}

void layout_pack(const struct layout *layout, struct layout_cursor *cursor, unsigned char *bytes,
                 size_t n)
{
    copy(true, layout, cursor, bytes, n);
}

void layout_unpack(const struct layout *layout, struct layout_cursor *cursor,
                   const unsigned char *bytes, size_t n)
{
    copy(false, layout, cursor, (unsigned char *)(uintptr_t)bytes, n);
}

void layout_of_loops(unsigned char *data, uint64_t itemsize, uint32_t n_loops,
                     const struct layout_loop *loops, struct layout *ret_layout)
{
    struct layout layout = {.data = data, .n_bytes = itemsize, .run = itemsize};
    struct layout_loop kept[SHMVIEW_MAX_NDIM] = {0};
    uint32_t n_kept = 0;
    /* From the inside, so that kept[] is in reverse. */
    for (uint32_t d = n_loops; d-- > 0;) {
        struct layout_loop loop = loops[d];
        layout.n_bytes *= (uint64_t)loop.n;
        if (loop.n == 1) {
            layout.data += loop_place(&loop, 0);
            continue;
        }
        struct layout_loop *inner = n_kept ? &kept[n_kept - 1] : NULL;
        if (!loop.at && !inner && loop.stride == (int64_t)layout.run)
            layout.run *= (uint64_t)loop.n;
        else if (!loop.at && inner && !inner->at && loop.stride == inner->n * inner->stride)
            inner->n *= loop.n;
        else
            kept[n_kept++] = loop;
    }
    if (layout.n_bytes == 0) {
        layout.run = 0;
        n_kept = 0;
    }
    layout.n_loops = n_kept;
    for (uint32_t d = 0; d < n_kept; d++)
        layout.loops[d] = kept[n_kept - 1 - d];
    *ret_layout = layout;
}

void layout_of_view(const struct shmview_view *view, struct layout *ret_layout)
{
    struct layout_loop loops[SHMVIEW_MAX_NDIM] = {0};
    for (uint32_t d = 0; d < view->ndim; d++)
        loops[d] = (struct layout_loop){.n = view->shape[d], .stride = view->strides[d]};
    layout_of_loops(view->data, view->itemsize, view->ndim, loops, ret_layout);
}

bool layout_fits_datatype(const struct layout *layout)
{
    bool fits = layout->run <= INT_MAX && layout->n_bytes <= INT_MAX;
    for (uint32_t d = 0; d < layout->n_loops; d++)
        fits = fits && layout->loops[d].n <= INT_MAX && !layout->loops[d].at;
    return fits;
}
