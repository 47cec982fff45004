/* SPDX-License-Identifier: Apache-2.0 */
/* Checks bulk.c, equal.c and summarize.c of the library: fills, compares and sums whole views, and
 * compares the results with element-by-element ones. */
#include "client/whole/number.h"

#include "unit/shapes.h"
#include "unit/values.h"

#define HALF (FOREIGN_BYTES / 2)

static struct shmview_value number_of(struct value v)
{
    if (!v.is_integer)
        return number_of_complex(v.re, v.im);
    if (v.i > INT64_MAX)
        return (struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = (uint64_t)v.i};
    return number_of_int64((int64_t)v.i);
}

/* Two rows, the second before the first; their offsets are at byte 0. */
static struct shmview_view indirect(const char *format)
{
    ((uint64_t *)(void *)foreign_memory)[0] = 1000;
    ((uint64_t *)(void *)foreign_memory)[1] = 800;
    return foreign_view(&(struct shmview_view_spec){.format = format,
                                                    .ndim = 2,
                                                    .shape = INTS(2, 3),
                                                    .strides = INTS(8, 8),
                                                    .suboffsets = INTS(24, -1)});
}

/* --- Filling ------------------------------------------------------------- */

START_TEST(fill_any_shape)
{
    static const char *const formats[] = {"b",  "h",  "f",           "d",  "Zd",
                                          "3s", "5s", "T{i:a:b:b:}", ">i", "5000s"};
    static unsigned char wanted[FOREIGN_BYTES], element[5000];
    foreign_begin();
    for (int round = 0; round < 2000; round++) {
        int64_t shape[8];
        uint32_t ndim = shapes_shape(shape);
        struct shmview_view v;
        if (!shapes_view(formats[shapes_random(10)], ndim, shape, 0, FOREIGN_BYTES, true, &v))
            continue;
        for (size_t i = 0; i < v.itemsize; i++)
            element[i] = (unsigned char)shapes_random(256);
        memcpy(wanted, foreign_memory, FOREIGN_BYTES);
        for (uint64_t i = 0; i < v.nbytes / v.itemsize; i++)
            memcpy(wanted + (shapes_at(&v, i) - foreign_memory), element, v.itemsize);
        ck_assert_int_eq(shmview_fill(&v, element), 0);
        ck_assert_msg(memcmp(wanted, foreign_memory, FOREIGN_BYTES) == 0, "round %d, %s, %u", round,
                      v.format, ndim);
    }
    foreign_end();
}
END_TEST

static void check_fill(const struct shmview_view *v, const struct value_type *t, bool swapped,
                       struct value value, int r)
{
    struct value want;
    bool fits = value_convert(t, value, &want);
    VALUE_ASSERT(r == (fits ? 0 : -SHMVIEW_ERR_CONVERSION), "%s: %d", v->format, r);
    for (uint64_t i = 0; i < 5; i++) {
        const unsigned char *p = shapes_at(v, i);
        VALUE_ASSERT(fits ? value_same(value_read(t, swapped, p), want) : p[0] == 0x3c,
                     "%s: element %d", v->format, (int)i);
    }
}

START_TEST(fill_with_numbers)
{
    huge integers[VALUE_EDGES];
    double doubles[VALUE_EDGES];
    size_t n_integers = value_integers(integers), n_doubles = value_doubles(doubles);
    foreign_begin();
    for (size_t k = 0; k < N_VALUE_TYPES; k++)
        for (int swapped = 0; swapped <= value_type_can_swap(&value_types[k]); swapped++) {
            const struct value_type *t = &value_types[k];
            struct shmview_view v = foreign_row(value_type_format(t, swapped), 64, 5);
            for (size_t i = 0; i < n_integers; i++) {
                memset(foreign_memory, 0x3c, 256);
                if (integers[i] <= INT64_MAX)
                    check_fill(&v, t, swapped, value_int(integers[i]),
                               shmview_fill_int64(&v, (int64_t)integers[i]));
            }
            for (size_t i = 0; i < n_doubles; i++) {
                memset(foreign_memory, 0x3c, 256);
                check_fill(&v, t, swapped, value_real((long double)doubles[i]),
                           shmview_fill_double(&v, doubles[i]));
            }
        }
    foreign_end();
}
END_TEST

