/* SPDX-License-Identifier: Apache-2.0 */
/* Checks every call on elements for views whose elements begin at any byte. An aligned view of the
 * same format is the reference. With the sanitizers it shows that no code reads or writes such an
 * element through a typed pointer. */
#include "unit/foreign.h"

#include <shmview/value.h>
#include <shmview/view.h>

#define N         5
#define REFERENCE 4096 /* where the aligned elements begin */

static const char *const formats[] = {"<h", ">h", "<H", "<i", ">I", "<q",  ">Q",  "<f", ">f",
                                      "<d", ">d", "<e", "^g", "^P", "<Zf", ">Zd", "?"};

/* Sets *ret to N elements at `offset`, `step` bytes apart. */
static void spread(const char *format, uint64_t offset, int64_t step, struct shmview_view *ret)
{
    struct shmview_view_spec spec = {
        .format = format, .offset = offset, .ndim = 1, .shape = INTS(N), .strides = INTS(step)};
    *ret = foreign_view(&spec);
}

static void assert_same(const struct shmview_view *v, const struct shmview_view *reference)
{
    for (ptrdiff_t i = 0; i < N; i++)
        ck_assert_int_eq(memcmp(shmview_at1(v, i), shmview_at1(reference, i), v->itemsize), 0);
    ck_assert_int_eq(shmview_equal(v, reference, NULL), 1);
    ck_assert_int_eq(shmview_equal(reference, v, NULL), 1);
}

static void check_values(const struct shmview_view *v, const struct shmview_view *reference)
{
    struct shmview_value value;
    double z[2];
    for (ptrdiff_t i = 0; i < N; i++) {
        ck_assert_int_eq(shmview_set_double(v, &i, (double)i), 0);
        ck_assert_int_eq(shmview_set_int64(reference, &i, i), 0);
    }
    assert_same(v, reference);
    for (ptrdiff_t i = 0; i < N; i++) {
        ck_assert_int_eq(shmview_get_complex(v, &i, z), 0);
        ck_assert(z[0] == (double)(v->dtype == SHMVIEW_BOOL ? i > 0 : i) && z[1] == 0);
    }
    for (ptrdiff_t i = 0; i < N; i++) {
        shmview_value_load(v->dtype, v->itemsize, shmview_at1(v, i), &value);
        ck_assert_int_eq(
            shmview_value_store(v->dtype, v->itemsize, &value, shmview_at1(v, N - 1 - i)), 0);
        shmview_value_load(v->dtype, v->itemsize, shmview_at1(reference, i), &value);
        ck_assert_int_eq(
            shmview_value_store(v->dtype, v->itemsize, &value, shmview_at1(reference, N - 1 - i)),
            0);
    }
    assert_same(v, reference);
}

static void check_whole(const struct shmview_view *v, const struct shmview_view *reference)
{
    struct shmview_view doubles = foreign_row("Zd", 2048, N), back;
    struct shmview_summary sum, wanted;
    ck_assert_int_eq(shmview_fill_int64(v, 1), 0);
    ck_assert_int_eq(shmview_copy(v, reference), 0);
    assert_same(v, reference);
    ck_assert_int_eq(shmview_copy(&doubles, v), 0);
    ck_assert_int_eq(shmview_equal(&doubles, v, NULL), 1);
    ck_assert_int_eq(shmview_fill_int64(v, 0), 0);
    ck_assert_int_eq(shmview_copy(v, &doubles), 0);
    assert_same(v, reference);
    int r = shmview_summarize(reference, &wanted);
    ck_assert_int_eq(shmview_summarize(v, &sum), r);
    ck_assert(r || (sum.sum == wanted.sum && sum.max == wanted.max && sum.min == wanted.min));
    ck_assert_int_eq(shmview_view_slice(v, 0, SHMVIEW_OMIT, SHMVIEW_OMIT, -1, &back), 0);
    ck_assert_int_eq(shmview_copy(v, &back), 0); /* they overlap */
    ck_assert_int_eq(shmview_view_slice(reference, 0, SHMVIEW_OMIT, SHMVIEW_OMIT, -1, &back), 0);
    ck_assert_int_eq(shmview_copy(reference, &back), 0);
    assert_same(v, reference);
}

