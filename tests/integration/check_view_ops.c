/* SPDX-License-Identifier: Apache-2.0 */
/* Other views of the same elements, through the library and a real segment: what each call
 * returns, and its error text when it refuses. tests/property checks their results for all
 * kinds of views. */
#include <stdio.h>
#include <string.h>

#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;
static struct shmview_view whole; /* 4 x 6 of int16: row i, column j holds 10 i + j */

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    struct shmview_view_spec spec = {.format = "int16", .ndim = 2, .shape = INTS(4, 6)};
    OK(shmview_view_make(seg, &spec, &whole));
    for (int16_t i = 0; i < 4; i++)
        for (int16_t j = 0; j < 6; j++)
            SHMVIEW_AT2(int16_t, &whole, i, j) = (int16_t)(10 * i + j);
}

static void end(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* The elements of a view of int16, in C order: "0 1 2" */
static const char *elements(const struct shmview_view *v)
{
    static char text[400];
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t k = 0; k < v->ndim; k++)
        if (v->shape[k] == 0)
            return text;
    for (;;) {
        void *p;
        OK(shmview_view_pointer(v, index, &p));
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", n ? " " : "", *(int16_t *)p);
        uint32_t k = v->ndim;
        while (k > 0 && ++index[k - 1] == v->shape[k - 1])
            index[--k] = 0;
        if (k == 0)
            return text;
    }
}

static void assert_view(const struct shmview_view *v, uint32_t ndim, const int64_t *shape,
                        const char *wanted)
{
    ck_assert_uint_eq(v->ndim, ndim);
    for (uint32_t k = 0; k < ndim; k++)
        ck_assert_int_eq(v->shape[k], shape[k]);
    ck_assert_str_eq(elements(v), wanted);
}

/* --- Parts --------------------------------------------------------------- */

START_TEST(slices_are_pythons)
{
    static const struct {
        int64_t start, stop, step;
        const char *wanted;
    } cases[] = {
        {SHMVIEW_OMIT, SHMVIEW_OMIT, 1, "0 1 2 3 4 5"},
        {SHMVIEW_OMIT, SHMVIEW_OMIT, SHMVIEW_OMIT, "0 1 2 3 4 5"},
        {1, 4, 1, "1 2 3"},
        {1, SHMVIEW_OMIT, 2, "1 3 5"},
        {-2, SHMVIEW_OMIT, 1, "4 5"},
        {SHMVIEW_OMIT, -4, 1, "0 1"},
        {SHMVIEW_OMIT, SHMVIEW_OMIT, -1, "5 4 3 2 1 0"},
        {4, 0, -2, "4 2"},
        {-1, -7, -3, "5 2"},
        {100, -100, -4, "5 1"},
        {-100, 100, 5, "0 5"},
        {3, 3, 1, ""},
        {4, 2, 1, ""},
        {2, 4, -1, ""},
        {5, 6, INT64_MAX, "5"},
        {5, SHMVIEW_OMIT, -INT64_MAX, "5"},
    };
    begin();
    struct shmview_view row, v;
    OK(shmview_view_index(&whole, 0, 0, &row));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OK(shmview_view_slice(&row, 0, cases[i].start, cases[i].stop, cases[i].step, &v));
        ck_assert_msg(strcmp(elements(&v), cases[i].wanted) == 0, "%zu: %s", i, elements(&v));
    }
    OK(shmview_view_slice(&whole, 0, 1, 3, 1, &v));
    OK(shmview_view_slice(&v, 1, SHMVIEW_OMIT, SHMVIEW_OMIT, -3, &v)); /* into itself */
    assert_view(&v, 2, INTS(2, 2), "15 12 25 22");
    v.ndim = 77;
    REFUSED(shmview_view_slice(&row, 0, 0, 1, 0, &v), INVALID, "dimension 0: a step of 0");
    REFUSED(shmview_view_slice(&row, 1, 0, 1, 1, &v), INVALID, "dimension 1, the view has 1");
    ck_assert_uint_eq(v.ndim, 77); /* untouched */
    end();
}
END_TEST

