/* SPDX-License-Identifier: Apache-2.0 */
/* Checks element.c of the library: reads and writes one element of each type. */
#include "client/whole/number.h"

#include <inttypes.h>

#include "unit/foreign.h"
#include "unit/values.h"

#pragma push_macro("shmview_get_double")
#undef shmview_get_double
static int get_double_by_symbol(const struct shmview_view *view, const ptrdiff_t *index,
                                double *ret)
{
    return shmview_get_double(view, index, ret);
}
#pragma pop_macro("shmview_get_double")

/* Returns element 1 of three, so that the test can check its neighbours. */
static struct shmview_view three(const struct value_type *t, bool swapped)
{
    memset(foreign_memory, 0xa5, 256);
    return foreign_row(value_type_format(t, swapped), 64, 3);
}

static void assert_only_middle(const struct value_type *t, bool may_change)
{
    for (size_t i = 0; i < 256; i++)
        if (!may_change || i < 64 + t->bytes || i >= 64 + 2 * t->bytes)
            VALUE_ASSERT(foreign_memory[i] == 0xa5, "%s changed byte %zu", t->format, i);
}

static void assert_text(const char *type)
{
    char tail[80];
    snprintf(tail, sizeof tail, " is no value of %s", type);
    VALUE_ASSERT(strncmp(shmview_error_text(), "element [1]: ", 13) == 0 &&
                     strstr(shmview_error_text(), tail),
                 "%s", shmview_error_text());
}

static void assert_set(const struct value_type *t, bool swapped, struct value v, int r)
{
    struct value want;
    bool fits = value_convert(t, v, &want);
    VALUE_ASSERT(r == (fits ? 0 : -SHMVIEW_ERR_CONVERSION), "%s: %d, %s", t->format, r,
                 shmview_error_text());
    assert_only_middle(t, fits);
    if (!fits)
        assert_text(shmview_dtype_name(t->dtype));
    else
        VALUE_ASSERT(value_same(value_read(t, swapped, foreign_memory + 64 + t->bytes), want), "%s",
                     t->format);
}

/* The value that is read must be that of the bytes, or be refused. */
static void assert_get(const struct value_type *t, bool swapped, const struct shmview_view *view)
{
    const int refused = -SHMVIEW_ERR_CONVERSION;
    struct value v = value_read(t, swapped, foreign_memory + 64 + t->bytes);
    huge whole = 0;
    int64_t i = 77;
    double x = 77, y = 77, z[2] = {77, 78};
    bool is_int = value_is_whole(v, &whole) && whole >= INT64_MIN && whole <= INT64_MAX;
    long double re = v.is_integer ? (long double)v.i : v.re, im = v.is_integer ? 0 : v.im;
    bool has_double = isinf(re) || !isinf((double)re), is_double = has_double && im == 0;

    int r = shmview_get_int64(view, AT(1), &i);
    VALUE_ASSERT(r == (is_int ? 0 : refused) && i == (is_int ? (int64_t)whole : 77),
                 "%s: %d, %" PRId64, t->format, r, i);
    if (!is_int)
        assert_text("int64");
    r = shmview_get_double(view, AT(1), &x);
    VALUE_ASSERT(r == (is_double ? 0 : refused) &&
                     value_same_real((long double)x, is_double ? (long double)(double)re : 77),
                 "%s: %d, %g", t->format, r, x);
    ck_assert_int_eq(get_double_by_symbol(view, AT(1), &y), r);
    VALUE_ASSERT(value_same_real((long double)y, (long double)x), "%s: %g, %g", t->format, y, x);
    r = shmview_get_complex(view, AT(1), z);
    VALUE_ASSERT(
        r == (has_double ? 0 : refused) &&
            value_same_real((long double)z[0], has_double ? (long double)(double)re : 77) &&
            value_same_real((long double)z[1], has_double ? im : 78),
        "%s: %d, (%g, %g)", t->format, r, z[0], z[1]);
}

#define EACH_TYPE(t, swapped)                                                                      \
    for (const struct value_type *t = value_types; t < value_types + N_VALUE_TYPES; t++)           \
        for (int swapped = 0; swapped <= value_type_can_swap(t); swapped++)

