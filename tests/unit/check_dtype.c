/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "common/dtype.h"

#define OTHER_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ">" : "<")
#define THIS_ORDER  (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "<" : ">")

static const struct {
    enum shmview_dtype code;
    uint32_t itemsize;
    const char *letter, *name, *typestr;
} types[] = {
    {SHMVIEW_INT8, sizeof(int8_t), "b", "int8", "i1"},
    {SHMVIEW_UINT8, sizeof(uint8_t), "B", "uint8", "u1"},
    {SHMVIEW_INT16, sizeof(int16_t), "h", "int16", "i2"},
    {SHMVIEW_UINT16, sizeof(uint16_t), "H", "uint16", "u2"},
    {SHMVIEW_INT32, sizeof(int32_t), "i", "int32", "i4"},
    {SHMVIEW_UINT32, sizeof(uint32_t), "I", "uint32", "u4"},
    {SHMVIEW_INT64, sizeof(int64_t), "q", "int64", "i8"},
    {SHMVIEW_UINT64, sizeof(uint64_t), "Q", "uint64", "u8"},
    {SHMVIEW_FLOAT32, sizeof(float), "f", "float32", "f4"},
    {SHMVIEW_FLOAT64, sizeof(double), "d", "float64", "f8"},
};
#define N_TYPES (sizeof types / sizeof types[0])

static const struct dtype *parse(const char *prefix, const char *text)
{
    char format[64];
    size_t at = 99;
    const char *why = NULL;
    snprintf(format, sizeof format, "%s%s", prefix, text);
    const struct dtype *t = dtype_parse(format, &at, &why);
    if (!t) {
        ck_assert_ptr_nonnull(why);
        ck_assert_uint_le(at, strlen(format));
    }
    return t;
}

static void assert_refused(const char *format, size_t index, const char *why_part)
{
    size_t at = 99;
    const char *why = NULL;
    ck_assert_msg(!dtype_parse(format, &at, &why), "\"%s\" is accepted", format);
    ck_assert_msg(at == index, "\"%s\": at %zu, not %zu", format, at, index);
    unit_assert_holds(why, why_part);
}

START_TEST(facts_of_every_type)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        const struct dtype *t = parse("", types[i].letter);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq(t->code, types[i].code);
        ck_assert_uint_eq(t->itemsize, types[i].itemsize);
        ck_assert_str_eq(t->format, types[i].letter);
        ck_assert_str_eq(t->name, types[i].name);
        ck_assert_str_eq(t->typestr, types[i].typestr);
        ck_assert_uint_lt(strlen(t->format), SHMVIEW_FORMAT_BYTES);
    }
}
END_TEST

/* The values are ABI. */
START_TEST(codes_are_frozen)
{
    for (size_t i = 0; i < N_TYPES; i++)
        ck_assert_int_eq(types[i].code, (int)i + 1);
}
END_TEST

START_TEST(letters_and_aliases_with_every_prefix)
{
    const char *prefixes[] = {"", "@", "=", THIS_ORDER};
    for (size_t i = 0; i < N_TYPES; i++)
        for (size_t k = 0; k < 4; k++) {
            const struct dtype *t = parse("", types[i].letter);
            ck_assert_ptr_eq(parse(prefixes[k], types[i].letter), t);
            ck_assert_ptr_eq(parse(prefixes[k], types[i].typestr), t);
            ck_assert_ptr_eq(parse("", types[i].name), t);
            /* a name says nothing of byte order, so it takes no prefix */
            if (k)
                ck_assert_ptr_null(parse(prefixes[k], types[i].name));
        }
}
END_TEST

