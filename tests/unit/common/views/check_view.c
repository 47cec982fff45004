/* SPDX-License-Identifier: Apache-2.0 */
/* Checks view.c: which descriptions are refused, and the byte that the error names. */
#include "unit/unit.h"

#include "common/views/view.h"
#include "common/views/view_ops.h"

static struct formats pool; /* a test with formats that are not plain empties it */

static struct view_desc desc_of(const char *format, uint64_t offset, uint32_t ndim,
                                const int64_t *shape, const int64_t *strides)
{
    struct view_desc d = {.offset = offset, .ndim = ndim};
    struct view_fault fault;
    ck_assert_int_eq(view_parse_format(&d, &pool, format, &fault), 0);
    for (uint32_t i = 0; i < ndim && i < SHMVIEW_MAX_NDIM; i++)
        d.shape[i] = shape[i];
    if (!strides)
        ck_assert_int_eq(view_fill_strides(&d, &fault), 0);
    for (uint32_t i = 0; strides && i < ndim && i < SHMVIEW_MAX_NDIM; i++)
        d.strides[i] = strides[i];
    return d;
}

#define INTS(...)                                                                                  \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define C_ORDER NULL
#define HINT    "; a format with '<' or '=' has none"

static void assert_fault(int r, const struct view_fault *fault, enum shmview_error error,
                         const char *text)
{
    ck_assert_int_eq(r, -1);
    ck_assert_msg(fault->error == error, "error %d, not %d: %s", fault->error, error, fault->text);
    ck_assert_str_eq(fault->text, text);
}

static void accepts(uint64_t size, const struct view_desc d, uint64_t nbytes)
{
    struct view_fault fault = {0};
    uint64_t got = 77;
    int r = view_check(&d, size, &got, &fault);
    ck_assert_msg(r == 0, "refused: %s", fault.text);
    ck_assert_uint_eq(got, nbytes);
    ck_assert_int_eq(view_check(&d, size, NULL, &fault), 0);
}

static void refuses(uint64_t size, const struct view_desc d, enum shmview_error error,
                    const char *text)
{
    struct view_fault fault = {0};
    uint64_t got = 77;
    assert_fault(view_check(&d, size, &got, &fault), &fault, error, text);
    ck_assert_uint_eq(got, 77); /* untouched */
}

static void casts(const char *format, uint64_t offset, uint64_t nbytes, uint64_t size, int64_t n)
{
    struct view_desc d = {0};
    struct view_fault fault = {0};
    view_parse_format(&d, &pool, format, &fault);
    int r = view_cast(&d, offset, nbytes, size, &fault);
    ck_assert_msg(r == 0, "refused: %s", fault.text);
    ck_assert_uint_eq(d.ndim, 1);
    ck_assert_uint_eq(d.offset, offset);
    ck_assert_int_eq(d.shape[0], n);
    ck_assert_int_eq(d.strides[0], d.item->itemsize);
    accepts(size, d, (uint64_t)n * d.item->itemsize);
}

static void refuses_cast(const char *format, uint64_t offset, uint64_t nbytes, uint64_t size,
                         enum shmview_error error, const char *text)
{
    struct view_desc d = {0};
    struct view_fault fault = {0};
    view_parse_format(&d, &pool, format, &fault);
    assert_fault(view_cast(&d, offset, nbytes, size, &fault), &fault, error, text);
}

#define REST UINT64_MAX

/* --- Formats ------------------------------------------------------------- */

