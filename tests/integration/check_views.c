/* SPDX-License-Identifier: Apache-2.0 */
/* Views on a real segment: the same bytes seen in many ways, and every way that is
 * refused, with its text. */
#include <stdio.h>
#include <string.h>

#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static void begin(uint64_t size)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "views", size);
}

static void end(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* --- Casts --------------------------------------------------------------- */

/* Ten bytes as int16, int32 and int8: 0 1 2 3 4 has the sum 262146 as two int32. */
START_TEST(ten_bytes_are_five_shorts_and_two_ints)
{
    static const signed char expected[10] = {0, 0, 1, 0, 2, 0, 3, 0, 4, 0};
    struct shmview_view shorts, ints, bytes;
    begin(10);
    struct shmview_segment *other = client_attach(conn, "views", SHMVIEW_WRITE);
    OK(shmview_view_cast(seg, "int16", 0, SHMVIEW_REST, &shorts));
    OK(shmview_view_cast(seg, "int32", 0, 8, &ints));
    OK(shmview_view_cast(seg, "int8", 0, SHMVIEW_REST, &bytes));
    ck_assert_int_eq(shorts.shape[0], 5);
    ck_assert_int_eq(ints.shape[0], 2);
    ck_assert_int_eq(bytes.shape[0], 10);
    OK(shmview_lock(seg));
    int sum = 0;
    for (ptrdiff_t i = 0; i < shorts.shape[0]; i++)
        sum += SHMVIEW_AT1(int16_t, &shorts, i);
    ck_assert_int_eq(sum, 0);
    OK(shmview_unlock(seg));

    struct shmview_view theirs;
    OK(shmview_lock(other));
    OK(shmview_view_cast(other, "<i2", 0, SHMVIEW_REST, &theirs));
    for (ptrdiff_t i = 0; i < theirs.shape[0]; i++)
        SHMVIEW_DATA(int16_t, &theirs)[i] = (int16_t)i;
    OK(shmview_unlock(other));

    OK(shmview_lock(seg));
    ck_assert_int_eq(SHMVIEW_DATA(int32_t, &ints)[0] + SHMVIEW_DATA(int32_t, &ints)[1], 262146);
    ck_assert_mem_eq(bytes.data, expected, 10);
    OK(shmview_unlock(seg));
    OK(shmview_detach(other));
    end();
}
END_TEST

START_TEST(cast_fills_every_member)
{
    static const struct {
        const char *format, *canonical;
        uint32_t dtype, itemsize;
    } formats[] = {
        {"int8", "b", SHMVIEW_INT8, 1},       {"b", "b", SHMVIEW_INT8, 1},
        {"<u1", "B", SHMVIEW_UINT8, 1},       {"h", "h", SHMVIEW_INT16, 2},
        {"uint16", "H", SHMVIEW_UINT16, 2},   {"=i", "i", SHMVIEW_INT32, 4},
        {"I", "I", SHMVIEW_UINT32, 4},        {"int64", "q", SHMVIEW_INT64, 8},
        {"@Q", "Q", SHMVIEW_UINT64, 8},       {"float32", "f", SHMVIEW_FLOAT32, 4},
        {"float64", "d", SHMVIEW_FLOAT64, 8},
    };
    begin(4096);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct shmview_view v;
        memset(&v, 0xaa, sizeof v);
        OK(shmview_view_cast(seg, formats[i].format, 64, 128, &v));
        ck_assert_str_eq(v.format, formats[i].canonical);
        ck_assert_uint_eq(v.dtype, formats[i].dtype);
        ck_assert_uint_eq(v.itemsize, formats[i].itemsize);
        ck_assert_uint_eq(v.nbytes, 128);
        ck_assert_uint_eq(v.ndim, 1);
        ck_assert_int_eq(v.shape[0], 128 / (int)formats[i].itemsize);
        ck_assert_int_eq(v.strides[0], (int)formats[i].itemsize);
        ck_assert_ptr_eq(v.data, (unsigned char *)shmview_data(seg) + 64);
        ck_assert_ptr_eq(v.segment, seg);
        ck_assert_uint_eq(v.flags, 0);
        ck_assert_uint_eq(v.layout, UINT32_MAX);
        ck_assert(shmview_is_contiguous(&v));
    }
    end();
}
END_TEST