START_TEST(indexes)
{
    begin();
    struct shmview_view v;
    OK(shmview_view_index(&whole, 1, 2, &v));
    assert_view(&v, 1, INTS(4), "2 12 22 32");
    OK(shmview_view_index(&whole, 0, -1, &v));
    assert_view(&v, 1, INTS(6), "30 31 32 33 34 35");
    OK(shmview_view_index(&v, 0, 5, &v));
    assert_view(&v, 0, NULL, "35");
    REFUSED(shmview_view_index(&v, 0, 0, &v), INVALID, "the view has 0");
    REFUSED(shmview_view_index(&whole, 0, 4, &v), BOUNDS,
            "index 4 of dimension 0, which has length 4");
    REFUSED(shmview_view_index(&whole, 1, -7, &v), BOUNDS,
            "index -7 of dimension 1, which has length 6");
    void *p;
    REFUSED(shmview_view_pointer(&whole, (ptrdiff_t[]){0, 6}, &p), BOUNDS,
            "index 6 of dimension 1");
    REFUSED(shmview_view_pointer(&whole, (ptrdiff_t[]){-1, 0}, &p), BOUNDS,
            "index -1 of dimension 0");
    end();
}
END_TEST

/* --- Order and shape ----------------------------------------------------- */

START_TEST(transposes)
{
    begin();
    struct shmview_view v;
    OK(shmview_view_slice(&whole, 1, 0, 2, 1, &v));
    OK(shmview_view_transpose(&v, NULL, &v));
    assert_view(&v, 2, INTS(2, 4), "0 10 20 30 1 11 21 31");
    OK(shmview_view_transpose(&v, (const uint32_t[]){1, 0}, &v));
    assert_view(&v, 2, INTS(4, 2), "0 1 10 11 20 21 30 31");
    REFUSED(shmview_view_transpose(&v, (const uint32_t[]){1, 1}, &v), INVALID,
            "dimension 1: axis 1 is not one of the view's 2, or occurs twice");
    REFUSED(shmview_view_transpose(&v, (const uint32_t[]){0, 2}, &v), INVALID, "axis 2");
    OK(shmview_view_transpose(&whole, NULL, &v));
    ck_assert_int_eq(shmview_view_is_contiguous(&whole, 'C'), 1);
    ck_assert_int_eq(shmview_view_is_contiguous(&whole, 'F'), 0);
    ck_assert_int_eq(shmview_view_is_contiguous(&v, 'C'), 0);
    ck_assert_int_eq(shmview_view_is_contiguous(&v, 'F'), 1);
    ck_assert_int_eq(shmview_view_is_contiguous(&v, 'A'), 1);
    ck_assert_int_eq(shmview_view_is_contiguous(&v, 'X'), 0);
    end();
}
END_TEST

START_TEST(reshapes)
{
    begin();
    struct shmview_view v, part;
    OK(shmview_view_reshape(&whole, 3, INTS(2, -1, 4), &v));
    ck_assert_int_eq(v.shape[1], 3);
    OK(shmview_view_reshape(&v, 1, INTS(24), &v));
    ck_assert_int_eq(v.strides[0], 2);
    OK(shmview_view_slice(&whole, 0, 0, 4, 2, &part)); /* every second row */
    OK(shmview_view_reshape(&part, 3, INTS(2, 3, 2), &v));
    assert_view(&v, 3, INTS(2, 3, 2), "0 1 2 3 4 5 20 21 22 23 24 25");
    REFUSED(shmview_view_reshape(&part, 1, INTS(12), &v), INVALID, "would need a copy");
    REFUSED(shmview_view_reshape(&whole, 2, INTS(5, 5), &v), ILL_SIZED,
            "24 elements do not divide into 25");
    REFUSED(shmview_view_reshape(&whole, 2, INTS(-1, 5), &v), ILL_SIZED, "divide into 5");
    REFUSED(shmview_view_reshape(&whole, 2, INTS(-1, -1), &v), INVALID, "dimension 1: length -1");
    REFUSED(shmview_view_reshape(&whole, 2, INTS(INT64_MAX, 2), &v), OVERFLOW, "2^63 elements");
    REFUSED(shmview_view_reshape(&whole, 9, INTS(1), &v), INVALID, "9 dimensions");
    OK(shmview_view_slice(&whole, 1, 0, 0, 1, &part));
    OK(shmview_view_reshape(&part, 2, INTS(0, 7), &v));
    end();
}
END_TEST