START_TEST(format_fault_names_the_character)
{
    struct view_desc d = {0};
    struct view_fault fault;
    assert_fault(view_parse_format(&d, &pool, "=i4y", &fault), &fault, SHMVIEW_ERR_FORMAT,
                 "format \"=i4y\": character 3: 'y' is no type code");
    ck_assert_ptr_null(d.item);
    assert_fault(view_parse_format(&d, &pool, "", &fault), &fault, SHMVIEW_ERR_FORMAT,
                 "format \"\": character 0: a type code is missing");
    char text[1000];
    memset(text, 'i', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(view_parse_format(&d, &pool, text, &fault), -1);
    ck_assert_uint_lt(strlen(fault.text), sizeof fault.text);
    ck_assert_int_eq(view_parse_format(&d, &pool, "float64", &fault), 0);
    ck_assert_uint_eq(d.item->dtype, SHMVIEW_FLOAT64);
}
END_TEST

/* --- Casts --------------------------------------------------------------- */

START_TEST(cast_whole_elements)
{
    casts("h", 0, 4, 4, 2);
    casts("b", 3, 1, 4, 1);
    casts("float32", 0, REST, 4000, 1000);
    casts("float32", 4, REST, 4000, 999);
    casts("d", 8, 16, 4096, 2);
    casts("Q", 4088, REST, 4096, 1);
    casts("i", 4096, REST, 4096, 0); /* at the very end: empty */
    casts("i", 4096, 0, 4096, 0);
    casts("i", 0, 0, 4096, 0);
    casts("b", 0, REST, 0, 0);
    casts("b", 0, REST, INT64_MAX, INT64_MAX);
}
END_TEST

START_TEST(cast_ill_sized)
{
    refuses_cast("int16", 0, 3, 16, SHMVIEW_ERR_ILL_SIZED,
                 "3 bytes at byte 0 do not divide into int16 of 2 bytes: the last whole one ends "
                 "at byte 2");
    refuses_cast("int32", 4, 10, 16, SHMVIEW_ERR_ILL_SIZED,
                 "10 bytes at byte 4 do not divide into int32 of 4 bytes: the last whole one ends "
                 "at byte 12");
    refuses_cast("float64", 0, REST, 4095, SHMVIEW_ERR_ILL_SIZED,
                 "4095 bytes at byte 0 do not divide into float64 of 8 bytes: the last whole one "
                 "ends at byte 4088");
    refuses_cast("d", 0, 1, 8, SHMVIEW_ERR_ILL_SIZED,
                 "1 bytes at byte 0 do not divide into float64 of 8 bytes: the last whole one "
                 "ends at byte 0");
}
END_TEST

START_TEST(cast_misaligned)
{
    refuses_cast("int16", 1, 2, 16, SHMVIEW_ERR_MISALIGNED,
                 "byte 1 is not a multiple of 2, the alignment of int16" HINT);
    refuses_cast("int32", 2, 4, 16, SHMVIEW_ERR_MISALIGNED,
                 "byte 2 is not a multiple of 4, the alignment of int32" HINT);
    refuses_cast("float64", 4, 8, 16, SHMVIEW_ERR_MISALIGNED,
                 "byte 4 is not a multiple of 8, the alignment of float64" HINT);
    refuses_cast("int16", 15, 0, 16, SHMVIEW_ERR_MISALIGNED, /* empty too */
                 "byte 15 is not a multiple of 2, the alignment of int16" HINT);
}
END_TEST

START_TEST(cast_out_of_bounds)
{
    refuses_cast("b", 0, 17, 16, SHMVIEW_ERR_BOUNDS,
                 "17 bytes at byte 0 lie outside the segment's 16 bytes");
    refuses_cast("i", 12, 8, 16, SHMVIEW_ERR_BOUNDS,
                 "8 bytes at byte 12 lie outside the segment's 16 bytes");
    refuses_cast("b", 17, 0, 16, SHMVIEW_ERR_BOUNDS,
                 "0 bytes at byte 17 lie outside the segment's 16 bytes");
    refuses_cast("b", 17, REST, 16, SHMVIEW_ERR_BOUNDS,
                 "0 bytes at byte 17 lie outside the segment's 16 bytes");
    refuses_cast("b", UINT64_MAX, 1, 16, SHMVIEW_ERR_BOUNDS,
                 "1 bytes at byte 18446744073709551615 lie outside the segment's 16 bytes");
    /* the sum of offset and size wraps around to 15 */
    refuses_cast("b", 16, UINT64_MAX - 1, 16, SHMVIEW_ERR_BOUNDS,
                 "18446744073709551614 bytes at byte 16 lie outside the segment's 16 bytes");
}
END_TEST

/* --- Strides of C order -------------------------------------------------- */

START_TEST(fill_c_order)
{
    struct view_desc d = desc_of("i", 0, 3, INTS(2, 3, 4), C_ORDER);
    ck_assert_int_eq(d.strides[0], 48);
    ck_assert_int_eq(d.strides[1], 16);
    ck_assert_int_eq(d.strides[2], 4);
    accepts(96, d, 96);
    d = desc_of("d", 0, 8, INTS(1, 2, 1, 2, 1, 2, 1, 2), C_ORDER);
    ck_assert_int_eq(d.strides[0], 128);
    ck_assert_int_eq(d.strides[7], 8);
    accepts(128, d, 128);
    d = desc_of("i", 0, 3, INTS(2, 0, 4), C_ORDER); /* a length of 0 counts as 1 */
    ck_assert_int_eq(d.strides[0], 16);
    accepts(0, d, 0);
    d = desc_of("i", 0, 0, NULL, C_ORDER);
    accepts(4, d, 4);
}
END_TEST

START_TEST(fill_overflows)
{
    struct view_fault fault;
    struct view_desc d = {.ndim = 2, .shape = {INT64_MAX, 2}};
    view_parse_format(&d, &pool, "i", &fault);
    assert_fault(view_fill_strides(&d, &fault), &fault, SHMVIEW_ERR_OVERFLOW,
                 "dimension 0: 9223372036854775807 elements of 8 bytes overflow 2^63");
    d.shape[0] = 1;
    d.shape[1] = INT64_MAX / 4 + 1;
    assert_fault(view_fill_strides(&d, &fault), &fault, SHMVIEW_ERR_OVERFLOW,
                 "dimension 1: 2305843009213693952 elements of 4 bytes overflow 2^63");
    d.shape[1] = INT64_MAX / 4;
    ck_assert_int_eq(view_fill_strides(&d, &fault), 0);
    d.shape[1] = -1;
    assert_fault(view_fill_strides(&d, &fault), &fault, SHMVIEW_ERR_INVALID,
                 "dimension 1: length -1 < 0");
    d.ndim = 9;
    assert_fault(view_fill_strides(&d, &fault), &fault, SHMVIEW_ERR_INVALID,
                 "9 dimensions, the limit is 8");
}
END_TEST

/* --- Shape --------------------------------------------------------------- */

START_TEST(too_many_dimensions)
{
    struct view_desc d = desc_of("b", 0, 8, INTS(1, 1, 1, 1, 1, 1, 1, 1), C_ORDER);
    accepts(1, d, 1);
    d.ndim = 9;
    refuses(1, d, SHMVIEW_ERR_INVALID, "9 dimensions, the limit is 8");
    d.ndim = UINT32_MAX;
    refuses(1, d, SHMVIEW_ERR_INVALID, "4294967295 dimensions, the limit is 8");
}
END_TEST

START_TEST(negative_lengths)
{
    refuses(100, desc_of("b", 0, 1, INTS(-1), INTS(1)), SHMVIEW_ERR_INVALID,
            "dimension 0: length -1 < 0");
    refuses(100, desc_of("b", 0, 3, INTS(0, 1, INT64_MIN), INTS(1, 1, 1)), SHMVIEW_ERR_INVALID,
            "dimension 2: length -9223372036854775808 < 0");
}
END_TEST

START_TEST(sizes_that_overflow)
{
    const int64_t half = (int64_t)1 << 62;
    /* strides of 0 keep it inside, so the product is refused */
    refuses(100, desc_of("b", 0, 2, INTS(half, 2), INTS(0, 0)), SHMVIEW_ERR_OVERFLOW,
            "dimension 1: the size of the view overflows 2^63 bytes");
    refuses(100, desc_of("d", 0, 1, INTS(half), INTS(0)), SHMVIEW_ERR_OVERFLOW,
            "dimension 0: the size of the view overflows 2^63 bytes");
    accepts(100, desc_of("b", 0, 1, INTS(INT64_MAX), INTS(0)), INT64_MAX);
    accepts(100, desc_of("b", 0, 2, INTS(half, 1), INTS(0, 0)), (uint64_t)half);
    refuses(100, desc_of("b", 0, 3, INTS(3, half, 3), INTS(0, 0, 0)), SHMVIEW_ERR_OVERFLOW,
            "dimension 1: the size of the view overflows 2^63 bytes");
}
END_TEST

START_TEST(steps_that_overflow)
{
    refuses(100, desc_of("b", 0, 1, INTS(3), INTS(INT64_MAX)), SHMVIEW_ERR_OVERFLOW,
            "dimension 0: 2 steps of 9223372036854775807 bytes overflow 2^63");
    refuses(100, desc_of("b", 0, 1, INTS(3), INTS(INT64_MIN)), SHMVIEW_ERR_OVERFLOW,
            "dimension 0: 2 steps of -9223372036854775808 bytes overflow 2^63");
    refuses(100, desc_of("b", 99, 2, INTS(1, 2), INTS(1, INT64_MIN)), SHMVIEW_ERR_BOUNDS,
            "dimension 1 starts at byte -9223372036854775709, before byte 0");
    refuses(100, desc_of("b", 99, 1, INTS(2), INTS(INT64_MAX)), SHMVIEW_ERR_BOUNDS,
            "dimension 0 ends at byte 9223372036854775907, the segment has 100 bytes");
    /* a dimension of one element is never stepped */
    accepts(100, desc_of("i", 0, 2, INTS(1, 1), INTS(INT64_MIN, INT64_MAX)), 4);
}
END_TEST

START_TEST(segment_too_large)
{
    struct view_desc d = desc_of("b", 0, 1, INTS(1), C_ORDER);
    accepts(INT64_MAX, d, 1);
    refuses((uint64_t)INT64_MAX + 1, d, SHMVIEW_ERR_OVERFLOW,
            "a segment of 9223372036854775808 bytes");
    refuses(UINT64_MAX, d, SHMVIEW_ERR_OVERFLOW, "a segment of 18446744073709551615 bytes");
}
END_TEST

/* --- Alignment ----------------------------------------------------------- */

START_TEST(misaligned_offset)
{
    refuses(100, desc_of("h", 3, 0, NULL, C_ORDER), SHMVIEW_ERR_MISALIGNED,
            "byte 3 is not a multiple of 2, the alignment of int16" HINT);
    refuses(100, desc_of("d", 4, 1, INTS(1), C_ORDER), SHMVIEW_ERR_MISALIGNED,
            "byte 4 is not a multiple of 8, the alignment of float64" HINT);
    refuses(100, desc_of("d", UINT64_MAX, 1, INTS(1), C_ORDER), SHMVIEW_ERR_MISALIGNED,
            "byte 18446744073709551615 is not a multiple of 8, the alignment of float64" HINT);
    for (uint64_t offset = 0; offset < 16; offset++)
        accepts(100, desc_of("b", offset, 1, INTS(1), C_ORDER), 1);
}
END_TEST

START_TEST(misaligned_strides)
{
    refuses(100, desc_of("i", 4, 1, INTS(2), INTS(3)), SHMVIEW_ERR_MISALIGNED,
            "dimension 0: stride 3 puts element 1 at byte 7, no multiple of 4, the alignment of "
            "int32" HINT);
    refuses(100, desc_of("i", 8, 2, INTS(2, 2), INTS(8, -2)), SHMVIEW_ERR_MISALIGNED,
            "dimension 1: stride -2 puts element 1 at byte 6, no multiple of 4, the alignment of "
            "int32" HINT);
    refuses(100, desc_of("h", 0, 2, INTS(2, 0), INTS(1, 2)), SHMVIEW_ERR_MISALIGNED,
            "dimension 0: stride 1 puts element 1 at byte 1, no multiple of 2, the alignment of "
            "int16" HINT);
    accepts(100, desc_of("d", 0, 1, INTS(1), INTS(3)), 8); /* never stepped */
    accepts(100, desc_of("d", 0, 1, INTS(0), INTS(3)), 0);
}
END_TEST

static struct view_desc settled(struct view_desc d, uintptr_t base)
{
    accepts(100, d, (uint64_t)d.item->itemsize * (uint64_t)(d.ndim ? d.shape[0] : 1));
    view_settle(&d, base);
    return d;
}

START_TEST(marks_have_no_alignment)
{
    const uintptr_t page = 4096;
    struct view_desc d = desc_of("<i", 5, 1, INTS(3), INTS(7));
    ck_assert_str_eq(settled(d, page).item->text, "<i");
    ck_assert_uint_eq(settled(d, page).item->dtype, SHMVIEW_INT32);
    ck_assert_str_eq(settled(desc_of("=h", 0, 1, INTS(4), INTS(2)), page).item->text, "h");
    ck_assert_str_eq(settled(desc_of("=h", 0, 1, INTS(4), INTS(3)), page).item->text, "<h");
    ck_assert_str_eq(settled(desc_of("=h", 0, 1, INTS(1), INTS(3)), page).item->text, "h");
    ck_assert_str_eq(settled(desc_of("<h", 3, 0, NULL, C_ORDER), page).item->text, "<h");
    ck_assert_str_eq(settled(desc_of("<h", 3, 0, NULL, C_ORDER), page + 1).item->text, "<h");
    ck_assert_str_eq(settled(desc_of(">h", 3, 0, NULL, C_ORDER), page).item->text, ">h");
    ck_assert_ptr_nonnull(settled(desc_of(">h", 3, 0, NULL, C_ORDER), page).item->aligned);
    ck_assert_ptr_null(settled(desc_of(">h", 4, 0, NULL, C_ORDER), page).item->aligned);
    d = desc_of("<h", 0, 1, INTS(2), INTS(8));
    d.indirect = true; /* rows may lie anywhere, and later elsewhere */
    d.suboffsets[0] = 0;
    ck_assert_str_eq(settled(d, page).item->text, "<h");
    formats_deinit(&pool);
}
END_TEST

START_TEST(fields_have_no_alignment)
{
    struct view_fault fault;
    struct view_desc d = desc_of("T{<b:flag:f:x:}", 3, 1, INTS(2), C_ORDER);
    ck_assert_ptr_null(d.item->aligned);
    ck_assert_int_eq(view_field(&d, &pool, "x", &fault), 0);
    ck_assert_str_eq(d.item->text, "<f");
    ck_assert_uint_eq(d.offset, 4);
    accepts(100, d, 8);
    formats_deinit(&pool);
}
END_TEST

/* The byte in the text is a sum of two numbers that a peer may choose. */
START_TEST(misaligned_at_the_edge_of_numbers)
{
    struct view_fault fault;
    const uint64_t offsets[] = {INT64_MAX - 1, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1};
    const int64_t strides[] = {INT64_MAX, -INT64_MAX, INT64_MIN + 1};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            struct view_desc d = desc_of("h", offsets[i], 1, INTS(2), INTS(strides[k]));
            ck_assert_int_eq(view_check(&d, 100, NULL, &fault), -1);
        }
}
END_TEST

