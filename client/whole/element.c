/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on one element whose type is known only at run time.
 *
 * Each call has two ways. The short way handles the common types of a view without suboffsets: it
 * checks the index, and loads or stores. Everything else, errors included, takes the long way
 * through struct shmview_value. Its functions are cold and never inlined, to keep them out of the
 * short way. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "client/whole/bulk.h"

#undef shmview_get_double /* the symbol itself */

/* --- Every view and type ------------------------------------------------- */

#define SLOW __attribute__((cold, noinline))

/* Finds any element, with all checks; the errors are those of shmview_view_pointer(). Returns 0 or
 * an error. */
static int locate_slowly(const struct shmview_view *view, const ptrdiff_t *index,
                         unsigned char **ret)
{
    void *p;
    int r = shmview_view_pointer(view, index, &p);
    if (r == 0)
        *ret = p;
    return r;
}

/* Like locate_slowly(), but refuses elements that are no numbers. */
static int locate_number(const struct shmview_view *view, const ptrdiff_t *index,
                         unsigned char **ret)
{
    if (!number_is_type(view->dtype))
        return fail(SHMVIEW_ERR_CONVERSION, "elements of format \"%.200s\" are no numbers",
                    view->format);
    return locate_slowly(view, index, ret);
}

static int fail_value(const struct shmview_view *view, const ptrdiff_t *index,
                      const struct shmview_value *n, const char *type)
{
    char text[NUMBER_TEXT_BYTES], index_text[BULK_INDEX_BYTES];
    number_text(n, text);
    bulk_index_text(view, index, index_text);
    return fail(SHMVIEW_ERR_CONVERSION, "element %s: %s is no value of %s", index_text, text, type);
}

SLOW static int get(const struct shmview_view *view, const ptrdiff_t *index,
                    struct shmview_value *ret)
{
    unsigned char *p;
    int r = locate_number(view, index, &p);
    if (r == 0)
        *ret = number_load(view->dtype, p);
    return r;
}

SLOW static int set(const struct shmview_view *view, const ptrdiff_t *index, struct shmview_value n)
{
    unsigned char *p;
    int r = bulk_check_writable(view);
    if (r == 0)
        r = locate_number(view, index, &p);
    if (r || number_store(view->dtype, &n, p))
        return r;
    return fail_value(view, index, &n, shmview_dtype_name(view->dtype));
}

SLOW static int get_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t *ret)
{
    struct shmview_value n;
    int r = get(view, index, &n);
    if (r || number_to_int64(&n, ret))
        return r;
    return fail_value(view, index, &n, "int64");
}

SLOW static int get_double(const struct shmview_view *view, const ptrdiff_t *index, double *ret)
{
    struct shmview_value n;
    int r = get(view, index, &n);
    if (r || number_to_double(&n, ret))
        return r;
    return fail_value(view, index, &n, "float64");
}

#define LIKELY(x) __builtin_expect(!!(x), 1)

/* --- The short way ------------------------------------------------------- */

/* Finds an element without a call. Returns false if the caller must take the long way: for unwanted
 * flags, and for an index outside, whose error the long way reports. Comparing as size_t also
 * catches a negative index. Two dimensions have code of their own, without a loop. */
static inline bool locate(const struct shmview_view *view, const ptrdiff_t *index,
                          uint32_t unwanted_flags, unsigned char **ret)
{
    unsigned char *p = view->data;
    if (view->flags & unwanted_flags)
        return false;
    if (LIKELY(view->ndim == 2)) {
        if ((size_t)index[0] >= (size_t)view->shape[0] ||
            (size_t)index[1] >= (size_t)view->shape[1])
            return false;
        *ret = p + index[0] * view->strides[0] + index[1] * view->strides[1];
        return true;
    }
    for (uint32_t d = 0; d < view->ndim; d++) {
        if ((size_t)index[d] >= (size_t)view->shape[d])
            return false;
        p += index[d] * view->strides[d];
    }
    *ret = p;
    return true;
}

/* Flags that need the long way: suboffsets must be looked up, and read-only must be refused. */
#define TO_READ  SHMVIEW_VIEW_INDIRECT
#define TO_WRITE (SHMVIEW_VIEW_INDIRECT | SHMVIEW_VIEW_READ_ONLY)

