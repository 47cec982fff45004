/* SPDX-License-Identifier: Apache-2.0 */
/* Checks number.c and small.h: every code of every small float, and edge values of all other
 * types. */
#include "client/whole/number.h"

#include "client/whole/kernels.h"
#include "client/whole/small.h"
#include "unit/values.h"

static const struct value_type *type_of(uint32_t dtype)
{
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        if (value_types[i].dtype == dtype)
            return &value_types[i];
    ck_abort_msg("no type %u", dtype);
}

static struct value value_of(const struct shmview_value *n)
{
    if (n->kind < SHMVIEW_VALUE_REAL)
        return value_int(n->kind == SHMVIEW_VALUE_UINT ? (huge)n->u : (huge)n->i);
    return value_complex(n->z[0], n->z[1]);
}

static struct shmview_value number_of(struct value v)
{
    if (!v.is_integer)
        return number_of_complex(v.re, v.im);
    if (v.i > INT64_MAX)
        return (struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = (uint64_t)v.i};
    return number_of_int64((int64_t)v.i);
}

static uint32_t code_at(const struct value_type *t, const void *p)
{
    uint16_t wide;
    if (t->bytes == 1)
        return *(const uint8_t *)p;
    memcpy(&wide, p, sizeof wide);
    return wide;
}

static void put_code(const struct value_type *t, uint32_t code, void *p)
{
    uint16_t wide = (uint16_t)code;
    if (t->bytes == 1)
        *(uint8_t *)p = (uint8_t)code;
    else
        memcpy(p, &wide, sizeof wide);
}

/* --- Small floats -------------------------------------------------------- */

/* Values that the definitions of the kinds give: one, the lowest and the highest number. */
START_TEST(known_codes)
{
    static const struct {
        uint32_t dtype, one, highest, lowest;
        double highest_is, lowest_is;
    } known[] = {
        {SHMVIEW_FLOAT16, 0x3c00, 0x7bff, 0x0001, 65504, 0x1p-24},
        {SHMVIEW_BFLOAT16, 0x3f80, 0x7f7f, 0x0001, 0x1.fep127, 0x1p-133},
        {SHMVIEW_FLOAT8_E3M4, 0x30, 0x6f, 0x01, 15.5, 0x1p-6},
        {SHMVIEW_FLOAT8_E4M3, 0x38, 0x77, 0x01, 240, 0x1p-9},
        {SHMVIEW_FLOAT8_E4M3B11FNUZ, 0x58, 0x7f, 0x01, 30, 0x1p-13},
        {SHMVIEW_FLOAT8_E4M3FN, 0x38, 0x7e, 0x01, 448, 0x1p-9},
        {SHMVIEW_FLOAT8_E4M3FNUZ, 0x40, 0x7f, 0x01, 240, 0x1p-10},
        {SHMVIEW_FLOAT8_E5M2, 0x3c, 0x7b, 0x01, 57344, 0x1p-16},
        {SHMVIEW_FLOAT8_E5M2FNUZ, 0x40, 0x7f, 0x01, 57344, 0x1p-17},
        {SHMVIEW_FLOAT8_E8M0FNU, 127, 254, 0, 0x1p127, 0x1p-127},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct value_type *t = type_of(known[i].dtype);
        const uint32_t codes[] = {known[i].one, known[i].highest, known[i].lowest};
        const double values[] = {1, known[i].highest_is, known[i].lowest_is};
        for (int k = 0; k < 3; k++) {
            unsigned char p[2];
            put_code(t, codes[k], p);
            struct shmview_value n = number_load(t->dtype, p);
            ck_assert_msg(n.z[0] == (long double)values[k], "%s 0x%x is %Lg, not %g", t->format,
                          codes[k], n.z[0], values[k]);
        }
    }
}
END_TEST

