/* SPDX-License-Identifier: Apache-2.0 */
/* Checks element.h: C types and element types, checked access against plain arithmetic on views of
 * all kinds, and the exported symbols against the inline calls. */

/* Renames the inline calls, so that the test can call the exported symbols as well. */
#define shmview_rows_contiguous inline_rows_contiguous
#define shmview_is_contiguous   inline_is_contiguous
#define shmview_fits            inline_fits
#define shmview_fits_nd         inline_fits_nd
#define shmview_try_at1         inline_try_at1
#define shmview_try_at2         inline_try_at2
#define shmview_try_at3         inline_try_at3
#define shmview_try_at          inline_try_at
#define shmview_try_data        inline_try_data
#define shmview_try_row         inline_try_row
#define shmview_try_strided     inline_try_strided
#define shmview_try_elem        inline_try_elem
#include <shmview/element.h>

#include "common/views/dtype.h"
#include "unit/unit.h"

typedef const struct shmview_view *view_p;
typedef struct shmview_strided_row row_t;
int exported_fits(view_p, uint32_t, uint32_t) __asm__("shmview_fits");
int exported_fits_nd(view_p, uint32_t, uint32_t, uint32_t) __asm__("shmview_fits_nd");
void *exported_try_at1(view_p, uint32_t, uint32_t, ptrdiff_t) __asm__("shmview_try_at1");
void *exported_try_at2(view_p, uint32_t, uint32_t, ptrdiff_t, ptrdiff_t) __asm__("shmview_try_at2");
void *exported_try_at3(view_p, uint32_t, uint32_t, ptrdiff_t, ptrdiff_t,
                       ptrdiff_t) __asm__("shmview_try_at3");
void *exported_try_at(view_p, uint32_t, uint32_t, const ptrdiff_t *) __asm__("shmview_try_at");
void *exported_try_data(view_p, uint32_t, uint32_t) __asm__("shmview_try_data");
void *exported_try_row(view_p, uint32_t, uint32_t, ptrdiff_t) __asm__("shmview_try_row");
row_t exported_try_strided(view_p, uint32_t, uint32_t, ptrdiff_t) __asm__("shmview_try_strided");
void *exported_try_elem(row_t, ptrdiff_t) __asm__("shmview_try_elem");

static unsigned char memory[4096] __attribute__((aligned(64)));

static struct shmview_view matrix(uint32_t dtype, uint32_t itemsize, ptrdiff_t rows,
                                  ptrdiff_t columns)
{
    ptrdiff_t step = (ptrdiff_t)itemsize;
    return (struct shmview_view){
        .data = memory,
        .dtype = dtype,
        .itemsize = itemsize,
        .ndim = 2,
        .nbytes = (uint64_t)(rows * columns * step),
        .shape = {rows, columns},
        .strides = {columns * step, step},
    };
}

/* --- C types ------------------------------------------------------------- */

