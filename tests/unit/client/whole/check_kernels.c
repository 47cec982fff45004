/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the loops over rows: on single elements and on blocks, at addresses of any alignment. */
#include "client/whole/kernels.h"

#include "client/whole/number.h"
#include "unit/values.h"

/* Elements of one type with their values. */
struct row {
    size_t n;
    unsigned char bytes[2 * VALUE_EDGES * 16 + 1];
    struct value values[2 * VALUE_EDGES];
};

static void row_add(struct row *row, const struct value_type *t, struct value v)
{
    struct value as;
    unsigned char *p = row->bytes + 1 + row->n * t->bytes; /* nothing is aligned */
    if (!value_convert(t, v, &as))
        return;
    struct shmview_value n =
        v.is_integer && v.i > INT64_MAX
            ? (struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = (uint64_t)v.i}
        : v.is_integer ? number_of_int64((int64_t)v.i)
                       : number_of_complex(v.re, v.im);
    ck_assert(number_store(t->dtype, &n, p));
    row->values[row->n++] = value_read(t, false, p);
}

static void row_fill(struct row *row, const struct value_type *t)
{
    huge integers[VALUE_EDGES];
    double doubles[VALUE_EDGES];
    size_t n_integers = value_integers(integers), n_doubles = value_doubles(doubles);
    row->n = 0;
    for (size_t i = 0; i < n_integers; i++)
        row_add(row, t, value_int(integers[i]));
    for (size_t i = 0; i < n_doubles; i++)
        row_add(row, t, value_real((long double)doubles[i]));
}

/* --- Converting ---------------------------------------------------------- */

static struct row from;
static unsigned char to[sizeof from.bytes];

/* Converts each element alone, then all valid ones at once, then each invalid one among them. */
static void check_pair(const struct value_type *q, const struct value_type *p)
{
    static struct row good;
    static struct value wanted[2 * VALUE_EDGES];
    struct kernel_conversion k = kernel_to_convert(q->dtype, p->dtype);
    const ptrdiff_t q_step = (ptrdiff_t)q->bytes, p_step = (ptrdiff_t)p->bytes;
    ck_assert_ptr_nonnull(k.run);
    good.n = 0;
    bool is_total = true;
    for (size_t i = 0; i < from.n; i++) {
        const unsigned char *x = from.bytes + 1 + i * p->bytes;
        bool fits = value_convert(q, from.values[i], &wanted[good.n]);
        ck_assert_msg(k.run(to + 1, q_step, x, p_step, 1) == (size_t)fits,
                      "%s to %s, number %zu: %d", p->format, q->format, i, !fits);
        is_total &= fits;
        if (!fits)
            continue;
        ck_assert_msg(value_same(value_read(q, false, to + 1), wanted[good.n]),
                      "%s to %s, number %zu", p->format, q->format, i);
        memcpy(good.bytes + 1 + good.n++ * p->bytes, x, p->bytes);
    }
    ck_assert_int_eq(k.is_total, is_total);
    for (size_t n = 0; n <= good.n; n = n < 40 ? n + 1 : n + 101) {
        memset(to, 0xee, sizeof to);
        ck_assert_uint_eq(k.run(to + 1, q_step, good.bytes + 1, p_step, n), n);
        for (size_t i = 0; i < n; i++)
            VALUE_ASSERT(value_same(value_read(q, false, to + 1 + i * q->bytes), wanted[i]),
                         "%s to %s, %zu of %zu", p->format, q->format, i, n);
        ck_assert(to[0] == 0xee && to[1 + n * q->bytes] == 0xee);
    }
    for (size_t i = 0; i < from.n; i++) {
        struct value unused;
        if (value_convert(q, from.values[i], &unused))
            continue;
        size_t at = i * 7 % good.n, n = i % 3 ? good.n : at + 1;
        unsigned char kept[16], *place = good.bytes + 1 + at * p->bytes;
        memcpy(kept, place, p->bytes);
        memcpy(place, from.bytes + 1 + i * p->bytes, p->bytes);
        memset(to, 0xee, sizeof to);
        ck_assert_msg(k.run(to + 1, q_step, good.bytes + 1, p_step, n) == at, "%s to %s, %zu",
                      p->format, q->format, i);
        for (size_t d = 0; d < at; d++)
            VALUE_ASSERT(value_same(value_read(q, false, to + 1 + d * q->bytes), wanted[d]),
                         "%s to %s, %zu before %zu", p->format, q->format, d, at);
        VALUE_ASSERT(to[1 + at * q->bytes] == 0xee, "%s to %s, %zu", p->format, q->format, at);
        memcpy(place, kept, p->bytes);
    }
}

