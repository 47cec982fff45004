/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the kernels for AVX2 give the same results as those for any processor, bit by bit. */
#include <shmview/element.h>

#include "client/whole/kernels.h"
#include "common/base/util.h"
#include "unit/unit.h"

#if defined __x86_64__

#define MOST (3 * BLOCK + 7)

static const uint32_t dtypes[] = {SHMVIEW_INT8,    SHMVIEW_INT16,  SHMVIEW_INT32,  SHMVIEW_INT64,
                                  SHMVIEW_UINT8,   SHMVIEW_UINT16, SHMVIEW_UINT32, SHMVIEW_UINT64,
                                  SHMVIEW_FLOAT32, SHMVIEW_FLOAT64};
static const size_t bytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};

/* Not aligned, because no element needs to be. */
static unsigned char memory[2][8 * MOST + 1];
static uint64_t state;

static uint64_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 16;
}

/* Fills both rows with equal elements: random bits, among which are NaN and infinities, or numbers
 * of a usual size. */
static void fill(uint32_t dtype, size_t size, size_t n, bool usual)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = next() << 32 ^ next();
        float f = (float)(int64_t)bits / 3e9f;
        double d = (double)(int64_t)bits / 3e9;
        const void *from = &bits;
        if (usual && dtype == SHMVIEW_FLOAT32)
            from = &f;
        else if (usual && dtype == SHMVIEW_FLOAT64)
            from = &d;
        memcpy(memory[0] + 1 + i * size, from, size);
        memcpy(memory[1] + 1 + i * size, from, size);
    }
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static void check_sums(uint32_t dtype, size_t size, bool usual)
{
    struct sum a = SUM_OF_NOTHING, b = SUM_OF_NOTHING;
    size_t n = 1 + next() % MOST;
    fill(dtype, size, n, usual);
    kernel_to_sum_plain(dtype)(&a, memory[0] + 1, n);
    kernel_to_sum_avx2(dtype)(&b, memory[0] + 1, n);
    ck_assert_mem_eq(&a.min, &b.min, sizeof a.min);
    ck_assert_mem_eq(&a.max, &b.max, sizeof a.max);
    if (a.total == a.total || b.total == b.total) /* of two NaN the bits may differ */
        ck_assert_mem_eq(&a.total, &b.total, sizeof a.total);
    if (a.rest == a.rest || b.rest == b.rest)
        ck_assert_mem_eq(&a.rest, &b.rest, sizeof a.rest);
    ck_assert_uint_eq(a.n_nan, b.n_nan);
    ck_assert(a.whole == b.whole && a.min_whole == b.min_whole && a.max_whole == b.max_whole);
}

START_TEST(sums)
{
    state = 1;
    for (size_t k = 0; k < ARRAY_LEN(dtypes); k++)
        for (int round = 0; has_avx2() && round < 40; round++)
            check_sums(dtypes[k], bytes[k], round % 4);
}
END_TEST

static void check_differences(size_t i, size_t k, bool usual)
{
    kernel_differ *plain = kernel_to_compare_plain(dtypes[i], dtypes[k]);
    kernel_differ *avx2 = kernel_to_compare_avx2(dtypes[i], dtypes[k]);
    size_t n = 1 + next() % MOST;
    ck_assert_int_eq(!plain, !avx2);
    if (!plain)
        return;
    fill(dtypes[i], bytes[i], n, usual);
    const void *a = memory[0] + 1, *b = memory[1] + 1;
    ck_assert_uint_eq(plain(a, b, n), avx2(a, b, n));
    memory[1][1 + next() % n * bytes[k]] ^= 1; /* one element differs */
    ck_assert_uint_eq(plain(a, b, n), avx2(a, b, n));
}

START_TEST(differences)
{
    state = 2;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        for (size_t k = 0; k < ARRAY_LEN(dtypes); k++)
            for (int round = 0; has_avx2() && round < 20; round++)
                check_differences(i, k, round % 4);
}
END_TEST

