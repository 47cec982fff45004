/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_equal(): compares two views element by element.
 *
 * Values are compared, not bytes: -0 equals 0, NaN equals nothing, and 1 of an int8 equals 1.0 of a
 * float64. Only structs, strings, and integers of the same format are compared as bytes. Other
 * numbers are compared by a kernel for their type, or converted without loss to int64, uint64 or
 * float64 and compared by the kernel for these, or compared one by one. */
#include "client/whole/bulk.h"

/* How the elements of two views are compared. Set once for a call. */
struct comparison {
    enum {
        AS_BYTES,
        AS_THEY_ARE, /* by a kernel for their type */
        CONVERTED,   /* both, to types for which there is a kernel */
        AS_NUMBERS,  /* one by one */
    } how;
    uint32_t a_dtype, b_dtype;
    uint32_t units; /* numbers in an element for the kernel: 2 for complex */
    struct conversion a_conversion, b_conversion;
    kernel_differ *run;
    bool is_crossed; /* the kernel takes b first */
};

/* Returns the type that holds every value of dtype and has a kernel. Returns SHMVIEW_STRUCT if
 * there is none. */
static uint32_t widest_of(uint32_t dtype)
{
    switch (dtype & ~(uint32_t)SHMVIEW_SWAPPED) {
    case SHMVIEW_LONGDOUBLE:
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        return SHMVIEW_STRUCT;
    case SHMVIEW_UINT64:
    case SHMVIEW_POINTER:
        return SHMVIEW_UINT64;
    case SHMVIEW_FLOAT32:
    case SHMVIEW_FLOAT64:
        return SHMVIEW_FLOAT64;
    default:
        return kernel_to_decode(dtype & ~(uint32_t)SHMVIEW_SWAPPED) ? SHMVIEW_FLOAT64
                                                                    : SHMVIEW_INT64;
    }
}

/* Whether two numbers of this type are equal exactly if their bytes are. Not so for bool, of which
 * any byte but 0 is true, and for floats. */
static bool is_integer(uint32_t dtype)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    return dtype <= SHMVIEW_UINT64 || dtype == SHMVIEW_CHAR || dtype == SHMVIEW_POINTER;
}

/* Returns the kernel that compares floats and complex numbers without a conversion, or NULL. Sets
 * *ret_units in any case. */
static kernel_differ *kernel_for_itself(uint32_t dtype, uint32_t *ret_units)
{
    bool is_complex = dtype == SHMVIEW_COMPLEX64 || dtype == SHMVIEW_COMPLEX128;
    *ret_units = is_complex ? 2 : 1;
    if (is_complex)
        dtype = dtype == SHMVIEW_COMPLEX64 ? SHMVIEW_FLOAT32 : SHMVIEW_FLOAT64;
    return dtype == SHMVIEW_FLOAT32 || dtype == SHMVIEW_FLOAT64 ? kernel_to_compare(dtype, dtype)
                                                                : NULL;
}

/* Chooses how to compare. Both views have numbers, or both have the same format. */
static struct comparison comparison_of(const struct shmview_view *a, const struct shmview_view *b)
{
    const uint32_t native = ~(uint32_t)SHMVIEW_SWAPPED;
    struct comparison c = {
        .how = AS_NUMBERS, .a_dtype = a->dtype & native, .b_dtype = b->dtype & native, .units = 1};
    if (bulk_same_format(a, b) && (!number_is_type(a->dtype) || is_integer(a->dtype))) {
        c.how = AS_BYTES;
        return c;
    }
    if (c.a_dtype == c.b_dtype && (c.run = kernel_for_itself(c.a_dtype, &c.units))) {
        c.how = AS_THEY_ARE;
        return c;
    }
    uint32_t a_widest = widest_of(a->dtype), b_widest = widest_of(b->dtype);
    if (a_widest == SHMVIEW_STRUCT || b_widest == SHMVIEW_STRUCT)
        return c;
    c.how = CONVERTED;
    c.a_conversion = conversion_of(a_widest, a->dtype);
    c.b_conversion = conversion_of(b_widest, b->dtype);
    c.run = kernel_to_compare(a_widest, b_widest);
    c.is_crossed = !c.run;
    if (c.is_crossed)
        c.run = kernel_to_compare(b_widest, a_widest);
    return c;
}

/* --- Blocks of numbers --------------------------------------------------- */

static size_t differ_as_numbers(const struct comparison *c, const unsigned char *a, size_t a_bytes,
                                const unsigned char *b, size_t b_bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct shmview_value x = number_load(c->a_dtype, a + i * a_bytes);
        struct shmview_value y = number_load(c->b_dtype, b + i * b_bytes);
        if (!number_equal(&x, &y))
            return i;
    }
    return n;
}