static bool has_kernel(const struct value_type *t)
{
    return (t->kind != 's' && t->kind != 'c' && t->dtype != SHMVIEW_LONGDOUBLE);
}

START_TEST(conversions)
{
    for (size_t i = 0; i < N_VALUE_TYPES; i++) {
        row_fill(&from, &value_types[i]);
        for (size_t k = 0; k < N_VALUE_TYPES; k++) {
            if (has_kernel(&value_types[i]) && has_kernel(&value_types[k]))
                check_pair(&value_types[k], &value_types[i]);
            else
                ck_assert_ptr_null(
                    kernel_to_convert(value_types[k].dtype, value_types[i].dtype).run);
        }
    }
    ck_assert_ptr_null(kernel_to_convert(SHMVIEW_INT8, SHMVIEW_STRUCT).run);
    ck_assert_ptr_null(kernel_to_convert(SHMVIEW_INT8 | SHMVIEW_SWAPPED, SHMVIEW_INT8).run);
}
END_TEST

/* Any byte but 0 is true. */
START_TEST(all_bytes_as_bool)
{
    uint8_t bytes[256];
    float floats[256];
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(
        kernel_to_convert(SHMVIEW_FLOAT32, SHMVIEW_BOOL).run(floats, 4, bytes, 1, 256), 256);
    for (unsigned i = 0; i < 256; i++)
        ck_assert(floats[i] == (i ? 1 : 0));
}
END_TEST

/* --- Comparing ----------------------------------------------------------- */

/* Compares two rows of n elements that differ only at the places in bad. */
static void check_compare(uint32_t a, uint32_t b)
{
    static double x[1000], y[1000]; /* all types have 8 bytes, but a float32 has fewer digits */
    kernel_differ *run = kernel_to_compare(a, b);
    ck_assert_ptr_nonnull(run);
    for (int i = 0; i < 1000; i++) {
        struct shmview_value n = number_of_int64(i % 100);
        size_t bytes = a == SHMVIEW_FLOAT32 ? 4 : 8;
        ck_assert(number_store(a, &n, (unsigned char *)x + (size_t)i * bytes));
        ck_assert(number_store(b, &n, (unsigned char *)y + (size_t)i * bytes));
    }
    for (size_t n = 0; n <= 1000; n += 77)
        ck_assert_uint_eq(run(x, y, n), n);
    for (size_t at = 0; at < 1000; at += 13) {
        size_t bytes = a == SHMVIEW_FLOAT32 ? 4 : 8;
        unsigned char kept[8], *place = (unsigned char *)x + at * bytes;
        memcpy(kept, place, bytes);
        struct shmview_value n = number_of_int64(100);
        ck_assert(number_store(a, &n, place));
        ck_assert_uint_eq(run(x, y, 1000), at);
        ck_assert_uint_eq(run(x, y, at), at);
        memcpy(place, kept, bytes);
    }
}

/* Compares all edge values of one type with all of the other. */
static void check_edges(const struct value_type *a, const struct value_type *b)
{
    static struct row x, y;
    kernel_differ *run = kernel_to_compare(a->dtype, b->dtype);
    row_fill(&x, a);
    row_fill(&y, b);
    for (size_t i = 0; i < x.n; i++)
        for (size_t k = 0; k < y.n; k++) {
            struct shmview_value p = number_load(a->dtype, x.bytes + 1 + i * a->bytes);
            struct shmview_value q = number_load(b->dtype, y.bytes + 1 + k * b->bytes);
            size_t want = number_equal(&p, &q);
            ck_assert_uint_eq(run(x.bytes + 1 + i * a->bytes, y.bytes + 1 + k * b->bytes, 1), want);
        }
}