START_TEST(fill_refused)
{
    foreign_begin();
    struct shmview_view v = foreign_row("b", 0, 4), s = foreign_row("5s", 0, 4);
    struct shmview_view none = foreign_row("b", 0, 0), rows = indirect("d");
    assert_fails(shmview_fill_int64(&v, 128), SHMVIEW_ERR_CONVERSION, "128 is no value of int8");
    assert_fails(shmview_fill_double(&v, 0.5), SHMVIEW_ERR_CONVERSION, "0.5 is no value of int8");
    assert_fails(shmview_fill_double(&s, 1), SHMVIEW_ERR_CONVERSION,
                 "elements of format \"5s\" are no numbers");
    assert_fails(shmview_fill_int64(&none, 128), SHMVIEW_ERR_CONVERSION, "128 is no value of int8");
    ck_assert_int_eq(shmview_fill_int64(&none, 1), 0);
    v.flags |= SHMVIEW_VIEW_READ_ONLY;
    assert_fails(shmview_fill(&v, "x"), SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    assert_fails(shmview_fill_int64(&v, 1), SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    assert_fails(shmview_fill_double(&v, 1), SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    ck_assert_int_eq(shmview_fill_double(&rows, 2.5), 0);
    for (size_t i = 0; i < 3; i++)
        ck_assert(((double *)(void *)(foreign_memory + 1024))[i] == 2.5 &&
                  ((double *)(void *)(foreign_memory + 824))[i] == 2.5);
    ck_assert(((double *)(void *)(foreign_memory + 1024))[3] == 0);
    ((uint64_t *)(void *)foreign_memory)[1] = FOREIGN_BYTES - 40;
    ck_assert_int_eq(shmview_fill_double(&rows, 3.5), -SHMVIEW_ERR_BOUNDS);
    foreign_end();
}
END_TEST

/* --- Comparing ----------------------------------------------------------- */

/* Compares each edge value of each type with those of every other type. */
START_TEST(equal_edges)
{
    static const struct value some[] = {
        {.is_integer = true, .i = 0},
        {.is_integer = true, .i = 1},
        {.is_integer = true, .i = -1},
        {.is_integer = true, .i = 127},
        {.is_integer = true, .i = 255},
        {.is_integer = true, .i = INT64_MAX},
        {.is_integer = true, .i = INT64_MIN},
        {.is_integer = true, .i = UINT64_MAX},
        {.is_integer = true, .i = ((huge)1 << 53) + 1},
        {.re = 0x1p53L},
        {.re = 0x1p63L},
        {.re = 0x1p64L},
        {.re = -0.0L},
        {.re = 0.5L},
        {.re = 1},
        {.re = (long double)INFINITY},
        {.re = (long double)NAN},
        {.re = 1, .im = 1},
        {.re = 1, .im = (long double)NAN},
    };
    const size_t n = sizeof some / sizeof some[0];
    foreign_begin();
    for (size_t i = 0; i < N_VALUE_TYPES * n; i++)
        for (size_t k = 0; k < N_VALUE_TYPES * n; k++) {
            const struct value_type *t = &value_types[i / n], *u = &value_types[k / n];
            bool swap_t = value_type_can_swap(t) && i % 3 == 0;
            bool swap_u = value_type_can_swap(u) && k % 2 == 0;
            struct value x, y;
            if (!value_convert(t, some[i % n], &x) || !value_convert(u, some[k % n], &y))
                continue;
            struct shmview_value p = number_of(x), q = number_of(y);
            struct shmview_view a =
                foreign_view(&(struct shmview_view_spec){.format = value_type_format(t, swap_t)});
            struct shmview_view b = foreign_view(
                &(struct shmview_view_spec){.format = value_type_format(u, swap_u), .offset = 64});
            ck_assert(number_store(a.dtype, &p, a.data) && number_store(b.dtype, &q, b.data));
            p = number_load(a.dtype, a.data);
            q = number_load(b.dtype, b.data);
            VALUE_ASSERT(shmview_equal(&a, &b, NULL) == number_equal(&p, &q),
                         "%s number %zu, %s number %zu", a.format, i % n, b.format, k % n);
        }
    foreign_end();
}
END_TEST

/* Views of any shape with one or two changed elements. */
START_TEST(equal_any_shape)
{
    static const char *const formats[] = {"b",  "B", "h", ">h", "i",  "q",  "Q", "f",
                                          ">f", "d", "e", "?",  "Zf", "Zd", "g", "float8_e4m3fn"};
    foreign_begin();
    for (int round = 0; round < 4000; round++) {
        int64_t shape[8];
        uint32_t ndim = shapes_shape(shape);
        struct shmview_view a, b;
        const char *format = formats[shapes_random(16)];
        if (!shapes_view(format, ndim, shape, 0, HALF, false, &a) ||
            !shapes_view(shapes_random(3) ? formats[shapes_random(16)] : format, ndim, shape, HALF,
                         HALF, false, &b))
            continue;
        uint64_t n = a.nbytes / a.itemsize, first;
        for (uint64_t i = 0; i < n; i++) {
            struct shmview_value x = number_of_int64((int64_t)shapes_random(2));
            ck_assert(number_store(a.dtype, &x, shapes_at(&a, i)));
            ck_assert(number_store(b.dtype, &x, shapes_at(&b, i)));
        }
        for (uint64_t k = shapes_random(3); n && k > 0; k--) { /* twice the same: no change */
            uint64_t at = shapes_random(n);
            struct shmview_value x = number_load(a.dtype, shapes_at(&a, at)),
                                 zero = number_of_int64(0);
            struct shmview_value other = number_of_int64(number_equal(&x, &zero));
            ck_assert(number_store(a.dtype, &other, shapes_at(&a, at)));
        }
        for (first = 0; first < n; first++) {
            struct shmview_value x = number_load(a.dtype, shapes_at(&a, first));
            struct shmview_value y = number_load(b.dtype, shapes_at(&b, first));
            if (!number_equal(&x, &y))
                break;
        }
        ptrdiff_t index[8] = {-7, -7, -7, -7, -7, -7, -7, -7}, want[8];
        memcpy(want, index, sizeof want);
        if (first < n)
            shapes_index(&a, first, want);
        ck_assert_int_eq(shmview_equal(&a, &b, NULL), first == n);
        ck_assert_int_eq(shmview_equal(&a, &b, index), first == n);
        ck_assert_msg(memcmp(index, want, sizeof want) == 0, "round %d, %s, %s", round, a.format,
                      b.format);
    }
    foreign_end();
}
END_TEST

START_TEST(equal_bytes)
{
    ptrdiff_t index[2];
    foreign_begin();
    struct shmview_view s = foreign_row("3s", 0, 6), t = foreign_row("3s", 1000, 6);
    struct shmview_view u = foreign_row("4s", 0, 6), i = foreign_row("i", 0, 6);
    struct shmview_view shorter = foreign_row("3s", 0, 5), none = foreign_row("i", 0, 0);
    memcpy(foreign_memory, "abcdefghijklmnopqr", 18);
    memcpy(foreign_memory + 1000, "abcdefghijklmnopqr", 18);
    ck_assert_int_eq(shmview_equal(&s, &t, index), 1);
    foreign_memory[1010] = 'X';
    ck_assert_int_eq(shmview_equal(&s, &t, index), 0);
    ck_assert_int_eq(index[0], 3);
    ck_assert_int_eq(shmview_equal(&s, &shorter, index), 0);
    ck_assert_int_eq(shmview_equal(&i, &none, index), 0);
    ck_assert_int_eq(shmview_equal(&none, &none, index), 1);
    ck_assert_int_eq(index[0], 3);
    assert_fails(shmview_equal(&s, &u, NULL), SHMVIEW_ERR_CONVERSION,
                 "format \"3s\" cannot be compared with \"4s\"");
    assert_fails(shmview_equal(&s, &i, NULL), SHMVIEW_ERR_CONVERSION,
                 "format \"3s\" cannot be compared with \"i\"");
    ck_assert_int_eq(shmview_equal(&i, &s, NULL), -SHMVIEW_ERR_CONVERSION);
    foreign_end();
}
END_TEST

START_TEST(equal_with_suboffsets)
{
    ptrdiff_t index[2] = {9, 9};
    foreign_begin();
    struct shmview_view rows = indirect("d");
    struct shmview_view plain = foreign_view(
        &(struct shmview_view_spec){.format = "i", .offset = 4096, .ndim = 2, .shape = INTS(2, 3)});
    for (int i = 0; i < 6; i++) {
        ((int *)(void *)plain.data)[i] = i;
        ck_assert_int_eq(shmview_set_int64(&rows, AT(i / 3, i % 3), i), 0);
    }
    ck_assert_int_eq(shmview_equal(&rows, &plain, index), 1);
    ck_assert_int_eq(shmview_equal(&rows, &rows, index), 1);
    ck_assert_int_eq(shmview_set_int64(&rows, AT(1, 1), 9), 0);
    ck_assert_int_eq(shmview_equal(&plain, &rows, index), 0);
    ck_assert(index[0] == 1 && index[1] == 1);
    ((uint64_t *)(void *)foreign_memory)[1] = FOREIGN_BYTES;
    ck_assert_int_eq(shmview_equal(&plain, &rows, index), -SHMVIEW_ERR_BOUNDS);
    foreign_end();
}
END_TEST

/* --- Summing ------------------------------------------------------------- */

static void check_summary(const struct shmview_view *v)
{
    struct shmview_summary s;
    uint64_t n = v->nbytes / v->itemsize, n_nan = 0;
    huge whole = 0, low = 0, high = 0;
    long double min = 0, max = 0, sum = 0, magnitude = 0;
    bool is_integer = false, any = false;
    for (uint64_t i = 0; i < n; i++) {
        struct shmview_value x = number_load(v->dtype, shapes_at(v, i));
        is_integer = x.kind < SHMVIEW_VALUE_REAL;
        huge k = x.kind == SHMVIEW_VALUE_INT ? (huge)x.i : (huge)x.u;
        long double y = is_integer ? (long double)k : (long double)(double)x.z[0];
        n_nan += isnan(y) ? 1 : 0;
        if (isnan(y))
            continue;
        whole += is_integer ? k : 0;
        low = !any || k < low ? k : low;
        high = !any || k > high ? k : high;
        min = !any || y < min ? y : min;
        max = !any || y > max ? y : max;
        sum += y;
        magnitude += fabsl(y);
        any = true;
    }
    ck_assert_int_eq(shmview_summarize(v, &s), 0);
    VALUE_ASSERT(s.n == n && s.n_nan == n_nan, "%s", v->format);
    if (!any) {
        ck_assert(isnan(s.min) && isnan(s.max) && s.sum == 0);
        ck_assert(s.min_int64 == 0 && s.max_int64 == 0);
        return;
    }
    VALUE_ASSERT(s.min == (double)min && s.max == (double)max, "%s: %g to %g", v->format, s.min,
                 s.max);
    if (is_integer) {
        huge cut = low > INT64_MAX ? INT64_MAX : low, top = high > INT64_MAX ? INT64_MAX : high;
        VALUE_ASSERT(s.sum == (double)whole && s.min_int64 == (int64_t)cut &&
                         s.max_int64 == (int64_t)top,
                     "%s: %.17g", v->format, s.sum);
    } else {
        VALUE_ASSERT(isnan(sum) ? isnan(s.sum)
                     : isinf(sum) || isinf(magnitude)
                         ? s.sum == (double)sum
                         : magnitude > (long double)DBL_MAX ||
                               fabsl((long double)s.sum - sum) <= 70 * 0x1p-53L * magnitude,
                     "%s: %.17g, not %.17Lg", v->format, s.sum, sum);
        ck_assert(s.min_int64 == 0 && s.max_int64 == 0);
    }
}

START_TEST(summaries)
{
    struct shmview_summary s = {.n = 77};
    foreign_begin();
    for (int round = 0; round < 3000; round++) {
        const struct value_type *t = &value_types[shapes_random(N_VALUE_TYPES)];
        bool swapped = value_type_can_swap(t) && shapes_random(2);
        int64_t shape[8];
        uint32_t ndim = shapes_shape(shape);
        struct shmview_view v;
        if (round % 50 == 0)
            shapes_scribble();
        if (!shapes_view(value_type_format(t, swapped), ndim, shape, 0, FOREIGN_BYTES, true, &v))
            continue;
        if (t->kind == 'c') {
            ck_assert_int_eq(shmview_summarize(&v, &s), -SHMVIEW_ERR_CONVERSION);
            continue;
        }
        /* any bytes, or numbers of one size */
        for (uint64_t i = 0; round % 2 && i < v.nbytes / v.itemsize; i++) {
            struct shmview_value x = number_of_real((long double)shapes_random(1000) / 8);
            struct shmview_value k = number_of_int64((int64_t)shapes_random(128));
            if (!number_store(v.dtype, &x, shapes_at(&v, i)))
                number_store(v.dtype, &k, shapes_at(&v, i));
        }
        check_summary(&v);
    }
    struct shmview_view text = foreign_row("5s", 0, 2);
    assert_fails(shmview_summarize(&text, &s), SHMVIEW_ERR_CONVERSION,
                 "elements of format \"5s\" are no real numbers");
    ck_assert_uint_eq(s.n, 77);
    foreign_end();
}
END_TEST

/* Sums that need more digits than a double has. */
START_TEST(exact_sums_of_integers)
{
    struct shmview_summary s;
    foreign_begin();
    struct shmview_view u = foreign_row("Q", 0, 1000), i = foreign_row("q", 8192, 1001);
    memset(foreign_memory, 0xff, 8000);
    ck_assert_int_eq(shmview_summarize(&u, &s), 0);
    ck_assert(s.sum == 18446744073709551615000.0 && s.min == 0x1p64 && s.min_int64 == INT64_MAX);
    for (int k = 0; k < 1000; k++)
        ((int64_t *)(void *)i.data)[k] = k % 2 ? INT64_MIN : INT64_MAX;
    ((int64_t *)(void *)i.data)[1000] = 3;
    ck_assert_int_eq(shmview_summarize(&i, &s), 0);
    ck_assert(s.sum == -497 && s.min_int64 == INT64_MIN && s.max_int64 == INT64_MAX);
    foreign_end();
}
END_TEST

/* The low digits that a large number hides come back when it is subtracted. */
START_TEST(sums_of_floats_keep_the_rest)
{
    struct shmview_summary s;
    foreign_begin();
    struct shmview_view v = foreign_row("d", 0, 8000);
    for (int i = 0; i < 8000; i++)
        SHMVIEW_DATA(double, &v)[i] = i == 0 ? 1e20 : i == 7999 ? -1e20 : i % 1000 == 700;
    ck_assert_int_eq(shmview_summarize(&v, &s), 0);
    ck_assert_msg(s.sum == 7 || s.sum == 8, "%g", s.sum); /* one is next to the large one */
    foreign_end();
}
END_TEST

START_TEST(summary_with_suboffsets)
{
    struct shmview_summary s = {.n = 77};
    foreign_begin();
    struct shmview_view rows = indirect("d");
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(shmview_set_int64(&rows, AT(i / 3, i % 3), i), 0);
    ck_assert_int_eq(shmview_summarize(&rows, &s), 0);
    ck_assert(s.n == 6 && s.min == 0 && s.max == 5 && s.sum == 15 && s.n_nan == 0);
    ((uint64_t *)(void *)foreign_memory)[1] = FOREIGN_BYTES;
    ck_assert_int_eq(shmview_summarize(&rows, &s), -SHMVIEW_ERR_BOUNDS);
    ck_assert_uint_eq(s.n, 6);
    foreign_end();
}
END_TEST

UNIT_MAIN("bulk", UNIT_TEST(fill_any_shape), UNIT_TEST(fill_with_numbers), UNIT_TEST(fill_refused),
          UNIT_TEST(equal_edges), UNIT_TEST(equal_any_shape), UNIT_TEST(equal_bytes),
          UNIT_TEST(equal_with_suboffsets), UNIT_TEST(summaries), UNIT_TEST(exact_sums_of_integers),
          UNIT_TEST(sums_of_floats_keep_the_rest), UNIT_TEST(summary_with_suboffsets))
