/* SPDX-License-Identifier: Apache-2.0 */
/* element.hpp: typed arrays over wrapped memory read and write the elements that plain
 * arithmetic on that memory finds. Types that do not fit are refused; rows, columns, iterators
 * and spans cover exactly their elements. */
#include "support.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

using shmview::as;
using shmview::contiguous;
using shmview::dtype_of;
using shmview::is_element;
using shmview::strided;

alignas(64) static std::int32_t numbers[64];

/* the segment holds numbers: 0, 1, 2 ... */
static void begin(shmview::segment &all, unsigned flags = 0)
{
    std::iota(std::begin(numbers), std::end(numbers), 0);
    OK(shmview::wrap(numbers, sizeof numbers, all, flags));
}

static shmview_view view_of(const shmview::segment &all, std::vector<std::int64_t> shape,
                            std::vector<std::int64_t> strides = {}, std::uint64_t offset = 0,
                            const char *format = "i", std::uint32_t flags = 0)
{
    shmview_view_spec spec{};
    spec.format = format;
    spec.offset = offset;
    spec.flags = flags;
    spec.ndim = static_cast<std::uint32_t>(shape.size());
    spec.shape = shape.data();
    spec.strides = strides.empty() ? nullptr : strides.data();
    return make_view(all, spec);
}

/* --- Types --------------------------------------------------------------- */

static_assert(dtype_of<std::int8_t> == SHMVIEW_INT8 && dtype_of<std::uint8_t> == SHMVIEW_UINT8);
static_assert(dtype_of<short> == SHMVIEW_INT16 && dtype_of<unsigned short> == SHMVIEW_UINT16);
static_assert(dtype_of<int> == SHMVIEW_INT32 && dtype_of<unsigned> == SHMVIEW_UINT32);
static_assert(dtype_of<long> == SHMVIEW_INT64 && dtype_of<unsigned long> == SHMVIEW_UINT64);
static_assert(dtype_of<long long> == SHMVIEW_INT64);
static_assert(dtype_of<unsigned long long> == SHMVIEW_UINT64);
static_assert(dtype_of<float> == SHMVIEW_FLOAT32 && dtype_of<double> == SHMVIEW_FLOAT64);
static_assert(dtype_of<long double> == SHMVIEW_LONGDOUBLE && dtype_of<bool> == SHMVIEW_BOOL);
static_assert(dtype_of<std::complex<float>> == SHMVIEW_COMPLEX64);
static_assert(dtype_of<std::complex<double>> == SHMVIEW_COMPLEX128);
static_assert(dtype_of<char> == SHMVIEW_CHAR && dtype_of<signed char> == SHMVIEW_INT8);
static_assert(dtype_of<const volatile float> == SHMVIEW_FLOAT32);
static_assert(!is_element<void *> && !is_element<wchar_t> && !is_element<char16_t>);
static_assert(!is_element<std::complex<long double>> && !is_element<shmview_strided_row>);
static_assert(std::is_convertible_v<strided<int, 2>, strided<const int, 2>>);
static_assert(!std::is_convertible_v<strided<const int, 2>, strided<int, 2>>);
static_assert(std::is_convertible_v<shmview::span<int>, shmview::span<const int>>);
static_assert(!std::is_convertible_v<shmview::span<const int>, shmview::span<int>>);
static_assert(std::is_trivially_copyable_v<strided<int, 3>>);
static_assert(strided<int, 3>::rank() == 3);

START_TEST(only_what_fits)
{
    shmview::segment all;
    begin(all);
    shmview_view view = view_of(all, {8, 8});
    ck_assert((as<int, 2>(view).has_value()));
    ck_assert((as<const int, 2>(view).has_value()));
    ck_assert((!as<int, 1>(view)));
    ck_assert((!as<int, 3>(view)));
    ck_assert((!as<unsigned, 2>(view)));
    ck_assert((!as<float, 2>(view)));
    ck_assert((!as<long, 2>(view)));
    ck_assert(contiguous<int>(view).has_value());
    ck_assert(!contiguous<unsigned>(view));
    shmview_view other = view_of(all, {8, 8}, {}, 0, ">i");
    ck_assert((!as<int, 2>(other)));
    ck_assert(!contiguous<int>(other));
    view.flags |= SHMVIEW_VIEW_INDIRECT;
    ck_assert((!as<const int, 2>(view)));
    ck_assert(!contiguous<const int>(view));
}
END_TEST