START_TEST(comparisons)
{
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (size_t k = 0; k < N_VALUE_TYPES; k++) {
            uint32_t a = value_types[i].dtype, b = value_types[k].dtype;
            if (!kernel_to_compare(a, b))
                continue;
            check_compare(a, b);
            check_edges(&value_types[i], &value_types[k]);
        }
    ck_assert_ptr_null(kernel_to_compare(SHMVIEW_FLOAT64, SHMVIEW_INT64));
    ck_assert_ptr_null(kernel_to_compare(SHMVIEW_INT32, SHMVIEW_INT32));
}
END_TEST

/* --- Sums ---------------------------------------------------------------- */

static void check_sum(const struct value_type *t)
{
    static struct row row;
    kernel_sum *run = kernel_to_sum(t->dtype);
    row_fill(&row, t);
    for (size_t n = 1; n <= row.n; n = n < 40 ? n + 1 : n + 67) {
        struct sum sum = SUM_OF_NOTHING;
        huge whole = 0, low = UINT64_MAX, high = INT64_MIN;
        double min = (double)INFINITY, max = -(double)INFINITY;
        uint64_t n_nan = 0;
        for (size_t at = 0; at < n; at += BLOCK)
            run(&sum, row.bytes + 1 + at * t->bytes, n - at < BLOCK ? n - at : BLOCK);
        for (size_t i = 0; i < n; i++) {
            struct value v = row.values[i];
            whole += v.i;
            low = v.is_integer && v.i < low ? v.i : low;
            high = v.is_integer && v.i > high ? v.i : high;
            n_nan += !v.is_integer && isnan(v.re);
            min = (double)v.re < min ? (double)v.re : min;
            max = (double)v.re > max ? (double)v.re : max;
        }
        if (t->kind == 'f')
            ck_assert(sum.min == min && sum.max == max && sum.n_nan == n_nan);
        else
            ck_assert(sum.whole == whole && sum.min_whole == low && sum.max_whole == high);
    }
}

START_TEST(sums)
{
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        if (kernel_to_sum(value_types[i].dtype))
            check_sum(&value_types[i]);
    ck_assert_ptr_null(kernel_to_sum(SHMVIEW_COMPLEX64));
    ck_assert_ptr_null(kernel_to_sum(SHMVIEW_STRUCT));
    ck_assert_ptr_null(kernel_to_sum(SHMVIEW_INT16 | SHMVIEW_SWAPPED));
}
END_TEST

/* Sums a million times a fraction that has no finite binary form, because the sum of the blocks
 * must include their rounding errors. */
START_TEST(sum_of_many_floats)
{
    static double tenths[BLOCK];
    struct sum sum = SUM_OF_NOTHING;
    const long double want = 20000.0L * (BLOCK / 2) * (1e10L + (long double)0.1);
    for (int i = 0; i < BLOCK; i++)
        tenths[i] = i % 2 ? 0.1 : 1e10;
    for (int block = 0; block < 20000; block++)
        kernel_to_sum(SHMVIEW_FLOAT64)(&sum, tenths, BLOCK);
    long double error = fabsl((long double)sum.total + (long double)sum.rest - want);
    ck_assert_msg(error <= 0x1p-53L * want, "off by %Lg of %Lg", error, want);
    ck_assert(sum.min == 0.1 && sum.max == 1e10);
}
END_TEST

START_TEST(sums_that_are_not_finite)
{
    const double infinite[] = {1, (double)INFINITY, 2, (double)NAN};
    const double both[] = {-(double)INFINITY, (double)INFINITY};
    struct sum sum = SUM_OF_NOTHING;
    kernel_to_sum(SHMVIEW_FLOAT64)(&sum, infinite, 4);
    kernel_to_sum(SHMVIEW_FLOAT64)(&sum, infinite, 1);
    ck_assert(sum.total == (double)INFINITY && sum.n_nan == 1);
    ck_assert(sum.min == 1 && sum.max == (double)INFINITY);
    kernel_to_sum(SHMVIEW_FLOAT64)(&sum, both, 2);
    ck_assert(isnan(sum.total) && sum.min == -(double)INFINITY);
}
END_TEST

UNIT_MAIN("kernels", UNIT_TEST(conversions), UNIT_TEST(all_bytes_as_bool), UNIT_TEST(comparisons),
          UNIT_TEST(sums), UNIT_TEST(sum_of_many_floats), UNIT_TEST(sums_that_are_not_finite))
