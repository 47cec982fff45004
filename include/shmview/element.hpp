/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/element.hpp - views for C++17, as arrays of a type that is checked once.
 *
 *     if (auto m = shmview::as<float, 2>(view))
 *         for (auto row : *m)
 *             for (float &x : row)
 *                 x *= 2;
 *
 * A shmview_view has its type and its dimensions as data. These templates compare them once with
 * types that the compiler knows, and return an array that needs no further test of the type. The
 * result is an empty std::optional if the view does not fit. Use a const element type for a view
 * that may be read-only.
 *
 *     as<T, N>(view)       N dimensions with any strides
 *     contiguous<T>(view)  pointer and length, if there are no gaps
 *     a.row_span(i)        pointer and length of a row, if rows of the matrix have no gaps
 *
 * Arrays are plain values that own nothing: they are valid as long as their view. Give an array a
 * name before a loop. In "for (float x : *contiguous<float>(view))" the optional is destroyed
 * before the first x, because C++17 does not extend its life. Indices are not checked, except by
 * try_at(). Hold the segment's lock. Nothing here throws, allocates, or needs exceptions or
 * run-time types. */
#ifndef SHMVIEW_ELEMENT_HPP
#define SHMVIEW_ELEMENT_HPP

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include <shmview/element.h>

namespace shmview
{

/* --- Types --------------------------------------------------------------- */

namespace detail
{
template <class T, class... U> inline constexpr bool is_one_of = (std::is_same_v<T, U> || ...);

template <class T> constexpr std::uint32_t dtype() noexcept
{
    constexpr std::uint32_t by_size = sizeof(T) == 1   ? SHMVIEW_INT8
                                      : sizeof(T) == 2 ? SHMVIEW_INT16
                                      : sizeof(T) == 4 ? SHMVIEW_INT32
                                                       : SHMVIEW_INT64;
    if constexpr (is_one_of<T, signed char, short, int, long, long long>)
        return by_size;
    else if constexpr (is_one_of<T, unsigned char, unsigned short, unsigned, unsigned long,
                                 unsigned long long>)
        return by_size + 1;
    else if constexpr (is_one_of<T, bool>)
        return SHMVIEW_BOOL;
    else if constexpr (is_one_of<T, char>)
        return SHMVIEW_CHAR;
    else if constexpr (is_one_of<T, float>)
        return SHMVIEW_FLOAT32;
    else if constexpr (is_one_of<T, double>)
        return SHMVIEW_FLOAT64;
    else if constexpr (is_one_of<T, long double>)
        return SHMVIEW_LONGDOUBLE;
    else if constexpr (is_one_of<T, std::complex<float>>)
        return SHMVIEW_COMPLEX64;
    else if constexpr (is_one_of<T, std::complex<double>>)
        return SHMVIEW_COMPLEX128;
    else
        return SHMVIEW_STRUCT;
}
} // namespace detail

/* Whether elements of a view can have the type T, const or not. */
template <class T>
inline constexpr bool is_element = detail::dtype<std::remove_cv_t<T>>() != SHMVIEW_STRUCT;

/* The enum shmview_dtype of T. It does not compile for other types. char is text (c); signed char
 * and unsigned char are numbers (b, B). */
template <class T, std::enable_if_t<is_element<T>, int> = 0>
inline constexpr std::uint32_t dtype_of = detail::dtype<std::remove_cv_t<T>>();

/* --- Contiguous elements ------------------------------------------------- */

/* A pointer and a length, with the members of std::span that C++17 lacks. A span of T converts to
 * one of const T. */
template <class T> class span
{
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    template <class U, std::enable_if_t<std::is_same_v<const U, T>, int> = 0>
    constexpr span(const span<U> &other) noexcept : span(other.data(), other.size())
    {
    }
    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr std::size_t size_bytes() const noexcept
    {
        return size_ * sizeof(T);
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T &operator[](std::size_t i) const noexcept
    {
        return data_[i];
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* --- Elements at any strides --------------------------------------------- */

template <class T, std::size_t N> class strided;

/* Steps through the first dimension of an array. It leads to elements if that is the only
 * dimension, and otherwise to arrays of one dimension less. The iterator holds an index and not an
 * address, because with a stride of 0 all addresses are equal and a loop would not end. It holds a
 * copy of the array, so it is valid as long as the view. */
template <class T, std::size_t N> class strided_iterator
{
  public:
    using iterator_category =
        std::conditional_t<N == 1, std::random_access_iterator_tag, std::input_iterator_tag>;
    using value_type = std::conditional_t<N == 1, std::remove_cv_t<T>, strided<T, N - 1>>;
    using difference_type = std::ptrdiff_t;
    using pointer = std::conditional_t<N == 1, T *, void>;
    using reference = std::conditional_t<N == 1, T &, strided<T, N - 1>>;

    constexpr strided_iterator() noexcept = default;
    constexpr strided_iterator(const strided<T, N> &of, std::ptrdiff_t i) noexcept : of_(of), i_(i)
    {
    }
    constexpr reference operator*() const noexcept
    {
        return of_[i_];
    }
    constexpr reference operator[](std::ptrdiff_t n) const noexcept
    {
        return of_[i_ + n];
    }
    constexpr pointer operator->() const noexcept
    {
        static_assert(N == 1);
        return &of_[i_];
    }
    constexpr strided_iterator &operator+=(std::ptrdiff_t n) noexcept
    {
        i_ += n;
        return *this;
    }
    constexpr strided_iterator &operator-=(std::ptrdiff_t n) noexcept
    {
        return *this += -n;
    }
    constexpr strided_iterator &operator++() noexcept
    {
        return *this += 1;
    }
    constexpr strided_iterator &operator--() noexcept
    {
        return *this += -1;
    }
    constexpr strided_iterator operator++(int) noexcept
    {
        strided_iterator before = *this;
        ++*this;
        return before;
    }
    constexpr strided_iterator operator--(int) noexcept
    {
        strided_iterator before = *this;
        --*this;
        return before;
    }
    friend constexpr strided_iterator operator+(strided_iterator a, std::ptrdiff_t n) noexcept
    {
        return a += n;
    }
    friend constexpr strided_iterator operator+(std::ptrdiff_t n, strided_iterator a) noexcept
    {
        return a += n;
    }
    friend constexpr strided_iterator operator-(strided_iterator a, std::ptrdiff_t n) noexcept
    {
        return a -= n;
    }
    friend constexpr std::ptrdiff_t operator-(const strided_iterator &a,
                                              const strided_iterator &b) noexcept
    {
        return a.i_ - b.i_;
    }
    friend constexpr bool operator==(const strided_iterator &a, const strided_iterator &b) noexcept
    {
        return a.i_ == b.i_;
    }
    friend constexpr bool operator!=(const strided_iterator &a, const strided_iterator &b) noexcept
    {
        return a.i_ != b.i_;
    }
    friend constexpr bool operator<(const strided_iterator &a, const strided_iterator &b) noexcept
    {
        return a.i_ < b.i_;
    }
    friend constexpr bool operator>(const strided_iterator &a, const strided_iterator &b) noexcept
    {
        return b < a;
    }
    friend constexpr bool operator<=(const strided_iterator &a, const strided_iterator &b) noexcept
    {
        return !(b < a);
    }
    friend constexpr bool operator>=(const strided_iterator &a, const strided_iterator &b) noexcept
    {
        return !(a < b);
    }

  private:
    strided<T, N> of_;
    std::ptrdiff_t i_ = 0;
};

/* N dimensions of T with byte strides of any kind. It is like std::mdspan of C++23, but its strides
 * are in bytes, because the stride of a field need not be a multiple of the field's size.
 *
 * Indices are not checked, except by try_at(). Pass it by value, or keep a copy in the function
 * with the loop: then the compiler keeps the strides in registers. */
template <class T, std::size_t N> class strided
{
    static_assert(is_element<T>, "no element of a view is of this type");
    static_assert(N <= SHMVIEW_MAX_NDIM);
    using byte = std::conditional_t<std::is_const_v<T>, const unsigned char, unsigned char>;
    using numbers = std::array<std::ptrdiff_t, N>;

  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = strided_iterator<T, N>;

    constexpr strided() noexcept = default;
    constexpr strided(T *data, const numbers &extents, const numbers &strides) noexcept
        : data_(data), extents_(extents), strides_(strides)
    {
    }
    template <class U, std::enable_if_t<std::is_same_v<const U, T>, int> = 0>
    constexpr strided(const strided<U, N> &other) noexcept : data_(other.data_handle())
    {
        for (std::size_t d = 0; d < N; d++) {
            extents_[d] = other.extent(d);
            strides_[d] = other.stride(d);
        }
    }

    /* The number of dimensions. */
    static constexpr std::size_t rank() noexcept
    {
        return N;
    }
    /* The length of dimension d, in elements. */
    constexpr std::ptrdiff_t extent(std::size_t d) const noexcept
    {
        return extents_[d];
    }
    /* The bytes from one index of dimension d to the next; negative or 0 too. */
    constexpr std::ptrdiff_t stride(std::size_t d) const noexcept
    {
        return strides_[d];
    }
    /* The address of element [0, ..., 0]. */
    constexpr T *data_handle() const noexcept
    {
        return data_;
    }
    /* The number of elements. */
    constexpr std::size_t size() const noexcept
    {
        std::size_t n = 1;
        for (std::ptrdiff_t extent : extents_)
            n *= static_cast<std::size_t>(extent);
        return n;
    }
    constexpr bool empty() const noexcept
    {
        return size() == 0;
    }

    /* The element at N indices, which must lie inside the extents. */
    template <class... I> T &operator()(I... i) const noexcept
    {
        static_assert(sizeof...(I) == N, "as many indices as dimensions");
        static_assert((std::is_integral_v<I> && ...), "an index is an integer");
        return *at(offset(std::make_index_sequence<N>{}, static_cast<std::ptrdiff_t>(i)...));
    }
    /* The address of the element at N indices, or nullptr if an index lies outside the extents. */
    template <class... I> T *try_at(I... i) const noexcept
    {
        static_assert(sizeof...(I) == N, "as many indices as dimensions");
        const numbers index{static_cast<std::ptrdiff_t>(i)...};
        for (std::size_t d = 0; d < N; d++)
            if (index[d] < 0 || index[d] >= extents_[d])
                return nullptr;
        T *p = &(*this)(i...);
        SHMVIEW_NEVER(!p);
        return p;
    }

    /* Index i of the first dimension: an element of a one-dimensional array, otherwise an array of
     * the other dimensions. */
    decltype(auto) operator[](std::ptrdiff_t i) const noexcept
    {
        static_assert(N > 0);
        if constexpr (N == 1)
            return static_cast<T &>(*at(i * strides_[0]));
        else
            return row(i);
    }
    /* Index i of the first dimension, as an array of the other dimensions. */
    strided<T, N - 1> row(std::ptrdiff_t i) const noexcept
    {
        static_assert(N > 1, "an array of one dimension has elements, not rows");
        std::array<std::ptrdiff_t, N - 1> extents{}, strides{};
        for (std::size_t d = 1; d < N; d++) {
            extents[d - 1] = extents_[d];
            strides[d - 1] = strides_[d];
        }
        return {at(i * strides_[0]), extents, strides};
    }
    /* Iterators over the first dimension, for loops over elements or rows. */
    iterator begin() const noexcept
    {
        return {*this, 0};
    }
    iterator end() const noexcept
    {
        return {*this, extents_[0]};
    }

    /* Whether the elements of the last dimension follow each other without gaps, so that row_span()
     * may be used. */
    constexpr bool rows_contiguous() const noexcept
    {
        if constexpr (N == 0)
            return true;
        else
            return extents_[N - 1] <= 1 ||
                   strides_[N - 1] == static_cast<std::ptrdiff_t>(sizeof(T));
    }
    /* Row i of a matrix for which rows_contiguous() is true. A compiler can vectorise a loop over
     * it. */
    span<T> row_span(std::ptrdiff_t i) const noexcept
    {
        static_assert(N == 2);
        return {at(i * strides_[0]), static_cast<std::size_t>(extents_[1])};
    }

  private:
    T *at(std::ptrdiff_t offset) const noexcept
    {
        return reinterpret_cast<T *>(reinterpret_cast<byte *>(data_) + offset);
    }
    template <std::size_t... D, class... I>
    std::ptrdiff_t offset(std::index_sequence<D...>, I... i) const noexcept
    {
        return (std::ptrdiff_t{0} + ... + (i * strides_[D]));
    }

    T *data_ = nullptr;
    numbers extents_{};
    numbers strides_{};
};

/* --- From views ---------------------------------------------------------- */

/* Returns a view as an array of T with N dimensions. Returns nullopt if its elements have another
 * type, if it has another number of dimensions or suboffsets, if they are unaligned
 * (SHMVIEW_VIEW_UNALIGNED), or if it is read-only and T is not const. */
template <class T, std::size_t N>
[[nodiscard]] std::optional<strided<T, N>> as(const shmview_view &view) noexcept
{
    std::array<std::ptrdiff_t, N> extents{}, strides{};
    if (!shmview_fits_nd(&view, dtype_of<T>, std::is_const_v<T> ? 0 : SHMVIEW_VIEW_READ_ONLY, N))
        return std::nullopt;
    for (std::size_t d = 0; d < N; d++) {
        extents[d] = view.shape[d];
        strides[d] = view.nbytes ? view.strides[d] : 0; /* those of an empty view mean nothing */
    }
    return strided<T, N>(reinterpret_cast<T *>(view.data), extents, strides);
}

/* Returns all elements of a view, of any number of dimensions, in C order. Returns nullopt as as()
 * does, and if there are gaps between the elements. */
template <class T>
[[nodiscard]] std::optional<span<T>> contiguous(const shmview_view &view) noexcept
{
    if (!shmview_fits(&view, dtype_of<T>, std::is_const_v<T> ? 0 : SHMVIEW_VIEW_READ_ONLY) ||
        !shmview_is_contiguous(&view))
        return std::nullopt;
    return span<T>(reinterpret_cast<T *>(view.data),
                   static_cast<std::size_t>(view.nbytes / sizeof(T)));
}

} // namespace shmview
#endif