START_TEST(broadcasts)
{
    begin();
    struct shmview_view row, v;
    OK(shmview_view_index(&whole, 0, 1, &row));
    OK(shmview_view_slice(&row, 0, 0, 2, 1, &row));
    OK(shmview_view_broadcast(&row, 2, INTS(3, 2), &v));
    assert_view(&v, 2, INTS(3, 2), "10 11 10 11 10 11");
    ck_assert_int_eq(v.strides[0], 0);
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    REFUSED(shmview_view_broadcast(&row, 2, INTS(2, 3), &v), INVALID,
            "dimension 1: length 2 cannot become 3");
    REFUSED(shmview_view_broadcast(&whole, 1, INTS(6), &v), INVALID,
            "2 dimensions cannot become 1");
    REFUSED(shmview_view_broadcast(&row, 2, INTS(INT64_MAX, 2), &v), OVERFLOW, "2^63");
    end();
}
END_TEST

/* --- Formats ------------------------------------------------------------- */

START_TEST(recasts)
{
    begin();
    struct shmview_view v, part;
    OK(shmview_view_recast(&whole, "int32", &v));
    ck_assert_int_eq(v.shape[0], 4);
    ck_assert_int_eq(v.shape[1], 3);
    ck_assert_int_eq(SHMVIEW_AT2(int32_t, &v, 0, 1), 3 << 16 | 2);
    OK(shmview_view_recast(&v, "B", &v));
    ck_assert_int_eq(v.shape[1], 12);
    OK(shmview_view_recast(&v, "T{h:a:h:b:h:c:}", &v));
    ck_assert_int_eq(v.shape[1], 2);
    ck_assert_str_eq(v.format, "T{<h:a:h:b:h:c:}");
    OK(shmview_view_bytes(&whole, &v));
    ck_assert_int_eq(v.shape[0], 48);
    ck_assert_uint_eq(v.nbytes, 48);
    REFUSED(shmview_view_recast(&whole, "float64", &v), ILL_SIZED,
            "dimension 1: 12 bytes do not divide into float64 of 8 bytes");
    REFUSED(shmview_view_recast(&whole, "y", &v), FORMAT, "character 0");
    OK(shmview_view_slice(&whole, 1, 0, 4, 1, &part));
    REFUSED(shmview_view_recast(&part, "int32", &v), INVALID,
            "a cast needs a C-contiguous view: dimension 0 has stride 12, not 8");
    REFUSED(shmview_view_bytes(&part, &v), INVALID, "C-contiguous");
    OK(shmview_view_slice(&whole, 0, 1, 2, 1, &part));
    OK(shmview_view_slice(&part, 1, 1, 3, 1, &part));
    REFUSED(shmview_view_recast(&part, "int32", &v), MISALIGNED,
            "byte 14 is not a multiple of 4, the alignment of int32");
    OK(shmview_view_index(&whole, 0, 0, &part));
    OK(shmview_view_index(&part, 0, 0, &part));
    OK(shmview_view_recast(&part, "uint16", &v));
    REFUSED(shmview_view_recast(&part, "int32", &v), ILL_SIZED,
            "one element of 2 bytes is no int32 of 4 bytes");
    end();
}
END_TEST