START_TEST(cast_of_nothing_is_empty)
{
    struct shmview_view v;
    begin(8);
    OK(shmview_view_cast(seg, "d", 8, SHMVIEW_REST, &v));
    ck_assert_uint_eq(v.nbytes, 0);
    ck_assert_int_eq(v.shape[0], 0);
    OK(shmview_view_cast(seg, "f", 4, 0, &v));
    ck_assert_int_eq(v.shape[0], 0);
    end();
}
END_TEST

START_TEST(cast_refuses_and_names_the_byte)
{
    struct shmview_view v = {.ndim = 77};
    begin(10);
    REFUSED(shmview_view_cast(seg, "int32", 0, SHMVIEW_REST, &v), ILL_SIZED,
            "10 bytes at byte 0 do not divide into int32 of 4 bytes: the last whole one ends at "
            "byte 8");
    REFUSED(shmview_view_cast(seg, "int16", 0, 3, &v), ILL_SIZED, "ends at byte 2");
    REFUSED(shmview_view_cast(seg, "int16", 1, 2, &v), MISALIGNED,
            "byte 1 is not a multiple of 2, the alignment of int16");
    REFUSED(shmview_view_cast(seg, "int64", 4, 0, &v), MISALIGNED, "byte 4");
    REFUSED(shmview_view_cast(seg, "int8", 0, 11, &v), BOUNDS,
            "11 bytes at byte 0 lie outside the segment's 10 bytes");
    REFUSED(shmview_view_cast(seg, "int8", 11, SHMVIEW_REST, &v), BOUNDS, "byte 11");
    REFUSED(shmview_view_cast(seg, "int8", 8, UINT64_MAX - 4, &v), BOUNDS, "byte 8");
    REFUSED(shmview_view_cast(seg, "int8", UINT64_MAX, 2, &v), BOUNDS, "18446744073709551615");
    ck_assert_uint_eq(v.ndim, 77); /* untouched */
    end();
}
END_TEST

START_TEST(cast_refuses_formats_with_the_place)
{
    static const struct {
        const char *format, *part;
    } bad[] = {
        {"", "a type code is missing"},
        {"<", "character 1: a type code is missing"},
        {"y", "character 0: 'y' is no type code"},
        {"iiy", "character 2"},
        {"T{i:a:", "character 6: the '}' of this struct is missing"},
        {"<n", "character 1: 'n' has no standard size"},
        {"float", "character 2"},
        {"int32 ", "character 2"},
        {"i4,f4", "character 2: ',' is no type code"},
        {NULL, "a type code is missing"},
    };
    begin(16);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct shmview_view v;
        REFUSED(shmview_view_cast(seg, bad[i].format, 0, SHMVIEW_REST, &v), FORMAT, bad[i].part);
    }
    end();
}
END_TEST

/* --- Shapes and strides -------------------------------------------------- */

static void fill_with_numbers(void)
{
    struct shmview_view all;
    OK(shmview_view_cast(seg, "i", 0, SHMVIEW_REST, &all));
    for (ptrdiff_t i = 0; i < all.shape[0]; i++)
        SHMVIEW_DATA(int, &all)[i] = (int)i;
}

START_TEST(rows_and_columns_of_a_matrix)
{
    const int64_t shape[] = {6, 4}, turned_shape[] = {4, 6}, turned[] = {4, 16};
    const int64_t six[] = {6}, sixteen[] = {16};
    struct shmview_view m, t, column;
    begin(96);
    fill_with_numbers();
    OK(shmview_view_make(seg, &(struct shmview_view_spec){.format = "i", .ndim = 2, .shape = shape},
                         &m));
    ck_assert_int_eq(m.strides[0], 16);
    ck_assert_int_eq(m.strides[1], 4);
    ck_assert_int_eq(SHMVIEW_AT2(int, &m, 5, 3), 23);
    ck_assert(shmview_is_contiguous(&m));
    OK(shmview_view_make(seg,
                         &(struct shmview_view_spec){
                             .format = "i", .ndim = 2, .shape = turned_shape, .strides = turned},
                         &t));
    ck_assert(!shmview_is_contiguous(&t));
    ck_assert(!shmview_rows_contiguous(&t));
    for (ptrdiff_t i = 0; i < 6; i++)
        for (ptrdiff_t j = 0; j < 4; j++)
            ck_assert_ptr_eq(shmview_at2(&m, i, j), shmview_at2(&t, j, i));
    OK(shmview_view_make(
        seg,
        &(struct shmview_view_spec){
            .format = "i", .offset = 8, .ndim = 1, .shape = six, .strides = sixteen},
        &column));
    struct shmview_strided_row row = shmview_strided(&column, 0);
    for (ptrdiff_t i = 0; i < row.n; i++)
        ck_assert_int_eq(SHMVIEW_ELEM(int, row, i), (int)(4 * i + 2));
    SHMVIEW_AT1(int, &column, 3) = -1;
    ck_assert_int_eq(SHMVIEW_ROW(int, &m, 3)[2], -1);
    end();
}
END_TEST

