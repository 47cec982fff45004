/* SPDX-License-Identifier: Apache-2.0 */
/* One element as a Ruby object and back.
 *
 * Each common type has a pair of functions, which item_choose() stores in the view when it is made.
 * The other types (halves, complex numbers, strings, swapped byte orders) go through the conversion
 * of shmview/value.h. Bytes are copied with memcpy(), because an element of a packed struct need
 * not be aligned.
 *
 * A number outside the range of the type is refused, and so is any Float for an integer type. */
#include <math.h>
#include <string.h>

#include <shmview/value.h>

#include "view.h"

void item_fail(struct view *view, VALUE value)
{
    VALUE said = rb_inspect(value);
    raise_text(SHMVIEW_ERR_CONVERSION, "%.120s is no value of format '%.100s'",
               StringValueCStr(said), view->v.format);
}

/* --- Integers ------------------------------------------------------------ */

#define PACKING (INTEGER_PACK_2COMP | INTEGER_PACK_NATIVE_BYTE_ORDER)

/* Stores the low 64 bits of an Integer, or of an object with to_int, in two's complement. Returns
 * like rb_integer_pack(): the sign, or 2 or -2 if the number does not fit into 64 bits. Raises
 * ConversionError for a Float. */
static inline int to_bits(struct view *view, VALUE value, uint64_t *ret)
{
    if (LIKELY(FIXNUM_P(value))) {
        long n = FIX2LONG(value);
        *ret = (uint64_t)n;
        return n < 0 ? -1 : n > 0;
    }
    if (RB_FLOAT_TYPE_P(value))
        item_fail(view, value);
    return rb_integer_pack(rb_to_int(value), ret, 1, sizeof *ret, 0, PACKING);
}

/* Returns value as an int64. Raises ConversionError if it does not fit. The bits of a positive
 * number must have no sign bit, those of a negative one must. */
static inline int64_t to_int64(struct view *view, VALUE value)
{
    uint64_t bits;
    int sign = to_bits(view, value, &bits);
    if (UNLIKELY(sign < -1 || sign > 1 || (sign && (sign < 0) != ((int64_t)bits < 0))))
        item_fail(view, value);
    return (int64_t)bits;
}

/* Defines get_NAME() and set_NAME() of an integer type with the range [low, high]; from makes a
 * Ruby Integer of it. */
#define INTEGER(name, type, from, low, high)                                                       \
    static VALUE get_##name(struct view *view, const char *p)                                      \
    {                                                                                              \
        type x;                                                                                    \
        (void)view;                                                                                \
        memcpy(&x, p, sizeof x);                                                                   \
        return from(x);                                                                            \
    }                                                                                              \
    static void set_##name(struct view *view, char *p, VALUE value)                                \
    {                                                                                              \
        int64_t n = to_int64(view, value);                                                         \
        if (UNLIKELY(n < (low) || n > (high)))                                                     \
            item_fail(view, value);                                                                \
        type x = (type)n;                                                                          \
        memcpy(p, &x, sizeof x);                                                                   \
    }

INTEGER(int8, int8_t, INT2FIX, INT8_MIN, INT8_MAX)
INTEGER(uint8, uint8_t, INT2FIX, 0, UINT8_MAX)
INTEGER(int16, int16_t, INT2FIX, INT16_MIN, INT16_MAX)
INTEGER(uint16, uint16_t, INT2FIX, 0, UINT16_MAX)
INTEGER(int32, int32_t, LONG2NUM, INT32_MIN, INT32_MAX)
INTEGER(uint32, uint32_t, LONG2NUM, 0, UINT32_MAX)
INTEGER(int64, int64_t, LONG2NUM, INT64_MIN, INT64_MAX)

/* Not by INTEGER: half of the range does not fit into an int64. */
static VALUE get_uint64(struct view *view, const char *p)
{
    uint64_t x;
    (void)view;
    memcpy(&x, p, sizeof x);
    return ULL2NUM(x);
}
static void set_uint64(struct view *view, char *p, VALUE value)
{
    uint64_t x;
    int sign = to_bits(view, value, &x);
    if (UNLIKELY(sign < 0 || sign > 1))
        item_fail(view, value);
    memcpy(p, &x, sizeof x);
}

/* --- Floats -------------------------------------------------------------- */

static VALUE get_float32(struct view *view, const char *p)
{
    float x;
    (void)view;
    memcpy(&x, p, sizeof x);
    return DBL2NUM((double)x);
}
static void set_float32(struct view *view, char *p, VALUE value)
{
    double d = RB_FLOAT_TYPE_P(value) ? RFLOAT_VALUE(value) : NUM2DBL(value);
    float x = (float)d; /* rounded; only a number beyond the range is refused */
    if (UNLIKELY(isinf(x) && !isinf(d)))
        item_fail(view, value);
    memcpy(p, &x, sizeof x);
}

static VALUE get_float64(struct view *view, const char *p)
{
    double x;
    (void)view;
    memcpy(&x, p, sizeof x);
    return DBL2NUM(x);
}
static void set_float64(struct view *view, char *p, VALUE value)
{
    (void)view;
    double x = RB_FLOAT_TYPE_P(value) ? RFLOAT_VALUE(value) : NUM2DBL(value);
    memcpy(p, &x, sizeof x);
}

/* --- Truth --------------------------------------------------------------- */