START_TEST(fields)
{
    struct shmview_view all, v;
    begin();
    const char *format = "T{b:flag:(2,3)h:grid:T{i:x:i:y:}:at:}";
    OK(shmview_view_cast(seg, format, 0, 240, &all)); /* 10 of 24 bytes */
    ck_assert_uint_eq(all.itemsize, 24);
    OK(shmview_view_field(&all, "grid", &v));
    ck_assert_uint_eq(v.ndim, 3);
    ck_assert_int_eq(v.strides[0], 24);
    ck_assert_int_eq(v.strides[1], 6);
    ck_assert_ptr_eq(v.data, all.data + 2);
    ck_assert_str_eq(v.format, "h");
    OK(shmview_view_field(&all, "at", &v));
    ck_assert_str_eq(v.format, "T{<i:x:i:y:}");
    OK(shmview_view_field(&v, "y", &v));
    ck_assert_ptr_eq(v.data, all.data + 20);
    ck_assert_uint_eq(v.dtype, SHMVIEW_INT32);
    REFUSED(shmview_view_field(&all, "x", &v), NOT_FOUND, "has no field x");
    REFUSED(shmview_view_field(&all, NULL, &v), NOT_FOUND, "has no field");
    OK(shmview_view_cast(seg, "3f", 0, 24, &v));
    OK(shmview_view_field(&v, NULL, &v));
    ck_assert_uint_eq(v.ndim, 2);
    ck_assert_int_eq(v.shape[1], 3);
    OK(shmview_view_cast(seg, "T{<b:a:i:b:}", 0, 10, &all)); /* packed */
    OK(shmview_view_field(&all, "a", &v));
    ck_assert_uint_eq(v.flags, 0);
    OK(shmview_view_field(&all, "b", &v));
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_UNALIGNED);
    ck_assert_str_eq(v.format, "<i");
    OK(shmview_view_index(&v, 0, 1, &v)); /* byte 6 */
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_UNALIGNED);
    OK(shmview_view_cast(seg, "T{<b:a:i:b:}", 3, 5, &all));
    OK(shmview_view_field(&all, "b", &v)); /* byte 4 */
    ck_assert_uint_eq(v.flags, 0);
    ck_assert_str_eq(v.format, "i");
    end();
}
END_TEST

START_TEST(formats_tell_their_components)
{
    struct shmview_format f;
    struct shmview_component c[3];
    memset(c, 0xee, sizeof c);
    OK(shmview_format_parse("T{b:flag:(2,3)h:grid:T{i:x:i:y:}:at:}", &f, c, 3));
    ck_assert_uint_eq(f.itemsize, 24);
    ck_assert_uint_eq(f.align, 4);
    ck_assert_uint_eq(f.dtype, SHMVIEW_STRUCT);
    ck_assert_uint_eq(f.n_components, 5); /* that there are */
    ck_assert_str_eq(c[1].name, "grid");
    ck_assert_uint_eq(c[1].offset, 2);
    ck_assert_uint_eq(c[1].itemsize, 2);
    ck_assert_uint_eq(c[1].repeat, 6);
    ck_assert_uint_eq(c[1].shape[1], 3);
    ck_assert_str_eq(c[2].name, "at");
    ck_assert_uint_eq(c[2].dtype, SHMVIEW_STRUCT);
    OK(shmview_format_parse("<f4", &f, NULL, 0));
    ck_assert_str_eq(f.text, "f");
    ck_assert_uint_eq(f.align, 4);
    ck_assert_uint_eq(f.least_align, 1);
    REFUSED(shmview_format_parse("hh$", &f, c, 3), FORMAT, "character 2: '$' is no type code");
    ck_assert_uint_eq(f.error_at, 2);
    REFUSED(shmview_format_parse(NULL, &f, c, 3), FORMAT, "a type code is missing");
    int64_t strides[2];
    OK(shmview_fill_strides(2, INTS(3, 4), 8, 'F', strides));
    ck_assert_int_eq(strides[1], 24);
    REFUSED(shmview_fill_strides(2, INTS(3, 4), 8, 'A', strides), INVALID, "order 'A'");
    REFUSED(shmview_fill_strides(2, INTS(3, INT64_MAX), 8, 'C', strides), OVERFLOW, "2^63");
}
END_TEST

/* --- Suboffsets ---------------------------------------------------------- */

