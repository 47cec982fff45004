/* SPDX-License-Identifier: Apache-2.0 */
/* The shared parts of the calls on whole views, and shmview_fill(). */
#include "client/whole/bulk.h"

#include <stdio.h>
#include <string.h>

#include "common/views/format.h"

int bulk_check_writable(const struct shmview_view *view)
{
    if (view->flags & SHMVIEW_VIEW_READ_ONLY)
        return fail(SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    return 0;
}

uint64_t bulk_count(const struct shmview_view *view)
{
    return view->nbytes / view->itemsize;
}

bool bulk_same_shape(const struct shmview_view *a, const struct shmview_view *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof a->shape[0]) == 0;
}

/* Returns the canonical text of the format, without the mark that only unaligned views have. */
static const char *text_of(const struct shmview_view *view)
{
    const struct format *item = view->item;
    return view->flags & SHMVIEW_VIEW_UNALIGNED ? format_aligned(item)->text : view->format;
}

bool bulk_same_format(const struct shmview_view *a, const struct shmview_view *b)
{
    if (number_is_type(a->dtype) || number_is_type(b->dtype))
        return a->dtype == b->dtype;
    return strcmp(text_of(a), text_of(b)) == 0;
}

void bulk_index(const struct shmview_view *view, uint64_t at, ptrdiff_t *ret_index)
{
    for (uint32_t d = view->ndim; d-- > 0;) {
        ret_index[d] = (ptrdiff_t)(at % (uint64_t)view->shape[d]);
        at /= (uint64_t)view->shape[d];
    }
}

void bulk_index_text(const struct shmview_view *view, const ptrdiff_t *index,
                     char ret[BULK_INDEX_BYTES])
{
    size_t n = 0;
    ret[n++] = '[';
    for (uint32_t d = 0; d < view->ndim; d++)
        n += (size_t)snprintf(ret + n, BULK_INDEX_BYTES - n, d ? ", %td" : "%td", index[d]);
    snprintf(ret + n, BULK_INDEX_BYTES - n, "]");
}

/* --- Reading ------------------------------------------------------------- */

struct bulk_reader bulk_reader_of(const struct shmview_view *view)
{
    struct bulk_reader r = {.unit = 0};
    cursor_init_view(&r.cursor, view);
    if (view->dtype & SHMVIEW_SWAPPED) {
        r.unit = swap_unit(view->dtype);
        r.units = view->itemsize / r.unit;
    }
    return r;
}

size_t bulk_stretch(const struct cursor *cursor, bool is_plain, uint64_t n)
{
    if (is_plain && bulk_is_plain(cursor, LONG_RUN))
        return n < cursor->left ? (size_t)n : cursor->left;
    return n < BLOCK ? (size_t)n : BLOCK;
}

int bulk_read(struct bulk_reader *reader, size_t n, void *buffer, const void **ret)
{
    struct cursor *c = &reader->cursor;
    int r = cursor_look(c);
    if (r)
        return r;
    if (!reader->unit && bulk_is_plain(c, n)) {
        *ret = c->at;
        cursor_skip(c, n);
        return 0;
    }
    *ret = buffer;
    r = cursor_read(c, buffer, n);
    if (r == 0 && reader->unit)
        bytes_swap(buffer, buffer, n * reader->units, reader->unit);
    return r;
}

/* --- Filling ------------------------------------------------------------- */

/* Fills the rows of a view with suboffsets one at a time, because each of them may lie anywhere.
 * Returns 0, or an error if a stored offset leads outside; rows before it are filled then. */
static int fill_indirect(const struct shmview_view *view, const void *bytes)
{
    struct cursor c;
    uint64_t n = bulk_count(view);
    cursor_init_view(&c, view);
    while (n) {
        int r = cursor_look(&c);
        if (r)
            return r;
        const struct plane p = {
            .n = {1, (ptrdiff_t)c.left},
            .to = c.at,
            .to_strides = {0, c.stride},
            .from = bytes,
        };
        plane_fill(&p, c.itemsize);
        n -= c.left;
        c.left = 0;
    }
    return 0;
}

/* The argument that walk_planes() passes on to fill_plane(). */
struct filling {
    const void *bytes;
    uint32_t itemsize;
};

static void fill_plane(const struct plane *plane, void *arg)
{
    const struct filling *f = arg;
    struct plane p = *plane;
    p.from = f->bytes;
    plane_fill(&p, f->itemsize);
}

int shmview_fill(const struct shmview_view *view, const void *bytes)
{
    struct walk walk;
    struct filling filling = {bytes, view->itemsize};
    int r = bulk_check_writable(view);
    if (r || bulk_count(view) == 0)
        return r;
    if (bulk_is_indirect(view))
        return fill_indirect(view, bytes);
    walk_init(&walk, view, NULL);
    walk_sort(&walk);
    walk_merge(&walk);
    walk_planes(&walk, fill_plane, &filling);
    return 0;
}

/* Converts the number once and fills the view with its bytes. Therefore a number that the type
 * cannot hold is refused before any element has changed. */
static int fill_number(const struct shmview_view *view, const struct shmview_value *n)
{
    unsigned char bytes[NUMBER_BYTES];
    char text[NUMBER_TEXT_BYTES];
    int r = bulk_check_writable(view);
    if (r)
        return r;
    if (!number_is_type(view->dtype))
        return fail(SHMVIEW_ERR_CONVERSION, "elements of format \"%.200s\" are no numbers",
                    view->format);
    if (number_store(view->dtype, n, bytes))
        return shmview_fill(view, bytes);
    number_text(n, text);
    return fail(SHMVIEW_ERR_CONVERSION, "%s is no value of %s", text,
                shmview_dtype_name(view->dtype));
}

int shmview_fill_int64(const struct shmview_view *view, int64_t value)
{
    struct shmview_value n = number_of_int64(value);
    return fill_number(view, &n);
}

int shmview_fill_double(const struct shmview_view *view, double value)
{
    struct shmview_value n = number_of_real((long double)value);
    return fill_number(view, &n);
}
