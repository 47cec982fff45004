/* SPDX-License-Identifier: Apache-2.0 */
/* Compares view.c with two independent calculations: one visits every byte of small views, the
 * other uses 128 bits for huge numbers. The seeds are fixed. */
#include "unit/unit.h"

#include <inttypes.h>

#include "common/views/view.h"

static struct formats pool; /* has only plain types, so it allocates nothing */

typedef __int128 wide;

static const char *const formats[] = {"b", "h", "i", "d"};

static struct view_desc desc_of(const char *format)
{
    struct view_desc d = {0};
    struct view_fault fault;
    ck_assert_int_eq(view_parse_format(&d, &pool, format, &fault), 0);
    return d;
}

static int64_t between(uint64_t *seed, int64_t from, int64_t to)
{
    return from + (int64_t)(unit_random(seed) % (uint64_t)(to - from + 1));
}

static void describe(const struct view_desc *d, uint64_t size, char *text, size_t bytes)
{
    int n = snprintf(text, bytes, "%s offset %" PRIu64 " size %" PRIu64 ":", format_name(d->item),
                     d->offset, size);
    for (uint32_t i = 0; i < d->ndim; i++)
        n += snprintf(text + n, bytes - (size_t)n, " %" PRId64 "*(%" PRId64 ")", d->shape[i],
                      d->strides[i]);
}

/* --- Small views: every byte of every element ---------------------------- */

struct extent {
    int64_t lo, hi; /* first byte, and the one after the last */
    uint64_t n;     /* number of elements */
    bool aligned;
};

/* Visits each element of the first ndim dimensions. Returns the bytes that they span. */
static struct extent enumerate(const struct view_desc *d, uint32_t ndim)
{
    struct extent e = {INT64_MAX, INT64_MIN, 0, true};
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    for (uint32_t i = 0; i < ndim; i++)
        if (d->shape[i] == 0)
            return (struct extent){0, 0, 0, true};
    for (;;) {
        int64_t at = (int64_t)d->offset;
        for (uint32_t i = 0; i < ndim; i++)
            at += index[i] * d->strides[i];
        e.lo = at < e.lo ? at : e.lo;
        e.hi = at + d->item->itemsize > e.hi ? at + d->item->itemsize : e.hi;
        e.aligned = e.aligned && at % (int64_t)d->item->itemsize == 0;
        e.n++;
        uint32_t k = ndim;
        while (k > 0 && ++index[k - 1] == d->shape[k - 1])
            index[--k] = 0;
        if (k == 0)
            return e;
    }
}

/* Writes the expected text for a view that leaves the segment. It names the first dimension that
 * does so when dimensions are added one by one. */
static void expected_bounds(const struct view_desc *d, int64_t size, char *text, size_t bytes)
{
    for (uint32_t n = 0; n <= d->ndim; n++) {
        struct extent e = enumerate(d, n);
        if (e.lo >= 0 && e.hi <= size)
            continue;
        if (n == 0)
            snprintf(text, bytes,
                     "the first element, %u bytes at byte %" PRIu64
                     ", lies outside the segment's %" PRId64 " bytes",
                     d->item->itemsize, d->offset, size);
        else if (e.lo < 0)
            snprintf(text, bytes, "dimension %u starts at byte %" PRId64 ", before byte 0", n - 1,
                     e.lo);
        else
            snprintf(text, bytes,
                     "dimension %u ends at byte %" PRId64 ", the segment has %" PRId64 " bytes",
                     n - 1, e.hi, size);
        return;
    }
}

static void random_small(uint64_t *seed, struct view_desc *d, int64_t *ret_size)
{
    *d = desc_of(formats[unit_random(seed) % 4]);
    int64_t item = d->item->itemsize;
    bool tidy = unit_random(seed) % 4 != 0; /* otherwise few would be accepted */
    *ret_size = between(seed, 0, 120);
    d->ndim = (uint32_t)between(seed, 0, 4);
    d->offset = (uint64_t)(tidy ? between(seed, 0, 100 / item) * item : between(seed, 0, 130));
    for (uint32_t i = 0; i < d->ndim; i++) {
        d->shape[i] = between(seed, unit_random(seed) % 8 ? 1 : 0, 4);
        d->strides[i] = tidy ? between(seed, -24 / item, 24 / item) * item : between(seed, -24, 24);
    }
}

