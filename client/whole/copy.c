/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_copy(): from one view to another of the same shape.
 *
 * The copy depends on formats and overlap. The same format is copied plane by plane, and the other
 * byte order is reversed on the way. All other pairs of types are converted, in place or through
 * buffers of BLOCK elements. Views that share memory are copied through a temporary, because an
 * element could be overwritten before it is read. Cheap exceptions avoid the temporary: nothing to
 * do, one memmove(), and a change of the byte order in place.
 *
 * A walk visits both views in an order that suits the memory of the destination. Views with
 * suboffsets have no such order, because each row must be looked up: cursors visit them in C
 * order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/whole/bulk.h"

/* --- The same format ----------------------------------------------------- */

static void copy_plane(const struct plane *plane, void *arg)
{
    plane_copy(plane, *(const uint32_t *)arg);
}

static void copy_walk(const struct walk *sorted)
{
    struct walk walk = *sorted;
    walk_merge(&walk);
    walk_planes(&walk, copy_plane, &walk.itemsize[0]);
}

/* Copies in runs, each as long as elements of both views lie in a row. Returns 0, or an error if a
 * stored offset leads outside. */
static int copy_indirect(const struct shmview_view *to, const struct shmview_view *from)
{
    struct cursor q, p;
    cursor_init_view(&q, to);
    cursor_init_view(&p, from);
    for (uint64_t n = bulk_count(to), k; n; n -= k) {
        int r = cursor_look(&q);
        if (r == 0)
            r = cursor_look(&p);
        if (r)
            return r;
        k = q.left < p.left ? q.left : p.left;
        const struct plane plane = {
            .n = {1, (ptrdiff_t)k},
            .to = q.at,
            .to_strides = {0, q.stride},
            .from = p.at,
            .from_strides = {0, p.stride},
        };
        plane_copy(&plane, to->itemsize);
        cursor_skip(&q, k);
        cursor_skip(&p, k);
    }
    return 0;
}

/* --- The other byte order ------------------------------------------------ */

/* Copies and reverses n elements. The views must be apart, or to must be from. Each block is read
 * as a whole before it is written, so that an element may be reversed in place. Returns 0 or an
 * error. */
static int copy_swapped(struct cursor *to, struct cursor *from, uint64_t n, uint32_t unit)
{
    const uint32_t units = to->itemsize / unit;
    _Alignas(64) unsigned char buffer[BLOCK_BYTES];
    for (size_t k; n; n -= k) {
        int r = cursor_look(to);
        if (r == 0)
            r = cursor_look(from);
        if (r)
            return r;
        k = n < BLOCK ? (size_t)n : BLOCK;
        if (bulk_is_plain(to, k) && bulk_is_plain(from, k)) {
            bytes_swap(to->at, from->at, k * units, unit);
            cursor_skip(to, k);
            cursor_skip(from, k);
            continue;
        }
        r = cursor_read(from, buffer, k);
        bytes_swap(buffer, buffer, k * units, unit);
        if (r == 0)
            r = cursor_write(to, buffer, k);
        if (r)
            return r;
    }
    return 0;
}

/* --- Other types --------------------------------------------------------- */

/* The state of one conversion; on the stack of convert(). */
struct converting {
    struct conversion conversion;
    struct cursor to;
    uint32_t to_unit; /* bytes of one byte-swapped unit; 0: native byte order */
    struct bulk_reader from;
    uint64_t done; /* elements */
};

/* Element number `done` has no value in the new type. */
#define FOUND_BAD 1

/* Converts the next n elements, at most BLOCK, through buffers: for elements that have gaps, have
 * the other byte order, or need several steps. Returns 0, FOUND_BAD or an error. */
static int convert_block(struct converting *c, size_t n)
{
    _Alignas(64) unsigned char from_buffer[BLOCK_BYTES], to_buffer[BLOCK_BYTES];
    const void *from;
    int r = bulk_read(&c->from, n, from_buffer, &from);
    if (r)
        return r;
    size_t good = conversion_run(&c->conversion, to_buffer, from, n);
    if (c->to_unit)
        bytes_swap(to_buffer, to_buffer, good * (c->to.itemsize / c->to_unit), c->to_unit);
    r = cursor_write(&c->to, to_buffer, good);
    c->done += good;
    return r ? r : good < n ? FOUND_BAD : 0;
}

/* Like convert_block(), but reads and writes the views directly. in_place() must have allowed n.
 * Returns 0 or FOUND_BAD. */
static int convert_in_place(struct converting *c, size_t n)
{
    struct cursor *q = &c->to, *p = &c->from.cursor;
    size_t good = bulk_is_plain(q, n) && bulk_is_plain(p, n)
                      ? conversion_run(&c->conversion, q->at, p->at, n)
                      : c->conversion.convert(q->at, q->stride, p->at, p->stride, n);
    cursor_skip(q, good);
    cursor_skip(p, good);
    c->done += good;
    return good < n ? FOUND_BAD : 0;
}

/* Returns how many of the next n elements can be converted in place, or 0 if these are none or few.
 * A single step stops at a bad element and writes nothing after it. But of a complex number it may
 * have written the real part, so a conversion of complex numbers must be one that cannot fail. */