START_TEST(strides_may_be_negative_or_zero)
{
    const int64_t all[] = {24}, back[] = {-4}, shape[] = {3, 24}, spread[] = {0, -4};
    struct shmview_view v;
    begin(96);
    fill_with_numbers();
    struct shmview_view_spec spec = {
        .format = "i", .offset = 92, .ndim = 1, .shape = all, .strides = back};
    OK(shmview_view_make(seg, &spec, &v));
    for (ptrdiff_t i = 0; i < 24; i++)
        ck_assert_int_eq(SHMVIEW_AT1(int, &v, i), (int)(23 - i));
    ck_assert_uint_eq(v.nbytes, 96);
    spec.ndim = 2;
    spec.shape = shape;
    spec.strides = spread;
    OK(shmview_view_make(seg, &spec, &v));
    ck_assert_ptr_eq(shmview_at2(&v, 0, 5), shmview_at2(&v, 2, 5));
    ck_assert_uint_eq(v.nbytes, 3 * 96); /* of the array, not of the memory */
    end();
}
END_TEST

START_TEST(eight_dimensions_and_none)
{
    const int64_t two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    const ptrdiff_t index[] = {1, 0, 1, 0, 1, 0, 1, 1};
    struct shmview_view v;
    begin(1024);
    fill_with_numbers();
    OK(shmview_view_make(seg, &(struct shmview_view_spec){.format = "i", .ndim = 8, .shape = two},
                         &v));
    ck_assert_uint_eq(v.nbytes, 1024);
    ck_assert_int_eq(*(int *)shmview_at(&v, index), 0xab);
    ck_assert_int_eq(SHMVIEW_AT3(int, &v, 1, 1, 1), 0xe0);
    OK(shmview_view_make(seg, &(struct shmview_view_spec){.format = "i", .offset = 40}, &v));
    ck_assert_int_eq(*SHMVIEW_DATA(int, &v), 10);
    ck_assert_uint_eq(v.ndim, 0);
    ck_assert(shmview_is_contiguous(&v));
    end();
}
END_TEST

START_TEST(empty_arrays_touch_nothing)
{
    const int64_t shape[] = {0, 1000000}, strides[] = {INT64_MAX - 7, 8};
    struct shmview_view v;
    begin(8);
    OK(shmview_view_make(
        seg,
        &(struct shmview_view_spec){
            .format = "d", .offset = 8, .ndim = 2, .shape = shape, .strides = strides},
        &v));
    ck_assert_uint_eq(v.nbytes, 0);
    end();
}
END_TEST

static const int64_t s4[] = {4}, s25[] = {25}, s_neg[] = {-1}, s_max[] = {INT64_MAX};
static const int64_t s_grid[] = {5, 6}, s_many[] = {INT64_MAX / 8, 3};
static const int64_t t_odd[] = {6}, t_back[] = {-4}, t_far[] = {INT64_MAX - 3};
static const int64_t t_grid[] = {-24, 4}, t_up[] = {20, 4}, t_zero[] = {0, 0};

