/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the public calls on one value. check_number.c tests the conversion of numbers. */
#include <shmview/value.h>

#include "client/views/handle.h"
#include "unit/values.h"

static struct shmview_value text_of(const char *text, size_t n)
{
    return (struct shmview_value){
        .kind = SHMVIEW_VALUE_BYTES, .n_bytes = (uint32_t)n, .bytes = text};
}

/* Loads each number with the kind of its type, from an address that is not aligned. */
START_TEST(numbers)
{
    static const int kinds[] = {
        ['i'] = SHMVIEW_VALUE_INT,  ['u'] = SHMVIEW_VALUE_UINT, ['b'] = SHMVIEW_VALUE_BOOL,
        ['f'] = SHMVIEW_VALUE_REAL, ['s'] = SHMVIEW_VALUE_REAL, ['c'] = SHMVIEW_VALUE_COMPLEX,
    };
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (int swapped = 0; swapped <= value_type_has_order(&value_types[i]); swapped++) {
            const struct value_type *t = &value_types[i];
            const uint32_t dtype = t->dtype | (swapped ? SHMVIEW_SWAPPED : 0);
            const struct shmview_value one = {.kind = SHMVIEW_VALUE_INT, .i = 1};
            struct shmview_value got;
            unsigned char p[64];
            memset(p, 0xa5, sizeof p);
            if (t->dtype == SHMVIEW_CHAR)
                continue;
            ck_assert_int_eq(shmview_dtype_kind(dtype), kinds[(unsigned char)t->kind]);
            ck_assert_int_eq(shmview_value_store(dtype, 0, &one, p + 1), 0);
            ck_assert_uint_eq(p[0], 0xa5);
            ck_assert_uint_eq(p[1 + t->bytes], 0xa5);
            shmview_value_load(dtype, 0, p + 1, &got);
            ck_assert_int_eq((int)got.kind, shmview_dtype_kind(dtype));
            if (got.kind >= SHMVIEW_VALUE_REAL)
                ck_assert(got.z[0] == 1);
            else
                ck_assert_int_eq(got.i, 1);
        }
}
END_TEST