START_TEST(int64_of_all_types)
{
    huge integers[VALUE_EDGES];
    size_t n = value_integers(integers);
    foreign_begin();
    EACH_TYPE(t, swapped)
    for (size_t k = 0; k < n; k++) {
        if (integers[k] > INT64_MAX)
            continue;
        struct shmview_view v = three(t, swapped);
        ck_assert_uint_eq(v.dtype, t->dtype | (swapped ? SHMVIEW_SWAPPED : 0));
        int r = shmview_set_int64(&v, AT(1), (int64_t)integers[k]);
        assert_set(t, swapped, value_int(integers[k]), r);
        assert_get(t, swapped, &v);
    }
    foreign_end();
}
END_TEST

START_TEST(double_and_complex_of_all_types)
{
    double doubles[VALUE_EDGES];
    size_t n = value_doubles(doubles);
    foreign_begin();
    EACH_TYPE(t, swapped)
    for (size_t k = 0; k < n; k++) {
        long double x = (long double)doubles[k];
        struct shmview_view v = three(t, swapped);
        assert_set(t, swapped, value_real(x), shmview_set_double(&v, AT(1), doubles[k]));
        assert_get(t, swapped, &v);
        v = three(t, swapped);
        int r = shmview_set_complex(&v, AT(1), (double[]){doubles[k], 0});
        assert_set(t, swapped, value_real(x), r);
        v = three(t, swapped);
        r = shmview_set_complex(&v, AT(1), (double[]){doubles[k], 2});
        assert_set(t, swapped, value_complex(x, 2), r);
        assert_get(t, swapped, &v);
    }
    foreign_end();
}
END_TEST

/* Any bytes at all. */
START_TEST(random_bytes)
{
    uint64_t seed = 99;
    foreign_begin();
    EACH_TYPE(t, swapped)
    {
        struct shmview_view v = three(t, swapped);
        for (int k = 0; k < 1000; k++) {
            for (size_t i = 0; i < 2; i++) {
                uint64_t bits = unit_random(&seed);
                memcpy(foreign_memory + 64 + t->bytes + 8 * i, &bits, 8);
            }
            assert_get(t, swapped, &v);
        }
    }
    foreign_end();
}
END_TEST

START_TEST(long_doubles)
{
    static const long double some[] = {0x1p1024L,
                                       -0x1.fffffffffffff8p1023L,
                                       0x1.8p-1074L,
                                       9223372036854775807.0L,
                                       9223372036854775808.0L,
                                       0.1L};
    foreign_begin();
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        const struct value_type *t = &value_types[10];
        ck_assert_uint_eq(t->dtype, SHMVIEW_LONGDOUBLE);
        struct shmview_view v = three(t, false);
        memcpy(foreign_memory + 64 + t->bytes, &some[i], sizeof some[i]);
        assert_get(t, false, &v);
    }
    foreign_end();
}
END_TEST

START_TEST(texts)
{
    double x;
    int64_t i;
    foreign_begin();
    struct shmview_view b =
        foreign_view(&(struct shmview_view_spec){.format = "b", .ndim = 2, .shape = INTS(2, 3)});
    struct shmview_view z = foreign_row("Zd", 64, 1), u = foreign_row("Q", 64, 1);
    assert_fails(shmview_set_int64(&b, AT(1, 2), 300), SHMVIEW_ERR_CONVERSION,
                 "element [1, 2]: 300 is no value of int8");
    assert_fails(shmview_set_double(&b, AT(0, 1), 2.5), SHMVIEW_ERR_CONVERSION,
                 "element [0, 1]: 2.5 is no value of int8");
    ck_assert_int_eq(shmview_set_complex(&z, AT(0), (double[]){1, 2}), 0);
    assert_fails(shmview_get_double(&z, AT(0), &x), SHMVIEW_ERR_CONVERSION,
                 "element [0]: (1+2j) is no value of float64");
    memset(foreign_memory + 64, 0xff, 8);
    assert_fails(shmview_get_int64(&u, AT(0), &i), SHMVIEW_ERR_CONVERSION,
                 "element [0]: 18446744073709551615 is no value of int64");
    foreign_end();
}
END_TEST