/* Every code has the value of its fields, and that value gives the code. */
START_TEST(all_codes)
{
    for (size_t i = 0; i < N_VALUE_TYPES; i++) {
        const struct value_type *t = &value_types[i];
        for (uint32_t code = 0; t->kind == 's' && code < 1u << 8 * t->bytes; code++) {
            unsigned char p[2], q[2] = {0xaa, 0xaa};
            put_code(t, code, p);
            struct shmview_value n = number_load(t->dtype, p);
            long double want = value_of_code(t, code);
            ck_assert_msg(n.kind == SHMVIEW_VALUE_REAL && n.z[1] == 0 &&
                              value_same(value_of(&n), value_real(want)),
                          "%s 0x%x is %Lg, not %Lg", t->format, code, n.z[0], want);
            ck_assert(number_store(t->dtype, &n, q));
            if (isnan(want))
                ck_assert(isnan(value_of_code(t, code_at(t, q))));
            else
                ck_assert_msg(code_at(t, q) == code, "%s 0x%x comes back as 0x%x", t->format, code,
                              code_at(t, q));
        }
    }
}
END_TEST

static void assert_rounds(const struct value_type *t, long double x)
{
    unsigned char p[2] = {0x5a, 0x5a};
    struct shmview_value n = number_of_real(x);
    long double want;
    bool fits = value_to_float(t, x, false, &want);
    ck_assert_msg(number_store(t->dtype, &n, p) == fits, "%s takes %.21Lg: %d", t->format, x,
                  !fits);
    if (!fits)
        ck_assert(p[0] == 0x5a && p[1] == 0x5a);
    else
        ck_assert_msg(value_same_real(value_of_code(t, code_at(t, p)), want),
                      "%s: %.21Lg becomes %.21Lg, not %.21Lg", t->format, x,
                      value_of_code(t, code_at(t, p)), want);
}

/* Rounds the middle between two neighbours, and values just beside it. */
START_TEST(rounding)
{
    for (size_t i = 0; i < N_VALUE_TYPES; i++) {
        const struct value_type *t = &value_types[i];
        for (uint32_t code = 0; t->kind == 's' && code + 1 < 1u << 8 * t->bytes; code++) {
            long double a = value_of_code(t, code), b = value_of_code(t, code + 1);
            if (!isfinite(a))
                continue;
            if (!isfinite(b)) /* beyond the highest */
                b = a + (a - value_of_code(t, code - 1));
            long double middle = (a + b) / 2;
            assert_rounds(t, a);
            assert_rounds(t, middle);
            assert_rounds(t, nextafterl(middle, a));
            assert_rounds(t, nextafterl(middle, b));
            assert_rounds(t, (long double)nextafter((double)middle, (double)a));
            assert_rounds(t, (long double)nextafter((double)middle, (double)b));
        }
    }
}
END_TEST

START_TEST(far_outside)
{
    static const long double some[] = {0x1p16383L,  0x1p1023L,   0x1p129L,    0x1.8p128L, 0x1p128L,
                                       0x1p-16445L, 0x1p-1074L,  0x1p-1030L,  0x1p-150L,  0x1p-134L,
                                       0x1p-127L,   0x1.8p-127L, 0x1.1p-127L, 0,          1e6L};
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (size_t k = 0; value_types[i].kind == 's' && k < sizeof some / sizeof some[0]; k++) {
            assert_rounds(&value_types[i], some[k]);
            assert_rounds(&value_types[i], -some[k]);
        }
}
END_TEST