START_TEST(read_only_is_const)
{
    shmview::segment all;
    begin(all, SHMVIEW_WRAP_READ_ONLY);
    shmview_view view = view_of(all, {8, 8});
    ck_assert((!as<int, 2>(view)));
    ck_assert(!contiguous<int>(view));
    ck_assert_int_eq((*as<const int, 2>(view))(7, 7), 63);
    ck_assert_int_eq((*contiguous<const int>(view))[63], 63);
    begin(all);
    view = view_of(all, {8, 8}, {}, 0, "i", SHMVIEW_VIEW_READ_ONLY);
    ck_assert((!as<int, 2>(view)));
    ck_assert((as<const int, 2>(view).has_value()));
}
END_TEST

/* --- Elements ------------------------------------------------------------ */

START_TEST(elements)
{
    shmview::segment all;
    begin(all);
    auto a = *as<int, 3>(view_of(all, {2, 3, 4}, {128, -32, 4}, 64));
    ck_assert_int_eq(a.extent(0), 2);
    ck_assert_int_eq(a.extent(1), 3);
    ck_assert_int_eq(a.stride(1), -32);
    ck_assert_uint_eq(a.size(), 24);
    ck_assert_ptr_eq(a.data_handle(), numbers + 16);
    for (int i = 0; i < 2; i++)
        for (unsigned j = 0; j < 3; j++)
            for (long k = 0; k < 4; k++) {
                int expected = 16 + 32 * i - 8 * static_cast<int>(j) + static_cast<int>(k);
                ck_assert_int_eq(a(i, j, k), expected);
                ck_assert_int_eq(a[i][j][k], expected);
                ck_assert_int_eq(a.row(i).row(j)[k], expected);
                ck_assert_ptr_eq(a.try_at(i, j, k), numbers + expected);
            }
    a(1, 2, 3) = -1;
    ck_assert_int_eq(numbers[16 + 32 - 16 + 3], -1);
}
END_TEST

START_TEST(checked_elements)
{
    shmview::segment all;
    begin(all);
    auto a = *as<const int, 2>(view_of(all, {3, 4}));
    for (std::ptrdiff_t i = -2; i < 6; i++)
        for (std::ptrdiff_t j = -2; j < 6; j++) {
            bool inside = i >= 0 && i < 3 && j >= 0 && j < 4;
            ck_assert_ptr_eq(a.try_at(i, j), inside ? numbers + 4 * i + j : nullptr);
        }
    ck_assert_ptr_null(a.try_at(PTRDIFF_MAX, 0));
    ck_assert_ptr_null(a.try_at(0, PTRDIFF_MIN));
    ck_assert_ptr_null(a.try_at(0, SIZE_MAX));
    ck_assert_ptr_null((strided<int, 1>().try_at(0)));
}
END_TEST

START_TEST(no_dimension_and_eight)
{
    shmview::segment all;
    begin(all);
    auto one = *as<int, 0>(view_of(all, {}, {}, 20));
    ck_assert_int_eq(one(), 5);
    ck_assert_ptr_eq(one.try_at(), numbers + 5);
    ck_assert_uint_eq(one.size(), 1);
    ck_assert(one.rows_contiguous());
    auto eight = *as<int, 8>(view_of(all, {2, 2, 2, 1, 2, 2, 2, 1}));
    ck_assert_int_eq(eight(1, 0, 1, 0, 0, 1, 1, 0), 43);
    ck_assert_uint_eq(eight.size(), 64);
}
END_TEST

/* Writes and reads elements of a type other than int32, in memory of their own. */
template <class T> static void write_and_read(const char *format, T value)
{
    alignas(16) T memory[3] = {};
    shmview::segment wrapped;
    OK(shmview::wrap(memory, sizeof memory, wrapped));
    auto a = *as<T, 1>(cast_view(wrapped, format));
    ck_assert_int_eq(a.extent(0), 3);
    a(1) = value;
    ck_assert(memory[1] == value && memory[0] == T() && memory[2] == T());
}

START_TEST(every_type)
{
    write_and_read<std::int8_t>("b", -3);
    write_and_read<std::uint8_t>("B", 200);
    write_and_read<std::int16_t>("h", -30000);
    write_and_read<std::uint16_t>("H", 60000);
    write_and_read<std::uint32_t>("I", 4000000000u);
    write_and_read<long>("q", -(1L << 40));
    write_and_read<unsigned long long>("Q", 1ull << 63);
    write_and_read<float>("f", 1.5f);
    write_and_read<double>("d", -0.1);
    write_and_read<long double>("g", 0.1L);
    write_and_read<std::complex<float>>("Zf", {1, -2});
    write_and_read<std::complex<double>>("Zd", {3, 4});
    write_and_read<bool>("?", true);
    write_and_read<char>("c", 'x');
}
END_TEST

/* --- Walking ------------------------------------------------------------- */