/* Python: struct.calcsize("@l") is that of C, struct.calcsize("=l") is 4. */
START_TEST(long_is_native_or_standard)
{
    const char *wide_i = sizeof(long) == 8 ? "q" : "i", *wide_u = sizeof(long) == 8 ? "Q" : "I";
    ck_assert_str_eq(parse("", "l")->format, wide_i);
    ck_assert_str_eq(parse("@", "l")->format, wide_i);
    ck_assert_str_eq(parse("", "L")->format, wide_u);
    ck_assert_str_eq(parse("@", "L")->format, wide_u);
    ck_assert_str_eq(parse("=", "l")->format, "i");
    ck_assert_str_eq(parse(THIS_ORDER, "l")->format, "i");
    ck_assert_str_eq(parse("=", "L")->format, "I");
    ck_assert_str_eq(parse(THIS_ORDER, "L")->format, "I");
    ck_assert_uint_eq(parse("=", "l")->itemsize, 4);
    ck_assert_uint_eq(parse("@", "l")->itemsize, sizeof(long));
}
END_TEST

START_TEST(other_byte_order)
{
    char format[16];
    for (size_t i = 0; i < N_TYPES; i++) {
        snprintf(format, sizeof format, "%s%s", OTHER_ORDER, types[i].letter);
        assert_refused(format, 0, "byte order");
        snprintf(format, sizeof format, "%s%s", OTHER_ORDER, types[i].typestr);
        assert_refused(format, 0, "byte order");
    }
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        assert_refused("!i", 0, "byte order"); /* network order */
    else
        ck_assert_ptr_nonnull(parse("!", "i"));
    assert_refused(OTHER_ORDER, 0, "byte order");
}
END_TEST

START_TEST(missing_code)
{
    assert_refused("", 0, "missing");
    assert_refused("@", 1, "missing");
    assert_refused("=", 1, "missing");
    assert_refused(THIS_ORDER, 1, "missing");
}
END_TEST

START_TEST(what_is_no_element)
{
    const char *bad[] = {
        "x",        "c",       "?",        "e",        "g",           "s",    "p",     "P",
        "n",        "N",       "O",        "Z",        "i4x",         "i3",   "i16",   "u3",
        "f2",       "f16",     "ii",       "2i",       "1i",          "i ",   " i",    "i\n",
        "T{i}",     "&i",      "(2,)i",    "int",      "uint",        "INT8", "Int16", "int128",
        "float",    "float16", "bfloat16", "float32 ", "float8_e4m3", "I4",   "F4",    "u",
        "i:a:",     "\xff",    "\xc3\xa9", "0",        "4",           "-i",   "*",     "%s",
        "int8int8", "b1",      "int64_t"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_refused(bad[i], 0, "no such element type");
}
END_TEST

START_TEST(index_of_the_fault)
{
    assert_refused("@x", 1, "no such");
    assert_refused("=i4x", 1, "no such");
    assert_refused("=int32", 1, "no such");
    assert_refused("@@i", 1, "no such");
    assert_refused("@<i", 1, "no such");
    assert_refused("i@", 0, "no such");
    assert_refused("=n", 1, "no such"); /* standard mode has no ssize_t */
}
END_TEST

/* Each byte that is no letter above is refused, alone and behind a prefix. */
START_TEST(every_single_byte)
{
    for (int c = 1; c < 256; c++) {
        const char format[] = {(char)c, 0};
        bool known = c == 'l' || c == 'L';
        for (size_t i = 0; i < N_TYPES; i++)
            known = known || types[i].letter[0] == c;
        ck_assert_int_eq(parse("", format) != NULL, known);
        ck_assert_int_eq(parse("@", format) != NULL, known);
        ck_assert_int_eq(parse("=", format) != NULL, known);
    }
}
END_TEST

START_TEST(very_long_text)
{
    char text[5000];
    memset(text, 'i', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_refused(text, 0, "no such");
    text[0] = '@';
    assert_refused(text, 1, "no such");
}
END_TEST

UNIT_MAIN("dtype", UNIT_TEST(facts_of_every_type), UNIT_TEST(codes_are_frozen),
          UNIT_TEST(letters_and_aliases_with_every_prefix), UNIT_TEST(long_is_native_or_standard),
          UNIT_TEST(other_byte_order), UNIT_TEST(missing_code), UNIT_TEST(what_is_no_element),
          UNIT_TEST(index_of_the_fault), UNIT_TEST(every_single_byte), UNIT_TEST(very_long_text))