/* The row kernels have the same codec, with constants. */
START_TEST(small_kernels)
{
    static uint16_t codes[65536];
    static float floats[65536];
    uint64_t seed = 12345;
    for (size_t i = 0; i < N_VALUE_TYPES; i++) {
        const struct value_type *t = &value_types[i];
        if (t->kind != 's') {
            ck_assert_ptr_null(kernel_to_decode(t->dtype));
            ck_assert_ptr_null(kernel_to_encode(t->dtype, false));
            continue;
        }
        uint32_t n = 1u << 8 * t->bytes;
        for (uint32_t code = 0; code < n; code++)
            put_code(t, code, (unsigned char *)codes + code * t->bytes);
        ck_assert_uint_eq(kernel_to_decode(t->dtype)(floats, codes, n), n);
        for (uint32_t code = 0; code < n; code++) {
            long double want = value_of_code(t, code);
            ck_assert_msg((isnan(floats[code]) && isnan(want)) ||
                              value_same_real((long double)floats[code], want),
                          "%s 0x%x is %g, not %Lg", t->format, code, (double)floats[code], want);
        }
        for (int k = 0; k < 20000; k++) {
            /* mostly of the order of 1, else anything */
            uint64_t bits = unit_random(&seed);
            if (k % 4)
                bits = (bits & 0x803fffffffffffff) | (1023 - 20 + bits % 40) << 52;
            double x;
            memcpy(&x, &bits, sizeof x);
            for (int exact = 0; exact < 2; exact++) {
                long double want;
                unsigned char code[2];
                bool fits = value_to_float(t, (long double)x, exact, &want);
                ck_assert_uint_eq(kernel_to_encode(t->dtype, exact)(code, &x, 1), fits);
                ck_assert(!fits || value_same_real(value_of_code(t, code_at(t, code)), want));
            }
        }
    }
}
END_TEST

/* --- All types ----------------------------------------------------------- */

static void assert_stores(const struct value_type *t, bool swapped, struct value v)
{
    unsigned char p[NUMBER_BYTES], before[NUMBER_BYTES];
    char text[NUMBER_TEXT_BYTES];
    struct value want;
    struct shmview_value n = number_of(v);
    uint32_t dtype = t->dtype | (swapped ? SHMVIEW_SWAPPED : 0);
    memset(p, 0xa5, sizeof p);
    memcpy(before, p, sizeof p);
    bool fits = value_convert(t, v, &want);
    number_text(&n, text);
    VALUE_ASSERT(number_store(dtype, &n, p) == fits, "%s takes %s: %d", t->format, text, !fits);
    if (!fits) {
        VALUE_ASSERT(memcmp(p, before, sizeof p) == 0, "%s: %s left something", t->format, text);
        return;
    }
    VALUE_ASSERT(memcmp(p + t->bytes, before + t->bytes, sizeof p - t->bytes) == 0, "%s",
                 t->format);
    VALUE_ASSERT(value_same(value_read(t, swapped, p), want), "%s%s: %s is another number",
                 swapped ? "swapped " : "", t->format, text);
    struct shmview_value back = number_load(dtype, p);
    VALUE_ASSERT(value_same(value_of(&back), want), "%s: %s", t->format, text);
}

START_TEST(integers_into_all)
{
    huge integers[VALUE_EDGES];
    size_t n = value_integers(integers);
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (size_t k = 0; k < n; k++)
            for (int swapped = 0; swapped <= value_type_has_order(&value_types[i]); swapped++)
                assert_stores(&value_types[i], swapped, value_int(integers[k]));
}
END_TEST

START_TEST(reals_into_all)
{
    double doubles[VALUE_EDGES];
    size_t n = value_doubles(doubles);
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (size_t k = 0; k < n; k++)
            for (int swapped = 0; swapped <= value_type_has_order(&value_types[i]); swapped++) {
                long double x = (long double)doubles[k];
                assert_stores(&value_types[i], swapped, value_real(x));
                assert_stores(&value_types[i], swapped, value_complex(x, 1));
                assert_stores(&value_types[i], swapped, value_complex(1, x));
                assert_stores(&value_types[i], swapped, value_complex(x, -0.0L));
            }
}
END_TEST