START_TEST(refused)
{
    static const struct {
        uint32_t dtype, itemsize;
        struct shmview_value value;
        const char *text;
    } cases[] = {
        {SHMVIEW_INT8, 1, {.kind = SHMVIEW_VALUE_INT, .i = 300}, "300 is no value of int8"},
        {SHMVIEW_INT64,
         8,
         {.kind = SHMVIEW_VALUE_UINT, .u = (uint64_t)1 << 63},
         "9223372036854775808 is no value of int64"},
        {SHMVIEW_UINT64, 8, {.kind = SHMVIEW_VALUE_INT, .i = -1}, "-1 is no value of uint64"},
        {SHMVIEW_INT32 | SHMVIEW_SWAPPED,
         4,
         {.kind = SHMVIEW_VALUE_REAL, .z = {2.5L}},
         "2.5 is no value of int32"},
        {SHMVIEW_FLOAT8_E4M3FN,
         1,
         {.kind = SHMVIEW_VALUE_REAL, .z = {500}},
         "500 is no value of float8_e4m3fn"},
        {SHMVIEW_FLOAT64,
         8,
         {.kind = SHMVIEW_VALUE_COMPLEX, .z = {1, 2}},
         "(1+2j) is no value of float64"},
        {SHMVIEW_BYTES, 4, {.kind = SHMVIEW_VALUE_INT, .i = 1}, "1 is no value of bytes"},
        {SHMVIEW_STRUCT, 4, {.kind = SHMVIEW_VALUE_BOOL, .i = 1}, "1 is no value of struct"},
        {SHMVIEW_INT8,
         1,
         {.kind = SHMVIEW_VALUE_BYTES, .n_bytes = 1, .bytes = "a"},
         "text is no value of int8"},
        {SHMVIEW_BYTES,
         2,
         {.kind = SHMVIEW_VALUE_BYTES, .n_bytes = 3, .bytes = "abc"},
         "text of 3 bytes is no value of bytes with room for 2"},
        {SHMVIEW_PASCAL,
         3,
         {.kind = SHMVIEW_VALUE_BYTES, .n_bytes = 3, .bytes = "abc"},
         "text of 3 bytes is no value of pascal with room for 2"},
        {SHMVIEW_CHAR,
         1,
         {.kind = SHMVIEW_VALUE_BYTES, .n_bytes = 0, .bytes = ""},
         "text of 0 bytes is no value of char with room for 1"},
        {SHMVIEW_STRUCT,
         4,
         {.kind = SHMVIEW_VALUE_STRUCT, .n_bytes = 3, .bytes = "abc"},
         "text of 3 bytes is no value of struct with room for 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char p[8], before[8];
        memset(p, 0xa5, sizeof p);
        memcpy(before, p, sizeof p);
        int r = shmview_value_store(cases[i].dtype, cases[i].itemsize, &cases[i].value, p);
        ck_assert_int_eq(r, -SHMVIEW_ERR_CONVERSION);
        ck_assert_str_eq(shmview_error_text(), cases[i].text);
        ck_assert_mem_eq(p, before, sizeof p);
    }
}
END_TEST

START_TEST(text)
{
    static const struct {
        uint32_t dtype, itemsize, n;
        const char *text, *stored;
        uint32_t n_loaded;
    } cases[] = {
        {SHMVIEW_BYTES, 4, 2, "ab", "ab\0\0", 4},  {SHMVIEW_BYTES, 4, 4, "abcd", "abcd", 4},
        {SHMVIEW_BYTES, 4, 0, "", "\0\0\0\0", 4},  {SHMVIEW_PASCAL, 4, 2, "ab", "\2ab\0", 2},
        {SHMVIEW_PASCAL, 4, 3, "abc", "\3abc", 3}, {SHMVIEW_PASCAL, 1, 0, "", "\0", 0},
        {SHMVIEW_CHAR, 1, 1, "x", "x", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char p[8] = "zzzzzzz";
        struct shmview_value value = text_of(cases[i].text, cases[i].n);
        const uint32_t skip = cases[i].dtype == SHMVIEW_PASCAL;
        ck_assert_int_eq(shmview_value_store(cases[i].dtype, cases[i].itemsize, &value, p), 0);
        ck_assert_mem_eq(p, cases[i].stored, cases[i].itemsize);
        ck_assert_int_eq(p[cases[i].itemsize], 'z');
        shmview_value_load(cases[i].dtype, cases[i].itemsize, p, &value);
        ck_assert_uint_eq(value.kind, SHMVIEW_VALUE_BYTES);
        ck_assert_uint_eq(value.n_bytes, cases[i].n_loaded);
        ck_assert_ptr_eq(value.bytes, p + skip);
    }
}
END_TEST

/* A length that a peer has written is cut to the size of the element. */
START_TEST(long_pascal)
{
    static char p[300];
    struct shmview_value value = text_of(p, 256);
    memset(p, 0xff, sizeof p);
    shmview_value_load(SHMVIEW_PASCAL, 5, p, &value);
    ck_assert_uint_eq(value.n_bytes, 4);
    shmview_value_load(SHMVIEW_PASCAL, 300, p, &value);
    ck_assert_uint_eq(value.n_bytes, 255);
    value = text_of("", 256);
    ck_assert_int_eq(shmview_value_store(SHMVIEW_PASCAL, 300, &value, p), -SHMVIEW_ERR_CONVERSION);
    ck_assert_str_eq(shmview_error_text(),
                     "text of 256 bytes is no value of pascal with room for 255");
}
END_TEST

/* A loaded value may be stored over itself. */
START_TEST(overlapping)
{
    char p[] = "abcdef";
    struct shmview_value value;
    shmview_value_load(SHMVIEW_BYTES, 4, p, &value);
    ck_assert_int_eq(shmview_value_store(SHMVIEW_BYTES, 5, &value, p + 1), 0);
    ck_assert_mem_eq(p, "aabcd\0", 6);
}
END_TEST

START_TEST(structs)
{
    char from[] = "abcd", to[] = "wxyz";
    struct shmview_value value;
    ck_assert_int_eq(shmview_dtype_kind(SHMVIEW_STRUCT), SHMVIEW_VALUE_STRUCT);
    shmview_value_load(SHMVIEW_STRUCT, 4, from, &value);
    ck_assert_uint_eq(value.kind, SHMVIEW_VALUE_STRUCT);
    ck_assert_uint_eq(value.n_bytes, 4);
    ck_assert_int_eq(shmview_value_store(SHMVIEW_STRUCT, 4, &value, to), 0);
    ck_assert_str_eq(to, "abcd");
}
END_TEST

START_TEST(names)
{
    ck_assert_str_eq(shmview_dtype_name(SHMVIEW_INT16 | SHMVIEW_SWAPPED), "int16");
    ck_assert_str_eq(shmview_dtype_name(SHMVIEW_FLOAT8_E8M0FNU), "float8_e8m0fnu");
    ck_assert_str_eq(shmview_dtype_name(SHMVIEW_STRUCT), "struct");
    ck_assert_ptr_null(shmview_dtype_name(SHMVIEW_FLOAT8_E8M0FNU + 1));
    ck_assert_int_eq(shmview_dtype_kind(SHMVIEW_FLOAT8_E8M0FNU + 1), SHMVIEW_VALUE_STRUCT);
}
END_TEST

UNIT_MAIN("value", UNIT_TEST(numbers), UNIT_TEST(refused), UNIT_TEST(text), UNIT_TEST(long_pascal),
          UNIT_TEST(overlapping), UNIT_TEST(structs), UNIT_TEST(names))