static size_t in_place(const struct converting *c, uint64_t n)
{
    const struct conversion *how = &c->conversion;
    const struct cursor *q = &c->to, *p = &c->from.cursor;
    size_t k = q->left < p->left ? q->left : p->left;
    k = k < n ? k : (size_t)n;
    if (c->to_unit || c->from.unit || !conversion_is_single(how) || (k < LONG_RUN && k < n))
        return 0;
    if (bulk_is_plain(q, k) && bulk_is_plain(p, k))
        return how->units == 1 || how->is_total ? k : 0;
    return how->convert && how->units == 1 ? k : 0;
}

/* Converts all n elements in the order of the two cursors. Returns 0, FOUND_BAD or an error. */
static int convert_all(struct converting *c, uint64_t n)
{
    while (c->done < n) {
        int r = cursor_look(&c->to);
        if (r == 0)
            r = cursor_look(&c->from.cursor);
        if (r)
            return r;
        size_t k = in_place(c, n - c->done);
        if (k) {
            r = convert_in_place(c, k);
        } else {
            k = bulk_stretch(&c->from.cursor, !c->from.unit, n - c->done);
            k = bulk_stretch(&c->to, !c->to_unit, k);
            r = convert_block(c, k < BLOCK ? k : BLOCK);
        }
        if (r)
            return r;
    }
    return 0;
}

/* Reads the element again, because the row that the kernel saw may be gone from its buffer. Another
 * program may have changed it since; then the error text has the new value. */
static int fail_element(const struct shmview_view *to, const struct shmview_view *from, uint64_t at)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    unsigned char bytes[NUMBER_BYTES];
    char text[NUMBER_TEXT_BYTES], index_text[BULK_INDEX_BYTES];
    bulk_index(from, at, index);
    bulk_index_text(from, index, index_text);
    int r = shmview_get_bytes(from, index, bytes);
    if (r)
        return r;
    struct shmview_value n = number_load(from->dtype, bytes);
    number_text(&n, text);
    return fail(SHMVIEW_ERR_CONVERSION, "element %s: %s is no value of %s", index_text, text,
                shmview_dtype_name(to->dtype));
}

/* Converts all elements: in the order of walk if it is not NULL. If that finds a bad element,
 * converts again in C order, because the caller is promised that all elements before the bad one
 * are copied, and is given the index of the first one. */
static int convert(const struct shmview_view *to, const struct shmview_view *from,
                   const struct walk *walk)
{
    struct converting c = {
        .conversion = conversion_of(to->dtype, from->dtype),
        .to_unit = to->dtype & SHMVIEW_SWAPPED ? swap_unit(to->dtype) : 0,
        .from = bulk_reader_of(from),
    };
    uint64_t n = bulk_count(to);
    if (walk) {
        cursor_init(&c.to, walk, 0);
        cursor_init(&c.from.cursor, walk, 1);
        int r = convert_all(&c, n);
        if (r != FOUND_BAD)
            return r;
        c.done = 0;
    }
    cursor_init_view(&c.to, to);
    cursor_init_view(&c.from.cursor, from);
    int r = convert_all(&c, n);
    return r == FOUND_BAD ? fail_element(to, from, c.done) : r;
}

/* --- All of them --------------------------------------------------------- */

/* Whether the formats differ in nothing but the byte order. */
static bool is_swapped(const struct shmview_view *to, const struct shmview_view *from)
{
    return (to->dtype ^ from->dtype) == SHMVIEW_SWAPPED && number_is_type(to->dtype);
}

/* Copies between views that share no byte, or whose elements is_swapped() can reverse in place.
 * walk is NULL if a view has suboffsets. */
static int copy_apart(const struct shmview_view *to, const struct shmview_view *from,
                      const struct walk *walk)
{
    if (bulk_same_format(to, from)) {
        if (!walk)
            return copy_indirect(to, from);
        copy_walk(walk);
        return 0;
    }
    if (!is_swapped(to, from))
        return convert(to, from, walk);
    struct cursor q, p;
    if (walk) {
        cursor_init(&q, walk, 0);
        cursor_init(&p, walk, 1);
    } else {
        cursor_init_view(&q, to);
        cursor_init_view(&p, from);
    }
    return copy_swapped(&q, &p, bulk_count(to), swap_unit(to->dtype));
}

/* Copies between views without suboffsets that share no byte. */
static int copy_direct(const struct shmview_view *to, const struct shmview_view *from)
{
    struct walk walk;
    walk_init(&walk, to, from);
    walk_sort(&walk);
    return copy_apart(to, from, &walk);
}

/* Copies the source to a temporary of the same format without gaps, and that to the destination.
 * For views that overlap. */