/* --- Bounds -------------------------------------------------------------- */

START_TEST(first_element_outside)
{
    refuses(100, desc_of("i", 100, 0, NULL, C_ORDER), SHMVIEW_ERR_BOUNDS,
            "the first element, 4 bytes at byte 100, lies outside the segment's 100 bytes");
    refuses(99, desc_of("i", 96, 0, NULL, C_ORDER), SHMVIEW_ERR_BOUNDS,
            "the first element, 4 bytes at byte 96, lies outside the segment's 99 bytes");
    accepts(100, desc_of("i", 96, 0, NULL, C_ORDER), 4);
    refuses(3, desc_of("i", 0, 0, NULL, C_ORDER), SHMVIEW_ERR_BOUNDS,
            "the first element, 4 bytes at byte 0, lies outside the segment's 3 bytes");
    refuses(0, desc_of("b", 0, 0, NULL, C_ORDER), SHMVIEW_ERR_BOUNDS,
            "the first element, 1 bytes at byte 0, lies outside the segment's 0 bytes");
    refuses(100, desc_of("b", UINT64_MAX, 1, INTS(1), C_ORDER), SHMVIEW_ERR_BOUNDS,
            "the first element, 1 bytes at byte 18446744073709551615, lies outside the segment's "
            "100 bytes");
}
END_TEST