/* Compares at most BLOCK elements after converting both sides. The conversions cannot fail, because
 * the wider types hold every value. */
static size_t differ_converted(const struct comparison *c, const void *a, const void *b, size_t n)
{
    _Alignas(64) unsigned char x[BLOCK * sizeof(double)], y[BLOCK * sizeof(double)];
    conversion_run(&c->a_conversion, x, a, n);
    conversion_run(&c->b_conversion, y, b, n);
    return c->is_crossed ? c->run(y, x, n) : c->run(x, y, n);
}

/* Compares the next n elements. n is at most BLOCK unless the elements lie side by side in both
 * views. Sets *ret_first to the number of the first element that differs, or n. Returns 0 or an
 * error. */
static int differ_block(const struct comparison *c, struct bulk_reader *a, struct bulk_reader *b,
                        size_t n, size_t *ret_first)
{
    _Alignas(64) unsigned char a_buffer[BLOCK_BYTES], b_buffer[BLOCK_BYTES];
    const void *p, *q;
    int r = bulk_read(a, n, a_buffer, &p);
    if (r == 0)
        r = bulk_read(b, n, b_buffer, &q);
    if (r)
        return r;
    if (c->how == AS_THEY_ARE)
        *ret_first = c->run(p, q, n * c->units) / c->units;
    else if (c->how == CONVERTED)
        *ret_first = differ_converted(c, p, q, n);
    else
        *ret_first = differ_as_numbers(c, p, a->cursor.itemsize, q, b->cursor.itemsize, n);
    return 0;
}

/* --- Whole views --------------------------------------------------------- */

/* Sets *ret_first to the first element that differs in the order of the two readers, or to n.
 * Returns 0 or an error. */
static int differ_all(const struct comparison *c, struct bulk_reader *a, struct bulk_reader *b,
                      uint64_t n, uint64_t *ret_first)
{
    struct cursor *p = &a->cursor, *q = &b->cursor;
    size_t k, first;
    for (uint64_t done = 0; done < n; done += k) {
        int r = cursor_look(p);
        if (r == 0)
            r = cursor_look(q);
        if (r)
            return r;
        if (c->how == AS_BYTES) {
            k = p->left < q->left ? p->left : q->left;
            first = bytes_differ(p->at, p->stride, q->at, q->stride, k, p->itemsize);
            cursor_skip(p, k);
            cursor_skip(q, k);
        } else {
            k = bulk_stretch(p, !a->unit, n - done);
            k = bulk_stretch(q, !b->unit, k);
            if (c->how != AS_THEY_ARE || !bulk_is_plain(p, k) || !bulk_is_plain(q, k))
                k = k < BLOCK ? k : BLOCK;
            r = differ_block(c, a, b, k, &first);
            if (r)
                return r;
        }
        if (first < k) {
            *ret_first = done + first;
            return 0;
        }
    }
    *ret_first = n;
    return 0;
}

/* Compares in the order of the memory first, which is fast. Only if a value differs and the caller
 * wants the index does it compare again in C order. */
int shmview_equal(const struct shmview_view *a, const struct shmview_view *b, ptrdiff_t *ret_index)
{
    if (!bulk_same_format(a, b) && (!number_is_type(a->dtype) || !number_is_type(b->dtype)))
        return fail(SHMVIEW_ERR_CONVERSION, "format \"%.200s\" cannot be compared with \"%.200s\"",
                    a->format, b->format);
    if (!bulk_same_shape(a, b))
        return 0;
    const uint64_t n = bulk_count(a);
    if (n == 0)
        return 1;
    struct comparison c = comparison_of(a, b);
    struct bulk_reader p = bulk_reader_of(a), q = bulk_reader_of(b);
    uint64_t first;
    if (!bulk_is_indirect(a) && !bulk_is_indirect(b)) {
        struct walk walk;
        walk_init(&walk, a, b);
        walk_sort(&walk);
        cursor_init(&p.cursor, &walk, 0);
        cursor_init(&q.cursor, &walk, 1);
        int r = differ_all(&c, &p, &q, n, &first);
        if (r || first == n || !ret_index)
            return r ? r : first == n;
        /* again in C order, to find the first one */
        p = bulk_reader_of(a);
        q = bulk_reader_of(b);
    }
    int r = differ_all(&c, &p, &q, n, &first);
    if (r || first == n)
        return r ? r : 1;
    if (ret_index)
        bulk_index(a, first, ret_index);
    return 0;
}
