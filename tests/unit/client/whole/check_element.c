/* SPDX-License-Identifier: Apache-2.0 */
/* Checks element.h: the inline calls against plain arithmetic, and the exported symbols against the
 * inline calls. */

/* Renames the inline calls, so that the test can call the exported symbols as well. */
#define shmview_at1             inline_at1
#define shmview_at2             inline_at2
#define shmview_at3             inline_at3
#define shmview_at              inline_at
#define shmview_strided         inline_strided
#define shmview_rows_contiguous inline_rows_contiguous
#define shmview_is_contiguous   inline_is_contiguous
#include <shmview/element.h>

#include "unit/unit.h"

typedef const struct shmview_view *view_p;
void *exported_at1(view_p view, ptrdiff_t i) __asm__("shmview_at1");
void *exported_at2(view_p view, ptrdiff_t i, ptrdiff_t j) __asm__("shmview_at2");
void *exported_at3(view_p view, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k) __asm__("shmview_at3");
void *exported_at(view_p view, const ptrdiff_t *index) __asm__("shmview_at");
struct shmview_strided_row exported_strided(view_p view, ptrdiff_t i) __asm__("shmview_strided");
int exported_rows_contiguous(view_p view) __asm__("shmview_rows_contiguous");
int exported_is_contiguous(view_p view) __asm__("shmview_is_contiguous");

static unsigned char memory[4096] __attribute__((aligned(64)));

/* Returns a view of memory in C order, with its first element at offset. */
static struct shmview_view c_order(uint32_t itemsize, size_t offset, uint32_t ndim,
                                   const ptrdiff_t *shape)
{
    struct shmview_view v = {.data = memory + offset, .itemsize = itemsize, .ndim = ndim};
    ptrdiff_t step = (ptrdiff_t)itemsize;
    for (uint32_t d = ndim; d-- > 0;) {
        v.shape[d] = shape[d];
        v.strides[d] = step;
        step *= shape[d];
    }
    v.nbytes = (uint64_t)step;
    return v;
}

#define SHAPE(...)                                                                                 \
    (const ptrdiff_t[])                                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

START_TEST(addresses)
{
    struct shmview_view v = c_order(4, 16, 3, SHAPE(3, 4, 5));
    for (ptrdiff_t i = 0; i < 3; i++)
        for (ptrdiff_t j = 0; j < 4; j++)
            for (ptrdiff_t k = 0; k < 5; k++) {
                unsigned char *p = memory + 16 + 4 * (20 * i + 5 * j + k);
                ck_assert_ptr_eq(inline_at3(&v, i, j, k), p);
                ck_assert_ptr_eq(inline_at(&v, SHAPE(i, j, k)), p);
                ck_assert_ptr_eq(inline_at2(&v, i, j), p - 4 * k);
                ck_assert_ptr_eq(inline_at1(&v, i), p - 4 * k - 20 * j);
            }
}
END_TEST

START_TEST(negative_and_zero_strides)
{
    struct shmview_view v = {
        .data = memory + 1000, .itemsize = 2, .ndim = 2, .shape = {4, 5}, .strides = {-20, 0}};
    for (ptrdiff_t i = 0; i < 4; i++)
        for (ptrdiff_t j = 0; j < 5; j++) {
            ck_assert_ptr_eq(inline_at2(&v, i, j), memory + 1000 - 20 * i);
            ck_assert_ptr_eq(inline_at(&v, SHAPE(i, j)), memory + 1000 - 20 * i);
        }
    struct shmview_strided_row s = inline_strided(&v, 3);
    ck_assert_ptr_eq(s.data, memory + 940);
    ck_assert_int_eq(s.n, 5);
    ck_assert_int_eq(s.stride, 0);
}
END_TEST

START_TEST(no_dimension)
{
    struct shmview_view v = c_order(8, 8, 0, NULL);
    ck_assert_ptr_eq(inline_at(&v, NULL), memory + 8);
    struct shmview_strided_row s = inline_strided(&v, 0);
    ck_assert_ptr_eq(s.data, memory + 8);
    ck_assert_int_eq(s.n, 1);
    ck_assert_int_eq(s.stride, 0);
    ck_assert(inline_rows_contiguous(&v));
    ck_assert(inline_is_contiguous(&v));
}
END_TEST

START_TEST(eight_dimensions)
{
    struct shmview_view v = c_order(1, 0, 8, SHAPE(2, 2, 2, 2, 2, 2, 2, 2));
    for (ptrdiff_t n = 0; n < 256; n++) {
        ptrdiff_t index[8];
        for (int d = 0; d < 8; d++)
            index[d] = n >> (7 - d) & 1;
        ck_assert_ptr_eq(inline_at(&v, index), memory + n);
    }
    ck_assert(inline_is_contiguous(&v));
}
END_TEST