START_TEST(small_views_byte_by_byte)
{
    uint64_t seed = 0x5eed5eed5eed5eed;
    unsigned accepted = 0, misaligned = 0, outside = 0;
    for (int i = 0; i < 150000; i++) {
        struct view_desc d;
        struct view_fault fault = {0};
        char text[300], wanted[200] = "";
        int64_t size;
        uint64_t nbytes = 0;
        random_small(&seed, &d, &size);
        describe(&d, (uint64_t)size, text, sizeof text);
        int r = view_check(&d, (uint64_t)size, &nbytes, &fault);
        struct extent e = enumerate(&d, d.ndim);
        if (e.n == 0)
            continue; /* it has no bytes: see below */
        if (!e.aligned) {
            misaligned++;
            ck_assert_msg(r == -1 && fault.error == SHMVIEW_ERR_MISALIGNED, "%s", text);
        } else if (e.lo < 0 || e.hi > size) {
            outside++;
            expected_bounds(&d, size, wanted, sizeof wanted);
            ck_assert_msg(r == -1 && fault.error == SHMVIEW_ERR_BOUNDS, "%s", text);
            ck_assert_str_eq(fault.text, wanted);
        } else {
            accepted++;
            ck_assert_msg(r == 0, "%s refused: %s", text, fault.text);
            ck_assert_uint_eq(nbytes, e.n * d.item->itemsize);
        }
    }
    /* a generator of one kind only would prove nothing */
    ck_assert_uint_gt(accepted, 10000);
    ck_assert_uint_gt(misaligned, 10000);
    ck_assert_uint_gt(outside, 10000);
}
END_TEST

START_TEST(small_empty_views)
{
    uint64_t seed = 0xe3e3e3e3e3e3e3e3;
    unsigned seen = 0;
    for (int i = 0; i < 100000; i++) {
        struct view_desc d;
        struct view_fault fault = {0};
        int64_t size;
        uint64_t nbytes = 77;
        random_small(&seed, &d, &size);
        if (d.ndim == 0)
            continue;
        d.shape[unit_random(&seed) % d.ndim] = 0;
        bool aligned = d.offset % d.item->itemsize == 0;
        for (uint32_t k = 0; k < d.ndim; k++)
            aligned = aligned && (d.shape[k] <= 1 || d.strides[k] % (int)d.item->itemsize == 0);
        int r = view_check(&d, (uint64_t)size, &nbytes, &fault);
        ck_assert_int_eq(r == 0, aligned && d.offset <= (uint64_t)size);
        if (r == 0)
            ck_assert_uint_eq(nbytes, 0);
        seen += r == 0;
    }
    ck_assert_uint_gt(seen, 10000);
}
END_TEST

/* --- Huge numbers -------------------------------------------------------- */

static int64_t extreme(uint64_t *seed)
{
    static const int64_t edges[] = {0,
                                    1,
                                    2,
                                    -1,
                                    -2,
                                    3,
                                    8,
                                    -8,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX - 7,
                                    INT64_MIN + 8,
                                    INT64_MAX / 2,
                                    INT64_MIN / 2,
                                    INT64_MAX / 3,
                                    (int64_t)1 << 32,
                                    (int64_t)1 << 31,
                                    UINT32_MAX,
                                    -(int64_t)UINT32_MAX,
                                    (int64_t)1 << 62,
                                    4096,
                                    -4096};
    uint64_t r = unit_random(seed);
    if (r % 4 == 0)
        return (int64_t)unit_random(seed);
    return edges[(r >> 8) % (sizeof edges / sizeof edges[0])];
}