static int copy_by_temporary(const struct shmview_view *to, const struct shmview_view *from)
{
    struct shmview_view temporary = *from;
    ptrdiff_t stride = (ptrdiff_t)from->itemsize;
    for (uint32_t d = from->ndim; d-- > 0;) {
        temporary.strides[d] = stride;
        stride *= from->shape[d];
    }
    /* bulk_same_format() would find another format without this flag */
    temporary.flags = from->flags & SHMVIEW_VIEW_UNALIGNED;
    temporary.data = malloc(from->nbytes);
    if (!temporary.data)
        return fail(SHMVIEW_ERR_NO_MEMORY,
                    "out of memory: the views overlap, and %" PRIu64 " bytes have to be put aside",
                    from->nbytes);
    int r =
        bulk_is_indirect(from) ? copy_indirect(&temporary, from) : copy_direct(&temporary, from);
    if (r == 0)
        r = bulk_is_indirect(to) ? copy_apart(to, &temporary, NULL) : copy_direct(to, &temporary);
    free(temporary.data);
    return r;
}

/* Whether the two handles have two mappings of one segment, as those of different access have. Its
 * bytes then have two addresses in this process, so that addresses do not show an overlap. Id and
 * name cannot decide it, because two instances may have a segment of the same id and name each. */
static bool is_twice_attached(const struct shmview_segment *a, const struct shmview_segment *b)
{
    const struct mapping *of_a = a->mapping, *of_b = b->mapping;
    return of_a != of_b && of_a && of_b && of_a->inode == of_b->inode &&
           of_a->device == of_b->device;
}

/* Whether the memory of the two segments overlaps. Views with suboffsets are judged by that alone,
 * because their elements may lie anywhere in the segment. */
static bool may_share_memory(const struct shmview_view *to, const struct shmview_view *from)
{
    const struct shmview_segment *a = to->segment, *b = from->segment;
    uintptr_t a_at = (uintptr_t)a->data, b_at = (uintptr_t)b->data;
    return a == b || is_twice_attached(a, b) || (a_at < b_at + b->size && b_at < a_at + a->size);
}

/* Whether both views have the same elements at the same indices, and no byte lies in two elements.
 * Then the copy changes no place. */
static bool is_in_place(const struct walk *walk)
{
    ptrdiff_t end = (ptrdiff_t)walk->itemsize[0];
    if (walk->data[0] != walk->data[1] || walk->itemsize[0] != walk->itemsize[1])
        return false;
    for (uint32_t d = walk->ndim; d-- > 0;) {
        if (walk->strides[0][d] != walk->strides[1][d] || walk->strides[0][d] < end)
            return false;
        end += (walk->shape[d] - 1) * walk->strides[0][d];
    }
    return true;
}

/* Copies by one memmove() if each view is one run without gaps. Returns whether it did. memmove()
 * handles an overlap, but only of addresses: the caller excludes segments that are mapped twice. */
static bool move_at_once(const struct walk *sorted)
{
    struct walk walk = *sorted;
    walk_merge(&walk);
    if (walk.ndim != 1 || !walk_is_contiguous(&walk, 0) || !walk_is_contiguous(&walk, 1))
        return false;
    memmove(walk.data[0], walk.data[1], (size_t)walk.shape[0] * walk.itemsize[0]);
    return true;
}

/* Chooses the way; the views have the same shape, elements, and formats that can be converted. */
static int copy(const struct shmview_view *to, const struct shmview_view *from)
{
    struct walk walk;
    const bool is_twice = is_twice_attached(to->segment, from->segment);
    if (bulk_is_indirect(to) || bulk_is_indirect(from))
        return may_share_memory(to, from) ? copy_by_temporary(to, from)
                                          : copy_apart(to, from, NULL);
    walk_init(&walk, to, from);
    walk_sort(&walk);
    struct walk together = walk;
    if (is_twice) /* as if both were views of the same attachment */
        together.data[1] = (unsigned char *)to->segment->data +
                           (walk.data[1] - (unsigned char *)from->segment->data);
    if (!walk_overlaps(&together))
        return copy_apart(to, from, &walk);
    bool same_format = bulk_same_format(to, from);
    if (is_in_place(&together) && same_format)
        return 0;
    if (is_in_place(&walk) && is_swapped(to, from))
        return copy_apart(to, from, &walk);
    if (same_format && !is_twice && move_at_once(&walk))
        return 0;
    return copy_by_temporary(to, from);
}

static int fail_shapes(const struct shmview_view *to, const struct shmview_view *from)
{
    char to_text[BULK_INDEX_BYTES], from_text[BULK_INDEX_BYTES];
    bulk_index_text(to, to->shape, to_text);
    bulk_index_text(from, from->shape, from_text);
    return fail(SHMVIEW_ERR_INVALID, "a view of shape %s cannot take one of %s", to_text,
                from_text);
}

int shmview_copy(const struct shmview_view *to, const struct shmview_view *from)
{
    int r = bulk_check_writable(to);
    if (r)
        return r;
    if (!bulk_same_shape(to, from))
        return fail_shapes(to, from);
    if (!bulk_same_format(to, from) && (!number_is_type(to->dtype) || !number_is_type(from->dtype)))
        return fail(SHMVIEW_ERR_CONVERSION, "format \"%.200s\" cannot be made of \"%.200s\"",
                    to->format, from->format);
    return bulk_count(to) ? copy(to, from) : 0;
}