START_TEST(ends_outside)
{
    refuses(4000, desc_of("f", 0, 1, INTS(1001), C_ORDER), SHMVIEW_ERR_BOUNDS,
            "dimension 0 ends at byte 4004, the segment has 4000 bytes");
    accepts(4000, desc_of("f", 0, 1, INTS(1000), C_ORDER), 4000);
    refuses(4000, desc_of("f", 4, 1, INTS(1000), C_ORDER), SHMVIEW_ERR_BOUNDS,
            "dimension 0 ends at byte 4004, the segment has 4000 bytes");
    /* the error names the first dimension that leaves the segment */
    refuses(16, desc_of("i", 0, 2, INTS(2, 3), C_ORDER), SHMVIEW_ERR_BOUNDS,
            "dimension 1 ends at byte 24, the segment has 16 bytes");
    refuses(20, desc_of("i", 0, 2, INTS(3, 2), INTS(8, 4)), SHMVIEW_ERR_BOUNDS,
            "dimension 1 ends at byte 24, the segment has 20 bytes");
    refuses(19, desc_of("i", 0, 2, INTS(3, 2), INTS(8, 4)), SHMVIEW_ERR_BOUNDS,
            "dimension 0 ends at byte 20, the segment has 19 bytes");
}
END_TEST

START_TEST(starts_before_byte_0)
{
    refuses(100, desc_of("b", 3, 1, INTS(5), INTS(-1)), SHMVIEW_ERR_BOUNDS,
            "dimension 0 starts at byte -1, before byte 0");
    accepts(100, desc_of("b", 4, 1, INTS(5), INTS(-1)), 5);
    refuses(100, desc_of("i", 0, 1, INTS(2), INTS(-4)), SHMVIEW_ERR_BOUNDS,
            "dimension 0 starts at byte -4, before byte 0");
    refuses(100, desc_of("i", 16, 2, INTS(2, 3), INTS(-12, -4)), SHMVIEW_ERR_BOUNDS,
            "dimension 1 starts at byte -4, before byte 0");
    accepts(24, desc_of("i", 20, 2, INTS(2, 3), INTS(-12, -4)), 24); /* both dimensions reversed */
    /* one dimension goes up and the other down, and neither makes room for the other */
    refuses(100, desc_of("b", 0, 2, INTS(50, 2), INTS(1, -1)), SHMVIEW_ERR_BOUNDS,
            "dimension 1 starts at byte -1, before byte 0");
}
END_TEST