/* Three rows of four int16, stored anywhere; their offsets are at byte 1024. */
static void make_rows(struct shmview_view *ret)
{
    static const uint64_t rows[3] = {2048, 60, 3000};
    memcpy((char *)shmview_data(seg) + 1024, rows, sizeof rows);
    for (int16_t i = 0; i < 3; i++)
        for (int16_t j = 0; j < 4; j++) {
            int16_t value = (int16_t)(100 * i + j);
            memcpy((char *)shmview_data(seg) + rows[i] + 2 + 2 * j, &value, 2);
        }
    struct shmview_view_spec spec = {.name = "rows",
                                     .format = "h",
                                     .offset = 1024,
                                     .ndim = 2,
                                     .shape = INTS(3, 4),
                                     .strides = INTS(8, 2),
                                     .suboffsets = INTS(2, -1)};
    OK(shmview_define(seg, "l", &spec, 1));
    OK(shmview_view_open(seg, "l", "rows", ret));
}

START_TEST(rows_by_suboffsets)
{
    struct shmview_view rows, v;
    begin();
    make_rows(&rows);
    ck_assert_uint_eq(rows.flags, SHMVIEW_VIEW_INDIRECT);
    ck_assert_int_eq(shmview_view_is_contiguous(&rows, 'A'), 0);
    ck_assert_int_eq(shmview_is_contiguous(&rows), 0);
    ck_assert_int_eq(shmview_rows_contiguous(&rows), 0);
    assert_view(&rows, 2, INTS(3, 4), "0 1 2 3 100 101 102 103 200 201 202 203");
    OK(shmview_view_slice(&rows, 1, 1, 4, 2, &v));
    assert_view(&v, 2, INTS(3, 2), "1 3 101 103 201 203");
    OK(shmview_view_slice(&v, 0, SHMVIEW_OMIT, SHMVIEW_OMIT, -1, &v));
    assert_view(&v, 2, INTS(3, 2), "201 203 101 103 1 3");
    OK(shmview_view_index(&v, 1, 1, &v));
    assert_view(&v, 1, INTS(3), "203 103 3");
    OK(shmview_view_index(&rows, 0, 1, &v));
    assert_view(&v, 1, INTS(4), "100 101 102 103");
    ck_assert_uint_eq(v.flags, 0);
    OK(shmview_view_broadcast(&rows, 3, INTS(2, 3, 4), &v));
    ck_assert_str_eq(elements(&v), "0 1 2 3 100 101 102 103 200 201 202 203 "
                                   "0 1 2 3 100 101 102 103 200 201 202 203");
    REFUSED(shmview_view_index(&v, 1, 1, &v), INVALID, "dimension 1 has a suboffset");
    REFUSED(shmview_view_transpose(&rows, NULL, &v), INVALID, "suboffsets");
    REFUSED(shmview_view_reshape(&rows, 1, INTS(12), &v), INVALID, "suboffsets");
    REFUSED(shmview_view_recast(&rows, "B", &v), INVALID, "suboffsets");
    end();
}
END_TEST

START_TEST(suboffsets_that_lead_astray)
{
    static const struct {
        uint64_t stored;
        int error;
        const char *part;
    } cases[] = {
        {4096 - 2 - 8, 0, ""},
        {4096 - 2 - 6, -SHMVIEW_ERR_BOUNDS, "dimension 0 ends at byte 4098"},
        {4095, -SHMVIEW_ERR_BOUNDS, "the element would lie at byte 4097"},
        {UINT64_MAX, -SHMVIEW_ERR_BOUNDS, "the offset stored at byte 1032 is 18446744073709551615"},
        {59, -SHMVIEW_ERR_MISALIGNED, "byte 61 is not a multiple of 2"},
    };
    struct shmview_view rows, v;
    void *p;
    begin();
    make_rows(&rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy((char *)shmview_data(seg) + 1032, &cases[i].stored, 8);
        client_expect(shmview_view_index(&rows, 0, 1, &v), cases[i].error, cases[i].part, "index");
        int r = shmview_view_pointer(&rows, (ptrdiff_t[]){1, 3}, &p);
        ck_assert_int_eq(r, cases[i].error);
        OK(shmview_view_pointer(&rows, (ptrdiff_t[]){2, 3}, &p)); /* the others are not hurt */
    }
    end();
}
END_TEST