template <class T> static int sum_of(strided<const T, 2> matrix)
{
    int sum = 0;
    for (auto row : matrix)
        for (const T &x : row)
            sum += x;
    return sum;
}

START_TEST(rows_and_columns)
{
    shmview::segment all;
    begin(all);
    auto matrix = *as<int, 2>(view_of(all, {8, 8}));
    auto columns = *as<int, 2>(view_of(all, {8, 8}, {4, 32}));
    auto same = *as<int, 2>(view_of(all, {3, 8}, {0, 4}));
    ck_assert_int_eq(sum_of<int>(matrix), 2016);
    ck_assert_int_eq(sum_of<int>(columns), 2016);
    ck_assert_int_eq(sum_of<int>(same), 3 * 28);
    ck_assert(matrix.rows_contiguous() && !columns.rows_contiguous());
    int expected = 24;
    for (int &x : matrix.row_span(3))
        ck_assert_ptr_eq(&x, numbers + expected++);
    ck_assert_int_eq(expected, 32);
    auto column = columns.row(5);
    ck_assert_int_eq(std::accumulate(column.begin(), column.end(), 0), 8 * 5 + 8 * 28);
}
END_TEST

/* What <algorithm> requires of a random-access iterator. */
START_TEST(iterators)
{
    shmview::segment all;
    begin(all);
    auto back = *as<int, 1>(view_of(all, {16}, {-16}, 240));
    auto first = back.begin(), last = back.end();
    ck_assert_int_eq(last - first, 16);
    ck_assert(first < last && last > first && first <= first && last >= last && first != last);
    ck_assert_int_eq(*first, 60);
    ck_assert_int_eq(first[2], 52);
    ck_assert_int_eq(*(first + 3), 48);
    ck_assert_int_eq(*(1 + first), 56);
    ck_assert_int_eq(*(last - 1), 0);
    ck_assert_int_eq(*first++, 60);
    ck_assert_int_eq(*++first, 52);
    ck_assert_int_eq(*first--, 52);
    ck_assert_int_eq(*--first, 60);
    std::sort(back.begin(), back.end());
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(numbers[60 - 4 * i], 4 * i);
    ck_assert_int_eq(numbers[61], 61); /* no element in between has changed */
    ck_assert(std::binary_search(back.begin(), back.end(), 20));
    std::iota(back.begin(), back.end(), 100);
    ck_assert_int_eq(numbers[0], 115);
    auto same = *as<int, 1>(view_of(all, {7}, {0}));
    ck_assert_int_eq(std::count(same.begin(), same.end(), 115), 7);
}
END_TEST

START_TEST(nothing_to_walk)
{
    shmview::segment all;
    begin(all);
    int n = 0;
    auto rows = *as<int, 2>(view_of(all, {5, 0}, {INT64_MAX - 3, 4}));
    for (auto row : rows) {
        ck_assert(row.empty());
        for (int x : row)
            n += 1 + x;
    }
    auto none = *as<int, 2>(view_of(all, {0, 5}));
    for (auto row : none)
        n += 1 + row[0];
    auto span = *contiguous<int>(view_of(all, {0}));
    for (int x : span)
        n += 1 + x;
    ck_assert_int_eq(n, 0);
    ck_assert(rows.empty());
}
END_TEST

START_TEST(spans)
{
    shmview::segment all;
    begin(all);
    auto span = *contiguous<int>(view_of(all, {2, 3, 4}, {}, 16));
    ck_assert_ptr_eq(span.data(), numbers + 4);
    ck_assert_uint_eq(span.size(), 24);
    ck_assert_uint_eq(span.size_bytes(), 96);
    ck_assert_int_eq(span[23], 27);
    ck_assert_int_eq(std::accumulate(span.begin(), span.end(), 0), 24 * 4 + 276);
    shmview::span<const int> reader = span;
    ck_assert_ptr_eq(reader.end(), numbers + 28);
    ck_assert(!contiguous<int>(view_of(all, {4}, {8})));
    ck_assert(!contiguous<int>(view_of(all, {4}, {-4}, 12)));
    ck_assert(shmview::span<int>().empty());
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(only_what_fits),
        SUITE_TEST(read_only_is_const),
        SUITE_TEST(elements),
        SUITE_TEST(checked_elements),
        SUITE_TEST(no_dimension_and_eight),
        SUITE_TEST(every_type),
        SUITE_TEST(rows_and_columns),
        SUITE_TEST(iterators),
        SUITE_TEST(nothing_to_walk),
        SUITE_TEST(spans),
        SUITE_END,
    };
    return suite_main("cpp_arrays", tests);
}