START_TEST(strided_rows)
{
    struct shmview_view v = c_order(4, 0, 2, SHAPE(6, 7));
    for (ptrdiff_t i = 0; i < 6; i++) {
        struct shmview_strided_row s = inline_strided(&v, i);
        ck_assert_ptr_eq(s.data, memory + 28 * i);
        ck_assert_int_eq(s.n, 7);
        ck_assert_int_eq(s.stride, 4);
    }
    v = c_order(4, 12, 1, SHAPE(9));
    v.strides[0] = -4;
    struct shmview_strided_row s = inline_strided(&v, 0);
    ck_assert_ptr_eq(s.data, memory + 12);
    ck_assert_int_eq(s.n, 9);
    ck_assert_int_eq(s.stride, -4);
}
END_TEST

START_TEST(macros)
{
    int16_t *m = (int16_t *)(void *)memory;
    for (int16_t i = 0; i < 100; i++)
        m[i] = i;
    struct shmview_view v = c_order(2, 0, 2, SHAPE(10, 10)), w = c_order(2, 0, 3, SHAPE(2, 5, 10));
    ck_assert_int_eq(SHMVIEW_DATA(int16_t, &v)[42], 42);
    ck_assert_int_eq(SHMVIEW_ROW(int16_t, &v, 4)[2], 42);
    ck_assert_int_eq(SHMVIEW_AT2(int16_t, &v, 4, 2), 42);
    ck_assert_int_eq(SHMVIEW_AT3(int16_t, &w, 1, 2, 3), 73);
    ck_assert_int_eq(SHMVIEW_AT1(int16_t, &v, 7), 70);
    struct shmview_strided_row s = inline_strided(&v, 4);
    ck_assert_int_eq(SHMVIEW_ELEM(int16_t, s, 2), 42);
    SHMVIEW_AT2(int16_t, &v, 9, 9) = -1;
    SHMVIEW_ELEM(int16_t, s, 1 + 1) = -2; /* an expression */
    SHMVIEW_ROW(int16_t, &v, 0 + 1)[0] = -3;
    ck_assert_int_eq(m[99], -1);
    ck_assert_int_eq(m[42], -2);
    ck_assert_int_eq(m[10], -3);
    const struct shmview_view *pointers[] = {&v, &w};
    ck_assert_int_eq(SHMVIEW_AT2(int16_t, pointers[0], 4, 2), -2);
}
END_TEST

START_TEST(contiguous)
{
    struct shmview_view v = c_order(4, 0, 3, SHAPE(2, 3, 4)), w = v;
    ck_assert(inline_is_contiguous(&v) && inline_rows_contiguous(&v));
    w.strides[0] = 100; /* rows are, the whole is not */
    ck_assert(!inline_is_contiguous(&w) && inline_rows_contiguous(&w));
    w = v;
    w.strides[2] = 8;
    ck_assert(!inline_is_contiguous(&w) && !inline_rows_contiguous(&w));
    w.strides[2] = -4;
    ck_assert(!inline_is_contiguous(&w) && !inline_rows_contiguous(&w));
    w.strides[2] = 0;
    ck_assert(!inline_is_contiguous(&w) && !inline_rows_contiguous(&w));
    /* a dimension of one element may have any stride */
    v = c_order(4, 0, 3, SHAPE(1, 3, 1));
    v.strides[0] = 999;
    v.strides[2] = -7;
    ck_assert(inline_is_contiguous(&v) && inline_rows_contiguous(&v));
    /* an empty view has no gaps */
    v = c_order(4, 0, 3, SHAPE(2, 0, 4));
    v.strides[0] = v.strides[2] = 77;
    ck_assert(inline_is_contiguous(&v));
    v = c_order(8, 0, 2, SHAPE(5, 0));
    v.strides[1] = 3;
    ck_assert(inline_rows_contiguous(&v));
    /* columns first */
    v = c_order(2, 0, 2, SHAPE(3, 4));
    v.strides[0] = 2;
    v.strides[1] = 6;
    ck_assert(!inline_is_contiguous(&v) && !inline_rows_contiguous(&v));
}
END_TEST

/* Returns whether all elements in order follow each other without a gap. */
static bool walks_without_gap(const struct shmview_view *v)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    unsigned char *expected = v->data;
    if (v->nbytes == 0)
        return true;
    for (;;) {
        if ((unsigned char *)inline_at(v, index) != expected)
            return false;
        expected += v->itemsize;
        uint32_t d = v->ndim;
        while (d > 0 && ++index[d - 1] == v->shape[d - 1])
            index[--d] = 0;
        if (d == 0)
            return true;
    }
}