/* The code is a constant for each qualifier, and the size is that of the library. */
#define TYPE(type, dtype)                                                                          \
    do {                                                                                           \
        _Static_assert(SHMVIEW_DTYPE_OF(type) == (dtype), #type);                                  \
        _Static_assert(SHMVIEW_DTYPE_OF(const type) == (dtype), #type);                            \
        _Static_assert(SHMVIEW_DTYPE_OF(const volatile type) == (dtype), #type);                   \
        ck_assert_uint_eq(dtype_of(dtype)->itemsize, sizeof(type));                                \
        ck_assert_uint_eq(dtype_of(dtype)->align, _Alignof(type));                                 \
    } while (0)

START_TEST(types)
{
    TYPE(int8_t, SHMVIEW_INT8);
    TYPE(uint8_t, SHMVIEW_UINT8);
    TYPE(int16_t, SHMVIEW_INT16);
    TYPE(uint16_t, SHMVIEW_UINT16);
    TYPE(int32_t, SHMVIEW_INT32);
    TYPE(uint32_t, SHMVIEW_UINT32);
    TYPE(int64_t, SHMVIEW_INT64);
    TYPE(uint64_t, SHMVIEW_UINT64);
    TYPE(long, SHMVIEW_INT64);
    TYPE(unsigned long, SHMVIEW_UINT64);
    TYPE(long long, SHMVIEW_INT64);
    TYPE(unsigned long long, SHMVIEW_UINT64);
    TYPE(ptrdiff_t, SHMVIEW_INT64);
    TYPE(size_t, SHMVIEW_UINT64);
    TYPE(float, SHMVIEW_FLOAT32);
    TYPE(double, SHMVIEW_FLOAT64);
    TYPE(long double, SHMVIEW_LONGDOUBLE);
    TYPE(float _Complex, SHMVIEW_COMPLEX64);
    TYPE(double _Complex, SHMVIEW_COMPLEX128);
    TYPE(_Bool, SHMVIEW_BOOL);
    TYPE(char, SHMVIEW_CHAR);
    TYPE(signed char, SHMVIEW_INT8);
    TYPE(unsigned char, SHMVIEW_UINT8);
}
END_TEST

START_TEST(type_of_the_view)
{
    struct shmview_view v = matrix(SHMVIEW_INT32, 4, 3, 4);
    ck_assert(SHMVIEW_IS(int, &v));
    ck_assert(SHMVIEW_IS(const int32_t, &v));
    ck_assert(!SHMVIEW_IS(unsigned, &v));
    ck_assert(!SHMVIEW_IS(float, &v));
    ck_assert(!SHMVIEW_IS(short, &v));
    ck_assert(SHMVIEW_IS_ND(int, &v, 2));
    ck_assert(!SHMVIEW_IS_ND(int, &v, 1));
    ck_assert(!SHMVIEW_IS_ND(float, &v, 2));
    ck_assert_ptr_eq(SHMVIEW_TRY2(int, &v, 1, 2), (int *)(void *)memory + 6);
    ck_assert_ptr_null(SHMVIEW_TRY2(float, &v, 1, 2));
    ck_assert_ptr_null(SHMVIEW_CHECKED_DATA(float, &v));
    ck_assert_ptr_null(SHMVIEW_CHECKED_ROW(float, &v, 0));
    ck_assert_ptr_null(SHMVIEW_CHECKED_STRIDED(float, &v, 0).data);
    v.dtype |= SHMVIEW_SWAPPED;
    ck_assert(!SHMVIEW_IS(int, &v));
    ck_assert_ptr_null(SHMVIEW_TRY2(int, &v, 1, 2));
}
END_TEST

/* Access as const may read a read-only view; other access fails. */
START_TEST(read_only)
{
    struct shmview_view v = matrix(SHMVIEW_FLOAT32, 4, 3, 4);
    const float *p = SHMVIEW_TRY2(const float, &v, 2, 3);
    ck_assert_ptr_eq(p, (float *)(void *)memory + 11);
    v.flags = SHMVIEW_VIEW_READ_ONLY;
    ck_assert_ptr_eq(SHMVIEW_TRY2(const float, &v, 2, 3), p);
    ck_assert(SHMVIEW_TRY2(const volatile float, &v, 2, 3) == p);
    ck_assert_ptr_null(SHMVIEW_TRY2(float, &v, 2, 3));
    ck_assert(!SHMVIEW_TRY2(volatile float, &v, 2, 3));
    ck_assert(SHMVIEW_IS(const float, &v) && !SHMVIEW_IS(float, &v));
    ck_assert_ptr_nonnull(SHMVIEW_CHECKED_DATA(const float, &v));
    ck_assert_ptr_null(SHMVIEW_CHECKED_DATA(float, &v));
    ck_assert_ptr_null(SHMVIEW_CHECKED_ROW(float, &v, 0));
    ck_assert_ptr_null(SHMVIEW_CHECKED_STRIDED(float, &v, 0).data);
}
END_TEST

START_TEST(indirect)
{
    struct shmview_view v = matrix(SHMVIEW_FLOAT32, 4, 3, 4);
    const ptrdiff_t index[] = {1, 1};
    ck_assert(inline_is_contiguous(&v) && inline_rows_contiguous(&v));
    v.flags = SHMVIEW_VIEW_INDIRECT;
    ck_assert(!inline_is_contiguous(&v) && !inline_rows_contiguous(&v));
    ck_assert(!SHMVIEW_IS(const float, &v));
    ck_assert_ptr_null(SHMVIEW_TRY2(const float, &v, 1, 1));
    ck_assert_ptr_null(SHMVIEW_TRY(const float, &v, index));
    ck_assert_ptr_null(SHMVIEW_CHECKED_DATA(const float, &v));
    ck_assert_ptr_null(SHMVIEW_CHECKED_ROW(const float, &v, 1));
    ck_assert_int_eq(SHMVIEW_CHECKED_STRIDED(const float, &v, 1).n, 0);
    v.ndim = 0;
    ck_assert(!inline_is_contiguous(&v) && !inline_rows_contiguous(&v));
    v.ndim = 1;
    ck_assert_ptr_null(SHMVIEW_TRY1(const float, &v, 1));
    v.ndim = 3;
    v.shape[2] = 1;
    ck_assert_ptr_null(SHMVIEW_TRY3(const float, &v, 1, 1, 0));
    v.nbytes = 0;
    ck_assert(!inline_is_contiguous(&v));
}
END_TEST

START_TEST(arguments_are_used_once)
{
    struct shmview_view views[2] = {matrix(SHMVIEW_FLOAT32, 4, 3, 4)}, *v = views;
    ptrdiff_t i = 0, j = 0;
    ck_assert_ptr_eq(SHMVIEW_TRY2(float, v++, i++, j++), memory);
    ck_assert_ptr_eq(v, views + 1);
    ck_assert_int_eq(i + j, 2);
    ck_assert_ptr_eq(SHMVIEW_TRY2(float, views + 0, 1 + 1, 0 + 3), (float *)(void *)memory + 11);
}
END_TEST

/* --- Indices ------------------------------------------------------------- */

static struct shmview_view random_view(uint64_t *seed, uint32_t ndim)
{
    struct shmview_view v = {
        .data = memory + 2048, .dtype = SHMVIEW_INT16, .itemsize = 2, .ndim = ndim, .nbytes = 2};
    ptrdiff_t step = 2;
    for (uint32_t d = ndim; d-- > 0;) {
        v.shape[d] = (ptrdiff_t)(unit_random(seed) % 5);
        v.strides[d] = unit_random(seed) % 3 ? step : (ptrdiff_t)(unit_random(seed) % 65) - 32;
        step *= v.shape[d];
        v.nbytes *= (uint64_t)v.shape[d];
    }
    if (v.nbytes == 0 && ndim) /* without elements the strides do not matter */
        v.strides[unit_random(seed) % ndim] = unit_random(seed) % 2 ? PTRDIFF_MAX : PTRDIFF_MIN;
    return v;
}

/* Returns an index near the bounds, or far outside. */
static ptrdiff_t random_index(uint64_t *seed, ptrdiff_t n)
{
    static const ptrdiff_t far[] = {PTRDIFF_MIN, PTRDIFF_MAX, INT32_MIN, (ptrdiff_t)1 << 32};
    uint64_t kind = unit_random(seed) % 16;
    return kind < 4 ? far[kind] : (ptrdiff_t)(kind % 8) - 1 + (kind == 15 ? n : 0);
}

static unsigned char *expected_at(const struct shmview_view *v, const ptrdiff_t *index)
{
    for (uint32_t d = 0; d < v->ndim; d++)
        if (index[d] < 0 || index[d] >= v->shape[d])
            return NULL;
    unsigned char *p = v->data;
    for (uint32_t d = 0; d < v->ndim; d++)
        p += index[d] * v->strides[d];
    return p;
}

START_TEST(indices)
{
    uint64_t seed = 0x5eed5eed5eed5eed;
    unsigned n_inside = 0;
    for (int n = 0; n < 40000; n++) {
        uint32_t ndim = (uint32_t)(unit_random(&seed) % 5);
        struct shmview_view v = random_view(&seed, ndim);
        ptrdiff_t i[4];
        for (int d = 0; d < 4; d++)
            i[d] = random_index(&seed, v.shape[d]);
        unsigned char *p = expected_at(&v, i);
        n_inside += p && ndim;
        ck_assert_ptr_eq(SHMVIEW_TRY(int16_t, &v, i), p);
        ck_assert_ptr_eq(SHMVIEW_TRY1(int16_t, &v, i[0]), ndim == 1 ? p : NULL);
        ck_assert_ptr_eq(SHMVIEW_TRY2(int16_t, &v, i[0], i[1]), ndim == 2 ? p : NULL);
        ck_assert_ptr_eq(SHMVIEW_TRY3(int16_t, &v, i[0], i[1], i[2]), ndim == 3 ? p : NULL);
        ck_assert_ptr_eq(exported_try_at(&v, SHMVIEW_INT16, 0, i), p);
        ck_assert_ptr_eq(exported_try_at1(&v, SHMVIEW_INT16, 0, i[0]), ndim == 1 ? p : NULL);
        ck_assert_ptr_eq(exported_try_at2(&v, SHMVIEW_INT16, 0, i[0], i[1]), ndim == 2 ? p : NULL);
        ck_assert_ptr_eq(exported_try_at3(&v, SHMVIEW_INT16, 0, i[0], i[1], i[2]),
                         ndim == 3 ? p : NULL);
    }
    ck_assert_uint_gt(n_inside, 800);
}
END_TEST

/* --- Rows and the whole -------------------------------------------------- */

START_TEST(rows)
{
    uint64_t seed = 0x0102030405060708;
    unsigned n_rows = 0, n_elements = 0;
    for (int n = 0; n < 40000; n++) {
        uint32_t ndim = (uint32_t)(unit_random(&seed) % 4);
        struct shmview_view v = random_view(&seed, ndim);
        ptrdiff_t i = random_index(&seed, v.shape[0]), j = random_index(&seed, v.shape[1]);
        bool in_rows = ndim == 2 && i >= 0 && i < v.shape[0];
        unsigned char *row = v.data + (in_rows && v.nbytes ? i * v.strides[0] : 0);
        n_rows += in_rows;

        const int16_t *p = SHMVIEW_CHECKED_ROW(const int16_t, &v, i);
        ck_assert_ptr_eq(p, in_rows && inline_rows_contiguous(&v) ? row : NULL);
        ck_assert_ptr_eq(exported_try_row(&v, SHMVIEW_INT16, 0, i), p);

        row_t s = SHMVIEW_CHECKED_STRIDED(int16_t, &v, i);
        ck_assert_ptr_eq(s.data, in_rows || (ndim == 1 && i == 0) ? row : NULL);
        ck_assert_int_eq(s.n, in_rows ? v.shape[1] : s.data ? v.shape[0] : 0);
        ck_assert_int_eq(s.stride, in_rows ? v.strides[1] : s.data ? v.strides[0] : 0);
        row_t e = exported_try_strided(&v, SHMVIEW_INT16, 0, i);
        ck_assert(e.data == s.data && e.n == s.n && e.stride == s.stride);

        int16_t *element = SHMVIEW_TRY_ELEM(int16_t, s, j);
        bool is_in = j >= 0 && j < s.n;
        ck_assert_ptr_eq(element, is_in ? s.data + j * s.stride : NULL);
        ck_assert_ptr_eq(exported_try_elem(s, j), element);
        n_elements += is_in;
    }
    ck_assert_uint_gt(n_rows, 400);
    ck_assert_uint_gt(n_elements, 200);
}
END_TEST

START_TEST(whole)
{
    uint64_t seed = 0x1111111122222222;
    unsigned n_contiguous = 0;
    for (int n = 0; n < 20000; n++) {
        struct shmview_view v = random_view(&seed, (uint32_t)(unit_random(&seed) % 4));
        unsigned char *p = inline_is_contiguous(&v) ? v.data : NULL;
        n_contiguous += p != NULL;
        ck_assert_ptr_eq(SHMVIEW_CHECKED_DATA(int16_t, &v), p);
        ck_assert_ptr_eq(exported_try_data(&v, SHMVIEW_INT16, 0), p);
    }
    ck_assert_uint_gt(n_contiguous, 2000);
    ck_assert_uint_lt(n_contiguous, 18000);
}
END_TEST

START_TEST(fits_as_a_symbol)
{
    for (uint32_t bits = 0; bits < 64; bits++) {
        struct shmview_view v = matrix(bits & 1 ? SHMVIEW_FLOAT32 : SHMVIEW_INT32, 4, 1, 1);
        v.flags = bits >> 1 & 3;
        uint32_t dtype = bits & 8 ? SHMVIEW_FLOAT32 : SHMVIEW_INT32, without = bits >> 4 & 3;
        int fits = v.dtype == dtype && !(v.flags & SHMVIEW_VIEW_INDIRECT) && !(v.flags & without);
        ck_assert_int_eq(inline_fits(&v, dtype, without), fits);
        ck_assert_int_eq(exported_fits(&v, dtype, without), fits);
        for (uint32_t ndim = 0; ndim < 4; ndim++) {
            ck_assert_int_eq(inline_fits_nd(&v, dtype, without, ndim), fits && ndim == 2);
            ck_assert_int_eq(exported_fits_nd(&v, dtype, without, ndim), fits && ndim == 2);
        }
    }
}
END_TEST

UNIT_MAIN("element_typed", UNIT_TEST(types), UNIT_TEST(type_of_the_view), UNIT_TEST(read_only),
          UNIT_TEST(indirect), UNIT_TEST(arguments_are_used_once), UNIT_TEST(indices),
          UNIT_TEST(rows), UNIT_TEST(whole), UNIT_TEST(fits_as_a_symbol))