/* --- Where elements are -------------------------------------------------- */

START_TEST(all_dimensions)
{
    foreign_begin();
    int64_t shape[8] = {2, 1, 3, 1, 2, 1, 2, 2};
    for (uint32_t ndim = 0; ndim <= 8; ndim++) {
        struct shmview_view v =
            foreign_view(&(struct shmview_view_spec){.format = "h", .ndim = ndim, .shape = shape});
        uint64_t n = v.nbytes / 2;
        for (uint64_t k = 0; k < n; k++) {
            ptrdiff_t index[8];
            int64_t back;
            uint64_t rest = k;
            for (uint32_t d = ndim; d-- > 0; rest /= (uint64_t)shape[d])
                index[d] = (ptrdiff_t)(rest % (uint64_t)shape[d]);
            ck_assert_int_eq(shmview_set_int64(&v, index, (int64_t)k - 5), 0);
            ck_assert_int_eq(((int16_t *)(void *)foreign_memory)[k], (int64_t)k - 5);
            ck_assert_int_eq(shmview_get_int64(&v, index, &back), 0);
            ck_assert_int_eq(back, (int64_t)k - 5);
        }
    }
    foreign_end();
}
END_TEST

START_TEST(bounds)
{
    int64_t i = 77;
    double x = 77, z[2];
    char bytes[4];
    foreign_begin();
    struct shmview_view v = foreign_view(&(struct shmview_view_spec){
        .format = "f", .offset = 400, .ndim = 2, .shape = INTS(2, 3), .strides = INTS(-40, 0)});
    const ptrdiff_t outside[][2] = {{-1, 0}, {2, 0},           {0, -1},
                                    {0, 3},  {PTRDIFF_MIN, 0}, {0, PTRDIFF_MAX}};
    for (size_t k = 0; k < 6; k++) {
        const ptrdiff_t *at = outside[k];
        ck_assert_int_eq(shmview_get_int64(&v, at, &i), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_get_double(&v, at, &x), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_get_complex(&v, at, z), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_get_bytes(&v, at, bytes), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_set_int64(&v, at, 1), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_set_double(&v, at, 1), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_set_complex(&v, at, (double[]){1, 0}), -SHMVIEW_ERR_BOUNDS);
        ck_assert_int_eq(shmview_set_bytes(&v, at, "abcd"), -SHMVIEW_ERR_BOUNDS);
    }
    ck_assert(i == 77 && x == 77);
    for (size_t k = 0; k < 1000; k++)
        ck_assert_uint_eq(foreign_memory[k], 0);
    ck_assert_int_eq(shmview_set_double(&v, AT(1, 2), 1.5), 0);
    ck_assert_int_eq(shmview_get_double(&v, AT(1, 0), &x), 0);
    ck_assert(x == 1.5 && ((float *)(void *)foreign_memory)[90] == 1.5f);
    foreign_end();
}
END_TEST