START_TEST(suboffsets_refused)
{
    begin();
    struct shmview_view v;
    struct shmview_view_spec spec = {
        .name = "v", .format = "h", .ndim = 2, .shape = INTS(3, 4), .suboffsets = INTS(0, -1)};
    REFUSED(shmview_view_make(seg, &spec, &v), INVALID, "suboffsets without strides");
    spec.strides = INTS(4, 2);
    REFUSED(shmview_view_make(seg, &spec, &v), MISALIGNED, "the alignment of a stored offset");
    spec.strides = INTS(8, 2);
    spec.offset = 4096 - 16;
    REFUSED(shmview_view_make(seg, &spec, &v), BOUNDS, "dimension 0 ends at byte 4104");
    spec.offset = 0;
    spec.strides = INTS(8, 2048);
    REFUSED(shmview_view_make(seg, &spec, &v), BOUNDS, "dimension 1: a row of more than");
    REFUSED(shmview_define(seg, "l", &spec, 1), BOUNDS, "view 'v': dimension 1");
    end();
}
END_TEST

/* --- What stays ---------------------------------------------------------- */

START_TEST(phase_and_read_only_stay)
{
    begin();
    struct shmview_view v, part;
    struct shmview_view_spec spec = {
        .name = "A", .format = "h", .ndim = 1, .shape = INTS(10), .flags = SHMVIEW_VIEW_READ_ONLY};
    OK(shmview_define(seg, "one", &spec, 1));
    OK(shmview_define(seg, "two", &spec, 1));
    OK(shmview_lock(seg));
    OK(shmview_switch(seg, "one"));
    OK(shmview_view_open(seg, "one", "A", &v));
    OK(shmview_view_slice(&v, 0, 0, 5, 1, &part));
    OK(shmview_view_recast(&v, "b", &v)); /* into itself */
    ck_assert_uint_eq(part.flags, SHMVIEW_VIEW_READ_ONLY);
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    ck_assert_int_eq(shmview_view_is_stale(&part), 0);
    ck_assert_int_eq(shmview_view_is_stale(&v), 0);
    OK(shmview_switch(seg, "two"));
    ck_assert_int_eq(shmview_view_is_stale(&part), 1);
    ck_assert_int_eq(shmview_view_is_stale(&v), 1);
    OK(shmview_unlock(seg));
    end();
}
END_TEST

/* Segments of two instances have the same name and size. Both pairs of views lie at the same bytes
 * of their segments: one pair in two, the other in one. */
START_TEST(copies_between_instances)
{
    struct daemon other;
    struct shmview_segment *theirs, *again;
    struct shmview_view from, to;
    begin();
    daemon_start_named(&other, "other");
    struct shmview_connection *there = client_connect(&other);
    theirs = client_create(there, "s", 4096);
    again = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_view_cast(seg, "int16", 0, 48, &from));
    OK(shmview_view_cast(theirs, "int16", 0, 48, &to));
    OK(shmview_copy(&to, &from));
    ck_assert_str_eq(elements(&to),
                     "0 1 2 3 4 5 10 11 12 13 14 15 20 21 22 23 24 25 30 31 32 33 34 35");
    OK(shmview_view_cast(again, "int16", 2, 46, &to)); /* one element further on */
    OK(shmview_view_cast(seg, "int16", 0, 46, &from));
    OK(shmview_copy(&to, &from));
    ck_assert_str_eq(elements(&whole),
                     "0 0 1 2 3 4 5 10 11 12 13 14 15 20 21 22 23 24 25 30 31 32 33 34");
    OK(shmview_detach(again));
    OK(shmview_detach(theirs));
    OK(shmview_disconnect(there));
    daemon_stop(&other);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(slices_are_pythons),
        SUITE_TEST(indexes),
        SUITE_TEST(transposes),
        SUITE_TEST(reshapes),
        SUITE_TEST(broadcasts),
        SUITE_TEST(recasts),
        SUITE_TEST(fields),
        SUITE_TEST(formats_tell_their_components),
        SUITE_TEST(rows_by_suboffsets),
        SUITE_TEST(suboffsets_that_lead_astray),
        SUITE_TEST(suboffsets_refused),
        SUITE_TEST(phase_and_read_only_stay),
        SUITE_TEST(copies_between_instances),
        SUITE_END,
    };
    return suite_main("view_ops", tests);
}