static struct shmview_view random_view(uint64_t *seed)
{
    struct shmview_view v = {.data = memory + 2048, .itemsize = 1u << unit_random(seed) % 4};
    v.ndim = (uint32_t)(unit_random(seed) % 5);
    v.nbytes = v.itemsize;
    ptrdiff_t step = (ptrdiff_t)v.itemsize;
    for (uint32_t d = v.ndim; d-- > 0;) {
        v.shape[d] = (ptrdiff_t)(unit_random(seed) % 9 ? 1 + unit_random(seed) % 3 : 0);
        v.strides[d] = unit_random(seed) % 4 ? step : (ptrdiff_t)(unit_random(seed) % 33) - 16;
        step *= v.shape[d];
        v.nbytes *= (uint64_t)v.shape[d];
    }
    return v;
}

START_TEST(contiguous_by_walking)
{
    uint64_t seed = 0xabcdef0123456789;
    unsigned n = 0;
    for (int i = 0; i < 100000; i++) {
        struct shmview_view v = random_view(&seed);
        ck_assert_int_eq(inline_is_contiguous(&v), walks_without_gap(&v));
        n += (unsigned)inline_is_contiguous(&v);
    }
    ck_assert_uint_gt(n, 10000);
    ck_assert_uint_lt(n, 90000);
}
END_TEST

START_TEST(symbols_are_the_same)
{
    uint64_t seed = 0x1122334455667788;
    for (int i = 0; i < 20000; i++) {
        struct shmview_view v = random_view(&seed);
        ptrdiff_t index[SHMVIEW_MAX_NDIM];
        for (int d = 0; d < SHMVIEW_MAX_NDIM; d++)
            index[d] = (ptrdiff_t)(unit_random(&seed) % 4);
        ck_assert_ptr_eq(exported_at(&v, index), inline_at(&v, index));
        ck_assert_ptr_eq(exported_at1(&v, index[0]), inline_at1(&v, index[0]));
        ck_assert_ptr_eq(exported_at2(&v, index[0], index[1]), inline_at2(&v, index[0], index[1]));
        ck_assert_ptr_eq(exported_at3(&v, index[0], index[1], index[2]),
                         inline_at3(&v, index[0], index[1], index[2]));
        struct shmview_strided_row a = exported_strided(&v, index[0]);
        struct shmview_strided_row b = inline_strided(&v, index[0]);
        ck_assert_ptr_eq(a.data, b.data);
        ck_assert_int_eq(a.n, b.n);
        ck_assert_int_eq(a.stride, b.stride);
        ck_assert_int_eq(exported_rows_contiguous(&v), inline_rows_contiguous(&v));
        ck_assert_int_eq(exported_is_contiguous(&v), inline_is_contiguous(&v));
    }
}
END_TEST

/* The offsets are fixed, because other languages declare the struct themselves. */
START_TEST(layout_of_the_view)
{
    ck_assert_uint_eq(offsetof(struct shmview_view, data), 0);
    ck_assert_uint_eq(offsetof(struct shmview_view, segment), sizeof(void *));
    if (sizeof(void *) != 8)
        return;
    ck_assert_uint_eq(offsetof(struct shmview_view, format), 16);
    ck_assert_uint_eq(offsetof(struct shmview_view, item), 24);
    ck_assert_uint_eq(offsetof(struct shmview_view, nbytes), 32);
    ck_assert_uint_eq(offsetof(struct shmview_view, itemsize), 40);
    ck_assert_uint_eq(offsetof(struct shmview_view, dtype), 44);
    ck_assert_uint_eq(offsetof(struct shmview_view, ndim), 48);
    ck_assert_uint_eq(offsetof(struct shmview_view, flags), 52);
    ck_assert_uint_eq(offsetof(struct shmview_view, layout), 56);
    ck_assert_uint_eq(offsetof(struct shmview_view, generation), 60);
    ck_assert_uint_eq(offsetof(struct shmview_view, shape), 64);
    ck_assert_uint_eq(offsetof(struct shmview_view, strides), 128);
    ck_assert_uint_eq(offsetof(struct shmview_view, suboffsets), 192);
    ck_assert_uint_eq(offsetof(struct shmview_view, reserved), 256);
    ck_assert_uint_eq(sizeof(struct shmview_view), 288);
    ck_assert_uint_eq(sizeof(struct shmview_strided_row), 24);
}
END_TEST

UNIT_MAIN("element", UNIT_TEST(addresses), UNIT_TEST(negative_and_zero_strides),
          UNIT_TEST(no_dimension), UNIT_TEST(eight_dimensions), UNIT_TEST(strided_rows),
          UNIT_TEST(macros), UNIT_TEST(contiguous), UNIT_TEST(contiguous_by_walking),
          UNIT_TEST(symbols_are_the_same), UNIT_TEST(layout_of_the_view))