#define GET(code, type)                                                                            \
    case code: {                                                                                   \
        type x;                                                                                    \
        memcpy(&x, p, sizeof x);                                                                   \
        *ret = x;                                                                                  \
        return 0;                                                                                  \
    }

int shmview_get_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t *ret)
{
    unsigned char *p;
    if (locate(view, index, TO_READ, &p))
        switch (view->dtype) {
            GET(SHMVIEW_INT8, int8_t)
            GET(SHMVIEW_UINT8, uint8_t)
            GET(SHMVIEW_INT16, int16_t)
            GET(SHMVIEW_UINT16, uint16_t)
            GET(SHMVIEW_INT32, int32_t)
            GET(SHMVIEW_UINT32, uint32_t)
            GET(SHMVIEW_INT64, int64_t)
        }
    return get_int64(view, index, ret);
}

int shmview_get_double(const struct shmview_view *view, const ptrdiff_t *index, double *ret)
{
    unsigned char *p;
    if (locate(view, index, TO_READ, &p))
        switch (view->dtype) {
            GET(SHMVIEW_INT8, int8_t)
            GET(SHMVIEW_UINT8, uint8_t)
            GET(SHMVIEW_INT16, int16_t)
            GET(SHMVIEW_UINT16, uint16_t)
            GET(SHMVIEW_INT32, int32_t)
            GET(SHMVIEW_UINT32, uint32_t)
            GET(SHMVIEW_FLOAT32, float)
            GET(SHMVIEW_FLOAT64, double)
        }
    return get_double(view, index, ret);
}

/* Stores value if it fits. Otherwise leaves the switch, and the long way reports why. */
#define SET(code, type, fits)                                                                      \
    case code:                                                                                     \
        if (fits) {                                                                                \
            type x = (type)value;                                                                  \
            memcpy(p, &x, sizeof x);                                                               \
            return 0;                                                                              \
        }                                                                                          \
        break;

int shmview_set_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t value)
{
    unsigned char *p;
    if (locate(view, index, TO_WRITE, &p))
        switch (view->dtype) {
            SET(SHMVIEW_INT8, int8_t, (int8_t)value == value)
            SET(SHMVIEW_UINT8, uint8_t, (uint8_t)value == value)
            SET(SHMVIEW_INT16, int16_t, (int16_t)value == value)
            SET(SHMVIEW_UINT16, uint16_t, (uint16_t)value == value)
            SET(SHMVIEW_INT32, int32_t, (int32_t)value == value)
            SET(SHMVIEW_UINT32, uint32_t, (uint32_t)value == value)
            SET(SHMVIEW_INT64, int64_t, true)
        }
    return set(view, index, number_of_int64(value));
}

int shmview_set_double(const struct shmview_view *view, const ptrdiff_t *index, double value)
{
    unsigned char *p;
    if (locate(view, index, TO_WRITE, &p))
        switch (view->dtype) {
            SET(SHMVIEW_FLOAT32, float, fabs(value) <= (double)FLT_MAX)
            SET(SHMVIEW_FLOAT64, double, true)
        }
    return set(view, index, number_of_real((long double)value));
}

/* --- Complex numbers and bytes ------------------------------------------- */

int shmview_get_complex(const struct shmview_view *view, const ptrdiff_t *index, double ret[2])
{
    struct shmview_value n;
    int r = get(view, index, &n);
    if (r || number_to_complex(&n, ret))
        return r;
    return fail_value(view, index, &n, "complex128");
}

int shmview_set_complex(const struct shmview_view *view, const ptrdiff_t *index,
                        const double value[2])
{
    return set(view, index, number_of_complex((long double)value[0], (long double)value[1]));
}

int shmview_get_bytes(const struct shmview_view *view, const ptrdiff_t *index, void *ret)
{
    unsigned char *p;
    int r = locate(view, index, TO_READ, &p) ? 0 : locate_slowly(view, index, &p);
    if (r == 0)
        memcpy(ret, p, view->itemsize);
    return r;
}

int shmview_set_bytes(const struct shmview_view *view, const ptrdiff_t *index, const void *bytes)
{
    unsigned char *p;
    int r = bulk_check_writable(view);
    if (r == 0 && !locate(view, index, TO_READ, &p))
        r = locate_slowly(view, index, &p);
    if (r == 0)
        memcpy(p, bytes, view->itemsize);
    return r;
}