/* A long double has more digits than a double. */
START_TEST(long_doubles_into_all)
{
    static const long double some[] = {0x1.8p1024L,
                                       0x1.fffffffffffff7p1023L,
                                       0x1.fffffffffffff8p1023L,
                                       0x1.fffffefffffffffep127L,
                                       0x1.ffffff0000000002p127L,
                                       9223372036854775807.0L,
                                       9223372036854775807.5L,
                                       18446744073709551615.0L,
                                       18446744073709551616.0L,
                                       0x1p-1080L,
                                       0x1.0000000000000002p-24L,
                                       0x1.0000000000000002p-25L};
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (size_t k = 0; k < sizeof some / sizeof some[0]; k++) {
            assert_stores(&value_types[i], false, value_real(some[k]));
            assert_stores(&value_types[i], false, value_real(-some[k]));
        }
}
END_TEST

/* Padding must not receive bytes of the stack. */
START_TEST(padding)
{
    unsigned char p[NUMBER_BYTES];
    struct shmview_value n = number_of_real(0.1L);
    memset(p, 0xa5, sizeof p);
    ck_assert(number_store(SHMVIEW_LONGDOUBLE, &n, p));
    for (size_t i = 10; LDBL_MANT_DIG == 64 && i < sizeof(long double); i++)
        ck_assert_uint_eq(p[i], 0);
}
END_TEST

START_TEST(to_int64)
{
    int64_t i = 7;
    double doubles[VALUE_EDGES];
    size_t n = value_doubles(doubles);
    for (size_t k = 0; k < n; k++) {
        struct shmview_value x = number_of_real((long double)doubles[k]);
        bool fits = floor(doubles[k]) == doubles[k] && doubles[k] >= -0x1p63 && doubles[k] < 0x1p63;
        ck_assert_int_eq(number_to_int64(&x, &i), fits);
        ck_assert(!fits || (double)i == doubles[k]);
    }
    i = 7;
    ck_assert(
        !number_to_int64(&(struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = UINT64_MAX}, &i));
    struct shmview_value z = number_of_complex(5, 1);
    ck_assert(!number_to_int64(&z, &i));
    ck_assert_int_eq(i, 7);
    z = number_of_complex(5, -0.0L);
    ck_assert(number_to_int64(&z, &i));
    ck_assert_int_eq(i, 5);
}
END_TEST

START_TEST(to_double_and_complex)
{
    static const struct {
        struct shmview_value n;
        double re, im;
        bool is_real, is_complex;
    } cases[] = {
        {{.kind = SHMVIEW_VALUE_INT, .i = INT64_MAX}, 0x1p63, 0, true, true},
        {{.kind = SHMVIEW_VALUE_INT, .i = -(((int64_t)1 << 53) + 1)}, -0x1p53, 0, true, true},
        {{.kind = SHMVIEW_VALUE_INT, .i = ((int64_t)1 << 53) + 3},
         0x1.0000000000002p53,
         0,
         true,
         true},
        {{.kind = SHMVIEW_VALUE_UINT, .u = UINT64_MAX}, 0x1p64, 0, true, true},
        {{.kind = SHMVIEW_VALUE_UINT, .u = 0x8000000000000401},
         0x1.0000000000001p63,
         0,
         true,
         true},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {0x1.00000000000008p0L}}, 1, 0, true, true},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {0x1p1024L}}, 0, 0, false, false},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {(long double)-INFINITY}},
         (double)-INFINITY,
         0,
         true,
         true},
        {{.kind = SHMVIEW_VALUE_COMPLEX, .z = {1.5L, -2}}, 1.5, -2, false, true},
        {{.kind = SHMVIEW_VALUE_COMPLEX, .z = {1.5L, 0}}, 1.5, 0, true, true},
        {{.kind = SHMVIEW_VALUE_COMPLEX, .z = {1, (long double)INFINITY}},
         1,
         (double)INFINITY,
         false,
         true},
        {{.kind = SHMVIEW_VALUE_COMPLEX, .z = {1, -0x1p1024L}}, 0, 0, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double x = 77, z[2] = {77, 78};
        ck_assert_int_eq(number_to_double(&cases[i].n, &x), cases[i].is_real);
        ck_assert(x == (cases[i].is_real ? cases[i].re : 77));
        ck_assert_int_eq(number_to_complex(&cases[i].n, z), cases[i].is_complex);
        ck_assert(z[0] == (cases[i].is_complex ? cases[i].re : 77));
        ck_assert(z[1] == (cases[i].is_complex ? cases[i].im : 78));
    }
}
END_TEST