static void check_conversions(uint32_t to_dtype, uint32_t from_dtype, size_t size, bool usual)
{
    static unsigned char to[2][4 * MOST];
    struct kernel_conversion plain = kernel_to_convert_plain(to_dtype, from_dtype);
    struct kernel_conversion avx2 = kernel_to_convert_avx2(to_dtype, from_dtype);
    size_t n = 1 + next() % MOST;
    fill(from_dtype, size, n, usual); /* random bits soon have a value that is too large */
    memset(to, 0x5a, sizeof to);
    ck_assert_int_eq(plain.is_total, avx2.is_total);
    size_t done = plain.run(to[0], 4, memory[0] + 1, (ptrdiff_t)size, n);
    ck_assert_uint_eq(done, avx2.run(to[1], 4, memory[0] + 1, (ptrdiff_t)size, n));
    ck_assert_mem_eq(to[0], to[1], sizeof to[0]); /* nothing is written after the last one */
}

START_TEST(conversions)
{
    state = 7;
    ck_assert_ptr_null(kernel_to_convert_avx2(SHMVIEW_INT64, SHMVIEW_FLOAT64).run);
    for (int round = 0; has_avx2() && round < 40; round++) {
        check_conversions(SHMVIEW_FLOAT32, SHMVIEW_FLOAT64, 8, round % 4);
        check_conversions(SHMVIEW_INT32, SHMVIEW_FLOAT32, 4, round % 4);
        check_conversions(SHMVIEW_FLOAT32, SHMVIEW_INT32, 4, round % 4);
    }
}
END_TEST

/* One element at a time among numbers that float32 has, at each place of a row. */
START_TEST(integers_to_floats)
{
    static const int32_t numbers[] = {(1 << 24) + 1, -(1 << 24) - 1, INT32_MAX,
                                      INT32_MIN,     1 << 24,        -(1 << 24)};
    struct kernel_conversion plain = kernel_to_convert_plain(SHMVIEW_FLOAT32, SHMVIEW_INT32);
    struct kernel_conversion avx2 = kernel_to_convert_avx2(SHMVIEW_FLOAT32, SHMVIEW_INT32);
    int32_t from[75];
    float to[2][75];
    for (size_t k = 0; has_avx2() && k < ARRAY_LEN(numbers); k++)
        for (size_t at = 0; at < 75; at++) {
            for (size_t i = 0; i < ARRAY_LEN(from); i++)
                from[i] = (int32_t)i - 70;
            from[at] = numbers[k];
            memset(to, 0x5a, sizeof to);
            size_t done = plain.run(to[0], 4, from, 4, 75);
            ck_assert_uint_eq(done, avx2.run(to[1], 4, from, 4, 75));
            ck_assert_uint_eq(done, k < 3 ? at : 75);
            ck_assert_mem_eq(to[0], to[1], sizeof to[0]);
        }
}
END_TEST

/* One element at a time among whole numbers, at each place of a row. */
START_TEST(floats_to_integers)
{
    static const float numbers[] = {-0x1p31f, 0x1p31f,  -0x1.000002p31f, 0x1.fffffep30f,
                                    -0.0f,    0.5f,     -INFINITY,       INFINITY,
                                    NAN,      0x1p-149f};
    struct kernel_conversion plain = kernel_to_convert_plain(SHMVIEW_INT32, SHMVIEW_FLOAT32);
    struct kernel_conversion avx2 = kernel_to_convert_avx2(SHMVIEW_INT32, SHMVIEW_FLOAT32);
    float from[2 * 75];
    int32_t to[2][75];
    for (size_t k = 0; has_avx2() && k < ARRAY_LEN(numbers); k++)
        for (size_t at = 0; at < 75; at++)
            for (size_t step = 1; step <= 2; step++) {
                for (size_t i = 0; i < ARRAY_LEN(from); i++)
                    from[i] = (float)i - 70;
                from[at * step] = numbers[k];
                memset(to, 0x5a, sizeof to);
                size_t done = plain.run(to[0], 4, from, (ptrdiff_t)(4 * step), 75);
                ck_assert_uint_eq(done, avx2.run(to[1], 4, from, (ptrdiff_t)(4 * step), 75));
                ck_assert_uint_eq(done, k == 0 || k == 3 || k == 4 ? 75 : at);
                ck_assert_mem_eq(to[0], to[1], sizeof to[0]);
            }
}
END_TEST

UNIT_MAIN("kernels_avx2", UNIT_TEST(sums), UNIT_TEST(differences), UNIT_TEST(conversions),
          UNIT_TEST(integers_to_floats), UNIT_TEST(floats_to_integers))

#else

int main(void)
{
    return 77;
}

#endif