START_TEST(read_only)
{
    int64_t i;
    foreign_begin();
    struct shmview_view v = foreign_row("i", 0, 2);
    v.flags |= SHMVIEW_VIEW_READ_ONLY;
    assert_fails(shmview_set_int64(&v, AT(0), 1), SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    assert_fails(shmview_set_double(&v, AT(0), 1), SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    assert_fails(shmview_set_complex(&v, AT(9), (double[]){1, 0}), SHMVIEW_ERR_READ_ONLY,
                 "the view is read-only");
    assert_fails(shmview_set_bytes(&v, AT(0), "abcd"), SHMVIEW_ERR_READ_ONLY,
                 "the view is read-only");
    ck_assert_int_eq(shmview_get_int64(&v, AT(0), &i), 0);
    ck_assert_int_eq(i, 0);
    foreign_end();
}
END_TEST

START_TEST(no_numbers)
{
    static const char *const formats[] = {"5s", "4p", "T{h:a:h:b:}", "3h"};
    foreign_begin();
    for (size_t k = 0; k < 4; k++) {
        int64_t i = 77;
        char text[100], bytes[8] = "";
        struct shmview_view v = foreign_row(formats[k], 0, 2);
        snprintf(text, sizeof text, "elements of format \"%s\" are no numbers", v.format);
        assert_fails(shmview_get_int64(&v, AT(0), &i), SHMVIEW_ERR_CONVERSION, text);
        assert_fails(shmview_set_double(&v, AT(0), 1), SHMVIEW_ERR_CONVERSION, text);
        ck_assert_int_eq(shmview_set_bytes(&v, AT(1), "hello!"), 0);
        ck_assert_int_eq(shmview_get_bytes(&v, AT(1), bytes), 0);
        ck_assert_int_eq(strncmp(bytes, "hello!", v.itemsize), 0);
        ck_assert_mem_eq(foreign_memory + v.itemsize, "hello!", v.itemsize);
        ck_assert_uint_eq(foreign_memory[2 * v.itemsize], 0);
        memset(foreign_memory, 0, 64);
    }
    foreign_end();
}
END_TEST

/* Two rows, the second before the first, at stored offsets. */
static struct shmview_view indirect(void)
{
    ((uint64_t *)(void *)foreign_memory)[0] = 1000;
    ((uint64_t *)(void *)foreign_memory)[1] = 800;
    return foreign_view(&(struct shmview_view_spec){.format = "h",
                                                    .ndim = 2,
                                                    .shape = INTS(2, 3),
                                                    .strides = INTS(8, 2),
                                                    .suboffsets = INTS(24, -1)});
}

START_TEST(suboffsets)
{
    int64_t i;
    double x;
    char bytes[2];
    foreign_begin();
    struct shmview_view v = indirect();
    ck_assert_int_eq(shmview_set_int64(&v, AT(0, 2), 5), 0);
    ck_assert_int_eq(shmview_set_double(&v, AT(1, 0), 6), 0);
    ck_assert_int_eq(((int16_t *)(void *)(foreign_memory + 1024))[2], 5);
    ck_assert_int_eq(((int16_t *)(void *)(foreign_memory + 824))[0], 6);
    ck_assert_int_eq(shmview_get_int64(&v, AT(1, 0), &i), 0);
    ck_assert_int_eq(i, 6);
    ck_assert_int_eq(shmview_get_double(&v, AT(0, 2), &x), 0);
    ck_assert(x == 5);
    ck_assert_int_eq(shmview_set_bytes(&v, AT(1, 1), "ab"), 0);
    ck_assert_int_eq(shmview_get_bytes(&v, AT(1, 1), bytes), 0);
    ck_assert_mem_eq(bytes, "ab", 2);
    ck_assert_mem_eq(foreign_memory + 826, "ab", 2);
    ck_assert_int_eq(shmview_get_int64(&v, AT(2, 0), &i), -SHMVIEW_ERR_BOUNDS);
    /* stored offsets are checked */
    ((uint64_t *)(void *)foreign_memory)[0] = FOREIGN_BYTES;
    ck_assert_int_eq(shmview_get_int64(&v, AT(0, 0), &i), -SHMVIEW_ERR_BOUNDS);
    ck_assert_int_eq(shmview_set_int64(&v, AT(0, 0), 1), -SHMVIEW_ERR_BOUNDS);
    ((uint64_t *)(void *)foreign_memory)[0] = (uint64_t)-24;
    ck_assert_int_eq(shmview_get_bytes(&v, AT(0, 0), bytes), -SHMVIEW_ERR_BOUNDS);
    ((uint64_t *)(void *)foreign_memory)[0] = 1001;
    ck_assert_int_eq(shmview_get_bytes(&v, AT(0, 0), bytes), -SHMVIEW_ERR_MISALIGNED);
    ck_assert_int_eq(shmview_set_bytes(&v, AT(0, 0), bytes), -SHMVIEW_ERR_MISALIGNED);
    foreign_end();
}
END_TEST

UNIT_MAIN("element_values", UNIT_TEST(int64_of_all_types),
          UNIT_TEST(double_and_complex_of_all_types), UNIT_TEST(random_bytes),
          UNIT_TEST(long_doubles), UNIT_TEST(texts), UNIT_TEST(all_dimensions), UNIT_TEST(bounds),
          UNIT_TEST(read_only), UNIT_TEST(no_numbers), UNIT_TEST(suboffsets))