static VALUE get_bool(struct view *view, const char *p)
{
    (void)view;
    return truth(*p);
}
/* In Ruby 0 is true, but in every other language that reads the byte it is false. So a number is
 * taken as those languages do: 0 is false. */
static void set_bool(struct view *view, char *p, VALUE value)
{
    if (value == Qtrue || value == Qfalse || NIL_P(value))
        *p = value == Qtrue;
    else if (RB_INTEGER_TYPE_P(value))
        *p = value != INT2FIX(0);
    else
        item_fail(view, value);
}

/* --- By type ------------------------------------------------------------- */

/* The pairs of the common types in native byte order, by enum shmview_dtype. */

static const struct {
    item_get *get;
    item_set *set;
} common[] = {
    [SHMVIEW_INT8] = {get_int8, set_int8},          [SHMVIEW_UINT8] = {get_uint8, set_uint8},
    [SHMVIEW_INT16] = {get_int16, set_int16},       [SHMVIEW_UINT16] = {get_uint16, set_uint16},
    [SHMVIEW_INT32] = {get_int32, set_int32},       [SHMVIEW_UINT32] = {get_uint32, set_uint32},
    [SHMVIEW_INT64] = {get_int64, set_int64},       [SHMVIEW_UINT64] = {get_uint64, set_uint64},
    [SHMVIEW_FLOAT32] = {get_float32, set_float32}, [SHMVIEW_FLOAT64] = {get_float64, set_float64},
    [SHMVIEW_BOOL] = {get_bool, set_bool},          [SHMVIEW_POINTER] = {get_uint64, set_uint64},
};
#define N_COMMON (sizeof common / sizeof common[0])

/* --- All types ----------------------------------------------------------- */

VALUE item_load(uint32_t dtype, uint32_t itemsize, const char *p)
{
    struct shmview_value v;
    if (dtype < N_COMMON && common[dtype].get)
        return common[dtype].get(NULL, p); /* no get_*() uses its view */
    shmview_value_load(dtype, itemsize, p, &v);
    switch (v.kind) {
    case SHMVIEW_VALUE_BOOL:
        return truth(v.i != 0);
    case SHMVIEW_VALUE_INT:
        return LL2NUM(v.i);
    case SHMVIEW_VALUE_UINT:
        return ULL2NUM(v.u);
    case SHMVIEW_VALUE_REAL:
        if (isinf((double)v.z[0]) && !isinf(v.z[0]))
            raise_text(SHMVIEW_ERR_CONVERSION, "a long double is more than a Float can hold");
        return DBL2NUM((double)v.z[0]);
    case SHMVIEW_VALUE_COMPLEX:
        return rb_dbl_complex_new((double)v.z[0], (double)v.z[1]);
    default:
        return rb_str_new(v.bytes, (long)v.n_bytes);
    }
}

/* Returns object as a value for an element of dtype. A string value points to the bytes of object,
 * which the caller must keep alive. Raises ConversionError, TypeError. */
static struct shmview_value value_of(struct view *view, uint32_t dtype, VALUE object)
{
    const uint32_t native = dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    struct shmview_value v = {.kind = (uint32_t)shmview_dtype_kind(dtype)};
    char bytes[sizeof(uint64_t)];
    if (native < N_COMMON && common[native].set) {
        common[native].set(view, bytes, object);
        shmview_value_load(native, sizeof bytes, bytes, &v);
    } else if (v.kind == SHMVIEW_VALUE_COMPLEX && RB_TYPE_P(object, T_COMPLEX)) {
        v.z[0] = (long double)NUM2DBL(rb_complex_real(object));
        v.z[1] = (long double)NUM2DBL(rb_complex_imag(object));
    } else if (v.kind >= SHMVIEW_VALUE_REAL) {
        v.kind = SHMVIEW_VALUE_REAL;
        v.z[0] = (long double)NUM2DBL(object);
    } else {
        if (RSTRING_LEN(object) > INT32_MAX)
            item_fail(view, object);
        v.kind = SHMVIEW_VALUE_BYTES;
        v.bytes = RSTRING_PTR(object);
        v.n_bytes = (uint32_t)RSTRING_LEN(object);
    }
    return v;
}

void item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, VALUE object)
{
    if (dtype < N_COMMON && common[dtype].set) {
        common[dtype].set(view, p, object);
        return;
    }
    if (shmview_dtype_kind(dtype) == SHMVIEW_VALUE_BYTES)
        StringValue(object);
    struct shmview_value v = value_of(view, dtype, object);
    if (shmview_value_store(dtype, itemsize, &v, p))
        item_fail(view, object);
    RB_GC_GUARD(object);
}

static VALUE get_any(struct view *view, const char *p)
{
    return item_load(view->v.dtype, view->v.itemsize, p);
}
static void set_any(struct view *view, char *p, VALUE value)
{
    item_store(view, view->v.dtype, view->v.itemsize, p, value);
}

void item_choose(struct view *view)
{
    uint32_t dtype = view->v.dtype;
    view->get = dtype < N_COMMON && common[dtype].get ? common[dtype].get : get_any;
    view->set = dtype < N_COMMON && common[dtype].set ? common[dtype].set : set_any;
    if (dtype == SHMVIEW_STRUCT) {
        view->get = struct_get;
        view->set = struct_set;
    }
}