START_TEST(any_byte)
{
    foreign_begin();
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        struct shmview_view reference = foreign_row(formats[f], REFERENCE, N), v;
        struct shmview_format told;
        ck_assert_int_eq(shmview_format_parse(formats[f], &told, NULL, 0), 0);
        ck_assert_uint_eq(reference.flags, 0);
        ck_assert_uint_eq(told.least_align, 1);
        for (uint64_t offset = 0; offset <= 16; offset++)
            for (int64_t step = told.itemsize; step <= told.itemsize + 3; step++) {
                spread(formats[f], offset, step, &v);
                bool aligned = offset % told.align == 0 && (uint64_t)step % told.align == 0;
                ck_assert_uint_eq(v.flags, aligned ? 0 : SHMVIEW_VIEW_UNALIGNED);
                ck_assert_int_eq(strcmp(v.format, told.text) == 0, aligned || told.text[0] == '>');
                ck_assert_ptr_eq(shmview_try_at1(&v, v.dtype, 0, 1),
                                 aligned ? shmview_at1(&v, 1) : NULL);
                ck_assert_ptr_eq(shmview_try_strided(&v, v.dtype, 0, 0).data,
                                 aligned ? v.data : NULL);
                ck_assert(aligned || !shmview_try_data(&v, v.dtype, 0));
                check_values(&v, &reference);
                check_whole(&v, &reference);
            }
    }
    foreign_end();
}
END_TEST

/* The text of an unaligned view differs from that of an aligned one of the same arrays. */
START_TEST(arrays_within_elements)
{
    struct shmview_view a, b;
    foreign_begin();
    a = foreign_row("<3h", 1, 4);
    b = foreign_row("3h", 64, 4);
    ck_assert_str_eq(a.format, "(3)<h");
    ck_assert_str_eq(b.format, "(3)h");
    for (ptrdiff_t i = 0; i < 4; i++)
        ck_assert_int_eq(shmview_set_bytes(&b, &i, &(short[]){1, 2, (short)i}), 0);
    ck_assert_int_eq(shmview_copy(&a, &b), 0);
    ck_assert_int_eq(shmview_equal(&a, &b, NULL), 1);
    ck_assert_int_eq(memcmp(a.data, b.data, a.nbytes), 0);
    ck_assert_int_eq(shmview_view_recast(&a, a.format, &b), 0);
    ck_assert_str_eq(b.format, a.format);
    assert_fails(shmview_view_recast(&a, "(3)h", &b), SHMVIEW_ERR_MISALIGNED,
                 "byte 1 is not a multiple of 2, the alignment of (3)h; a format with '<' or '=' "
                 "has none");
    foreign_end();
}
END_TEST

/* Arrays at any byte, onto themselves in the other order, through a temporary. They are larger than
 * any number. */
START_TEST(arrays_that_overlap)
{
    struct shmview_view v, reversed;
    short expected[5][9], *at = expected[0];
    foreign_begin();
    v = foreign_row("<9h", 1, 5);
    for (int i = 0; i < 45; i++)
        at[i] = (short)(1000 - i);
    memcpy(v.data, expected, sizeof expected);
    ck_assert_int_eq(shmview_view_slice(&v, 0, SHMVIEW_OMIT, SHMVIEW_OMIT, -1, &reversed), 0);
    ck_assert_int_eq(shmview_copy(&v, &reversed), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_mem_eq((char *)v.data + i * 18, expected[4 - i], 18);
    foreign_end();
}
END_TEST

START_TEST(not_for_typed_pointers)
{
    struct DLManagedTensorVersioned *tensor;
    struct shmview_view v, part;
    foreign_begin();
    v = foreign_row("<f", 2, 6);
    ck_assert(!SHMVIEW_IS(const float, &v) && !SHMVIEW_TRY1(float, &v, 0));
    ck_assert(!SHMVIEW_CHECKED_DATA(const float, &v) && shmview_is_contiguous(&v));
    ck_assert_int_eq(shmview_dlpack_export_versioned(&v, &tensor), -SHMVIEW_ERR_MISALIGNED);
    spread("<f", 2, 6, &v); /* byte 2, 8, 14, 20 ... */
    ck_assert_int_eq(shmview_view_slice(&v, 0, 1, SHMVIEW_OMIT, 2, &part), 0);
    ck_assert_uint_eq(part.flags, 0);
    ck_assert_str_eq(part.format, "f");
    ck_assert_ptr_eq(SHMVIEW_TRY1(float, &part, 1), foreign_memory + 20);
    foreign_end();
}
END_TEST

UNIT_MAIN("unaligned", UNIT_TEST(any_byte), UNIT_TEST(arrays_within_elements),
          UNIT_TEST(arrays_that_overlap), UNIT_TEST(not_for_typed_pointers))