static const struct {
    struct shmview_view_spec spec;
    int error;
    const char *part;
} refused[] = {
    {{.format = "i", .ndim = 1, .shape = s25},
     SHMVIEW_ERR_BOUNDS,
     "dimension 0 ends at byte 100, the segment has 96 bytes"},
    {{.format = "i", .ndim = 2, .shape = s_grid, .strides = t_up},
     SHMVIEW_ERR_BOUNDS,
     "dimension 1 ends at byte 104"},
    {{.format = "i", .offset = 92, .ndim = 2, .shape = s_grid, .strides = t_grid},
     SHMVIEW_ERR_BOUNDS,
     "dimension 0 starts at byte -4"},
    {{.format = "i", .offset = 8, .ndim = 1, .shape = s4, .strides = t_back},
     SHMVIEW_ERR_BOUNDS,
     "starts at byte -4, before byte 0"},
    {{.format = "i", .offset = 96}, SHMVIEW_ERR_BOUNDS, "4 bytes at byte 96"},
    {{.format = "i", .offset = UINT64_MAX - 3}, SHMVIEW_ERR_BOUNDS, "18446744073709551612"},
    {{.format = "i", .offset = 100, .ndim = 1, .shape = t_zero}, SHMVIEW_ERR_BOUNDS, "byte 100"},
    {{.format = "i", .offset = 2}, SHMVIEW_ERR_MISALIGNED, "byte 2 is not a multiple of 4"},
    {{.format = "i", .ndim = 1, .shape = s4, .strides = t_odd},
     SHMVIEW_ERR_MISALIGNED,
     "dimension 0: stride 6 puts element 1 at byte 6"},
    {{.format = "i", .ndim = 1, .shape = s_neg}, SHMVIEW_ERR_INVALID, "length -1 < 0"},
    {{.format = "i", .ndim = 1, .shape = s_max}, SHMVIEW_ERR_OVERFLOW, "dimension 0"},
    {{.format = "d", .ndim = 2, .shape = s_many, .strides = t_zero},
     SHMVIEW_ERR_OVERFLOW,
     "dimension 1: the size of the view overflows"},
    {{.format = "i", .ndim = 1, .shape = s4, .strides = t_far},
     SHMVIEW_ERR_OVERFLOW,
     "3 steps of 9223372036854775804 bytes overflow"},
    {{.format = "i", .ndim = 9, .shape = s_grid}, SHMVIEW_ERR_INVALID, "9 dimensions"},
    {{.format = "i", .ndim = UINT32_MAX, .shape = s_grid}, SHMVIEW_ERR_INVALID, "dimensions"},
    {{.format = "i", .ndim = 1}, SHMVIEW_ERR_INVALID, "no shape"},
    {{.format = "i", .flags = 2}, SHMVIEW_ERR_INVALID, "flags 0x2"},
    {{.format = "z"}, SHMVIEW_ERR_FORMAT, "format \"z\""},
    {{.name = "named", .format = "z"}, SHMVIEW_ERR_FORMAT, "view 'named': format"},
};

START_TEST(make_refuses_and_names_dimension_and_byte)
{
    struct shmview_view v = {.ndim = 77};
    begin(96);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        client_expect(shmview_view_make(seg, &refused[i].spec, &v), -refused[i].error,
                      refused[i].part, refused[i].part);
    ck_assert_uint_eq(v.ndim, 77);
    end();
}
END_TEST

/* --- Read-only ----------------------------------------------------------- */

START_TEST(views_are_read_only_where_the_memory_is)
{
    struct shmview_view v;
    begin(96);
    for (int access = SHMVIEW_PEEK; access <= SHMVIEW_WRITE; access++) {
        struct shmview_segment *s = client_attach(conn, "views", access);
        uint32_t flags = access == SHMVIEW_WRITE ? 0 : SHMVIEW_VIEW_READ_ONLY;
        OK(shmview_view_cast(s, "i", 0, SHMVIEW_REST, &v));
        ck_assert_uint_eq(v.flags, flags);
        OK(shmview_view_make(s, &(struct shmview_view_spec){.format = "i"}, &v));
        ck_assert_uint_eq(v.flags, flags);
        OK(shmview_view_make(
            s, &(struct shmview_view_spec){.format = "i", .flags = SHMVIEW_VIEW_READ_ONLY}, &v));
        ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
        OK(shmview_detach(s));
    }
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(ten_bytes_are_five_shorts_and_two_ints),
        SUITE_TEST(cast_fills_every_member),
        SUITE_TEST(cast_of_nothing_is_empty),
        SUITE_TEST(cast_refuses_and_names_the_byte),
        SUITE_TEST(cast_refuses_formats_with_the_place),
        SUITE_TEST(rows_and_columns_of_a_matrix),
        SUITE_TEST(strides_may_be_negative_or_zero),
        SUITE_TEST(eight_dimensions_and_none),
        SUITE_TEST(empty_arrays_touch_nothing),
        SUITE_TEST(make_refuses_and_names_dimension_and_byte),
        SUITE_TEST(views_are_read_only_where_the_memory_is),
        SUITE_END,
    };
    return suite_main("views", tests);
}