/* Returns whether every byte lies in the segment and every number has at most 63 bits. */
static bool holds(const struct view_desc *d, uint64_t size)
{
    const wide item = d->item->itemsize, max = INT64_MAX, far = (wide)1 << 100;
    wide n = item, lo = (wide)d->offset, hi = (wide)d->offset + item;
    bool empty = false, fits = size <= INT64_MAX && d->offset % d->item->itemsize == 0;
    for (uint32_t i = 0; i < d->ndim; i++) {
        if (d->shape[i] < 0)
            return false;
        empty = empty || d->shape[i] == 0;
        n = d->shape[i] && n <= max ? n * d->shape[i] : n; /* below 2^126: no overflow */
        if (d->shape[i] > 1) {
            wide reach = (wide)(d->shape[i] - 1) * d->strides[i];
            fits = fits && d->strides[i] % (int64_t)item == 0;
            lo += reach < -far ? -far : reach < 0 ? reach : 0;
            hi += reach > far ? far : reach > 0 ? reach : 0;
        }
    }
    if (!fits || n > max || (wide)d->offset > (wide)size)
        return false;
    return empty || (lo >= 0 && hi <= (wide)size);
}

START_TEST(huge_numbers)
{
    uint64_t seed = 0x123456789abcdef1;
    unsigned accepted = 0;
    for (int i = 0; i < 400000; i++) {
        struct view_desc d = desc_of(formats[unit_random(&seed) % 4]);
        struct view_fault fault = {0};
        char text[400];
        uint64_t size = (uint64_t)extreme(&seed), nbytes;
        d.offset = (uint64_t)extreme(&seed);
        d.ndim = (uint32_t)between(&seed, 0, 3);
        for (uint32_t k = 0; k < d.ndim; k++) {
            d.shape[k] = extreme(&seed);
            d.strides[k] = extreme(&seed);
            if (unit_random(&seed) % 2 && d.shape[k] < 0)
                d.shape[k] = 1;
        }
        describe(&d, size, text, sizeof text);
        int r = view_check(&d, size, &nbytes, &fault);
        ck_assert_msg((r == 0) == holds(&d, size), "%s: %s", text, r ? fault.text : "accepted");
        accepted += r == 0;
    }
    ck_assert_uint_gt(accepted, 10000);
}
END_TEST

/* --- Casts --------------------------------------------------------------- */

START_TEST(casts)
{
    for (size_t f = 0; f < 4; f++)
        for (uint64_t size = 0; size < 20; size++)
            for (uint64_t offset = 0; offset < 22; offset++)
                for (uint64_t nbytes = 0; nbytes < 22; nbytes++) {
                    struct view_desc d = desc_of(formats[f]);
                    struct view_fault fault = {0};
                    uint64_t item = d.item->itemsize, n = nbytes == 21 ? UINT64_MAX : nbytes;
                    uint64_t have = n == UINT64_MAX ? size - offset : n;
                    int r = view_cast(&d, offset, n, size, &fault);
                    if (offset > size || (n != UINT64_MAX && offset + n > size))
                        ck_assert_int_eq(fault.error, SHMVIEW_ERR_BOUNDS);
                    else if (have % item)
                        ck_assert_int_eq(fault.error, SHMVIEW_ERR_ILL_SIZED);
                    else if (offset % item)
                        ck_assert_int_eq(fault.error, SHMVIEW_ERR_MISALIGNED);
                    ck_assert_int_eq(r, fault.error ? -1 : 0);
                    if (r == 0) {
                        ck_assert_int_eq(d.shape[0], (int64_t)(have / item));
                        ck_assert_int_eq(view_check(&d, size, &n, &fault), 0);
                        ck_assert_uint_eq(n, have);
                    }
                }
}
END_TEST

UNIT_MAIN("view_random", UNIT_TEST(small_views_byte_by_byte), UNIT_TEST(small_empty_views),
          UNIT_TEST(huge_numbers), UNIT_TEST(casts))