/* Compares each value with each other: the exact values decide. */
START_TEST(equality)
{
    const struct value some[] = {
        value_int(0),
        value_int(1),
        value_int(-1),
        value_int(INT64_MAX),
        value_int(INT64_MIN),
        value_int((huge)INT64_MAX + 1),
        value_int((huge)UINT64_MAX),
        value_int(((huge)1 << 53) + 1),
        value_real(0),
        value_real(-0.0L),
        value_real(1),
        value_real(1.5L),
        value_real(0x1p53L),
        value_real(0x1p63L),
        value_real(-0x1p63L),
        value_real(0x1p64L),
        value_real((long double)INFINITY),
        value_real((long double)NAN),
        value_complex(1, 1),
        value_complex(0, (long double)NAN),
        value_complex(1, 0),
    };
    const size_t n = sizeof some / sizeof some[0];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            struct shmview_value a = number_of(some[i]), b = number_of(some[k]);
            struct value x = some[i], y = some[k];
            bool want = x.is_integer && y.is_integer
                            ? x.i == y.i
                            : (x.is_integer ? (long double)x.i : x.re) ==
                                      (y.is_integer ? (long double)y.i : y.re) &&
                                  (x.is_integer ? 0 : x.im) == (y.is_integer ? 0 : y.im);
            ck_assert_msg(number_equal(&a, &b) == want, "%zu and %zu", i, k);
        }
}
END_TEST

START_TEST(texts)
{
    static const struct {
        struct shmview_value n;
        const char *text;
    } cases[] = {
        {{.kind = SHMVIEW_VALUE_INT, .i = INT64_MIN}, "-9223372036854775808"},
        {{.kind = SHMVIEW_VALUE_UINT, .u = UINT64_MAX}, "18446744073709551615"},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {2.5L}}, "2.5"},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {(long double)0.1}}, "0.1"},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {(long double)0.30000000000000004}},
         "0.30000000000000004"},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {(long double)NAN}}, "nan"},
        {{.kind = SHMVIEW_VALUE_REAL, .z = {(long double)-INFINITY}}, "-inf"},
        {{.kind = SHMVIEW_VALUE_COMPLEX, .z = {1, -2.5L}}, "(1-2.5j)"},
        {{.kind = SHMVIEW_VALUE_COMPLEX, .z = {-1e300L, (long double)NAN}}, "(-1e+300+nanj)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[NUMBER_TEXT_BYTES];
        number_text(&cases[i].n, text);
        ck_assert_str_eq(text, cases[i].text);
    }
    ck_assert_str_eq(shmview_dtype_name(SHMVIEW_FLOAT8_E4M3FN), "float8_e4m3fn");
    ck_assert_str_eq(shmview_dtype_name(SHMVIEW_INT16 | SHMVIEW_SWAPPED), "int16");
    ck_assert(!number_is_type(SHMVIEW_STRUCT) && !number_is_type(SHMVIEW_BYTES));
    ck_assert(!number_is_type(SHMVIEW_PASCAL) && !number_is_type(29));
    ck_assert(number_is_type(SHMVIEW_CHAR) && number_is_type(SHMVIEW_INT32 | SHMVIEW_SWAPPED));
}
END_TEST

UNIT_MAIN("number", UNIT_TEST(known_codes), UNIT_TEST(all_codes), UNIT_TEST(rounding),
          UNIT_TEST(far_outside), UNIT_TEST(small_kernels), UNIT_TEST(integers_into_all),
          UNIT_TEST(reals_into_all), UNIT_TEST(long_doubles_into_all), UNIT_TEST(padding),
          UNIT_TEST(to_int64), UNIT_TEST(to_double_and_complex), UNIT_TEST(equality),
          UNIT_TEST(texts))