START_TEST(zero_strides)
{
    accepts(4, desc_of("i", 0, 2, INTS(1000, 1000), INTS(0, 0)), 4000000);
    accepts(8, desc_of("i", 4, 1, INTS(7), INTS(0)), 28);
    accepts(12, desc_of("i", 0, 2, INTS(1000, 3), INTS(0, 4)), 12000); /* broadcast */
    refuses(8, desc_of("i", 8, 1, INTS(7), INTS(0)), SHMVIEW_ERR_BOUNDS,
            "the first element, 4 bytes at byte 8, lies outside the segment's 8 bytes");
}
END_TEST

START_TEST(overlapping_elements)
{
    accepts(6, desc_of("h", 0, 2, INTS(2, 2), INTS(2, 2)), 8); /* a sliding window */
    accepts(5, desc_of("b", 0, 2, INTS(3, 3), INTS(1, 1)), 9);
    refuses(4, desc_of("b", 0, 2, INTS(3, 3), INTS(1, 1)), SHMVIEW_ERR_BOUNDS,
            "dimension 1 ends at byte 5, the segment has 4 bytes");
}
END_TEST

START_TEST(empty_views)
{
    accepts(100, desc_of("i", 100, 1, INTS(0), C_ORDER), 0); /* offset == size */
    accepts(0, desc_of("d", 0, 1, INTS(0), C_ORDER), 0);
    accepts(100, desc_of("i", 0, 3, INTS(5, 0, 5), INTS(400, 400, -400)), 0);
    accepts(100, desc_of("b", 0, 2, INTS(0, INT64_MAX), INTS(1, 1)), 0);
    accepts(100, desc_of("b", 0, 2, INTS(2, 0), INTS(INT64_MIN, INT64_MAX)), 0);
    refuses(100, desc_of("i", 104, 1, INTS(0), C_ORDER), SHMVIEW_ERR_BOUNDS,
            "the first element, 4 bytes at byte 104, lies outside the segment's 100 bytes");
    refuses(100, desc_of("i", 99, 1, INTS(0), C_ORDER), SHMVIEW_ERR_MISALIGNED,
            "byte 99 is not a multiple of 4, the alignment of int32" HINT);
}
END_TEST

UNIT_MAIN("view", UNIT_TEST(format_fault_names_the_character), UNIT_TEST(cast_whole_elements),
          UNIT_TEST(cast_ill_sized), UNIT_TEST(cast_misaligned), UNIT_TEST(cast_out_of_bounds),
          UNIT_TEST(fill_c_order), UNIT_TEST(fill_overflows), UNIT_TEST(too_many_dimensions),
          UNIT_TEST(negative_lengths), UNIT_TEST(sizes_that_overflow),
          UNIT_TEST(steps_that_overflow), UNIT_TEST(segment_too_large),
          UNIT_TEST(misaligned_offset), UNIT_TEST(misaligned_strides),
          UNIT_TEST(marks_have_no_alignment), UNIT_TEST(fields_have_no_alignment),
          UNIT_TEST(misaligned_at_the_edge_of_numbers), UNIT_TEST(first_element_outside),
          UNIT_TEST(ends_outside), UNIT_TEST(starts_before_byte_0), UNIT_TEST(zero_strides),
          UNIT_TEST(overlapping_elements), UNIT_TEST(empty_views))
