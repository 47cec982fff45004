/* SPDX-License-Identifier: Apache-2.0 */
/* One element as a Ruby object and back. The common types have a function each, which the view
 * knows from its beginning; an element need not be aligned (packed structs). */
#include <math.h>
#include <string.h>

#include "view.h"

void item_fail(struct view *view, VALUE value)
{
    VALUE said = rb_inspect(value);
    raise_text(SHMVIEW_ERR_CONVERSION, "%.120s is no value of format '%.100s'",
               StringValueCStr(said), view->v.format);
}

/* --- Integers ------------------------------------------------------------ */

#define PACKING (INTEGER_PACK_2COMP | INTEGER_PACK_NATIVE_BYTE_ORDER)

/* An integer as Ruby has it: an Integer, or what has to_int; no Float. Returns its sign, as
 * rb_integer_pack() does: 2 and -2 do not fit into 64 bits. */
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

static inline int64_t to_int64(struct view *view, VALUE value)
{
    uint64_t bits;
    int sign = to_bits(view, value, &bits);
    if (UNLIKELY(sign < -1 || sign > 1 || (sign && (sign < 0) != ((int64_t)bits < 0))))
        item_fail(view, value);
    return (int64_t)bits;
}

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
    float x = (float)d;
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

/* The types that C has not: libshmview converts them, in a few bytes that are a segment of their
 * own for the moment. Returns 0 or a negated SHMVIEW_ERR_*. */
static int convert(uint32_t dtype, char *bytes, double *value, bool store)
{
    static const char *const names[] = {
        "bfloat16",        "float8_e3m4", "float8_e4m3",     "float8_e4m3b11fnuz", "float8_e4m3fn",
        "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    };
    const char *name = dtype == SHMVIEW_FLOAT16      ? "e"
                       : dtype == SHMVIEW_LONGDOUBLE ? "g"
                                                     : names[dtype - SHMVIEW_BFLOAT16];
    struct shmview_segment *scratch;
    struct shmview_view single;
    struct shmview_view_spec spec = {.format = name};
    int r = shmview_wrap(bytes, sizeof(long double), 0, NULL, NULL, &scratch);
    if (r)
        return r;
    r = shmview_view_make(scratch, &spec, &single);
    if (r == 0)
        r = store ? shmview_set_double(&single, NULL, *value)
                  : shmview_get_double(&single, NULL, value);
    shmview_detach(scratch);
    return r;
}

static VALUE load_converted(uint32_t dtype, uint32_t itemsize, const char *p)
{
    _Alignas(long double) char bytes[sizeof(long double)] = {0};
    double value = 0;
    memcpy(bytes, p, itemsize);
    int r = convert(dtype, bytes, &value, false);
    if (r)
        raise_error(r, Qnil);
    return DBL2NUM(value);
}

static void store_converted(struct view *view, uint32_t dtype, uint32_t itemsize, char *p,
                            VALUE value)
{
    _Alignas(long double) char bytes[sizeof(long double)] = {0};
    double number = NUM2DBL(value);
    int r = convert(dtype, bytes, &number, true);
    if (r == -SHMVIEW_ERR_CONVERSION)
        item_fail(view, value);
    if (r)
        raise_error(r, Qnil);
    memcpy(p, bytes, itemsize);
}

static VALUE load_complex(uint32_t dtype, const char *p)
{
    double z[2];
    float f[2];
    if (dtype == SHMVIEW_COMPLEX128) {
        memcpy(z, p, sizeof z);
        return rb_dbl_complex_new(z[0], z[1]);
    }
    memcpy(f, p, sizeof f);
    return rb_dbl_complex_new((double)f[0], (double)f[1]);
}

static void store_complex(struct view *view, uint32_t dtype, char *p, VALUE value)
{
    double z[2] = {0, 0};
    if (RB_TYPE_P(value, T_COMPLEX)) {
        z[0] = NUM2DBL(rb_complex_real(value));
        z[1] = NUM2DBL(rb_complex_imag(value));
    } else {
        z[0] = NUM2DBL(value);
    }
    if (dtype == SHMVIEW_COMPLEX128) {
        memcpy(p, z, sizeof z);
        return;
    }
    float f[2] = {(float)z[0], (float)z[1]};
    if ((isinf(f[0]) && !isinf(z[0])) || (isinf(f[1]) && !isinf(z[1])))
        item_fail(view, value);
    memcpy(p, f, sizeof f);
}

/* --- Truth and text ------------------------------------------------------ */

static VALUE get_bool(struct view *view, const char *p)
{
    (void)view;
    return truth(*p);
}
/* 0 is true in Ruby and false in every other language that sees the byte: numbers mean what they
 * mean there. */
static void set_bool(struct view *view, char *p, VALUE value)
{
    if (value == Qtrue || value == Qfalse || NIL_P(value))
        *p = value == Qtrue;
    else if (RB_INTEGER_TYPE_P(value))
        *p = value != INT2FIX(0);
    else
        item_fail(view, value);
}

static VALUE load_bytes(const char *p, uint32_t n)
{
    return rb_str_new(p, (long)n);
}

static void store_bytes(struct view *view, char *p, uint32_t n, VALUE value, bool exact)
{
    StringValue(value);
    size_t length = (size_t)RSTRING_LEN(value);
    if (length > n || (exact && length != n))
        item_fail(view, value);
    memcpy(p, RSTRING_PTR(value), length);
    memset(p + length, 0, n - length);
}

/* A length byte, then the text; what a peer wrote there is cut to what there is. */
static VALUE load_pascal(const char *p, uint32_t n)
{
    uint32_t length = n ? (unsigned char)*p : 0;
    if (length + 1 > n)
        length = n ? n - 1 : 0;
    return load_bytes(n ? p + 1 : p, length);
}

static void store_pascal(struct view *view, char *p, uint32_t n, VALUE value)
{
    uint32_t room = n > 256 ? 255 : n ? n - 1 : 0;
    StringValue(value);
    if (RSTRING_LEN(value) > (long)room)
        item_fail(view, value);
    if (n == 0)
        return;
    store_bytes(view, p + 1, n - 1, value, false);
    *p = (char)RSTRING_LEN(value);
}

/* --- By type ------------------------------------------------------------- */

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

static VALUE load_native(struct view *view, uint32_t dtype, uint32_t itemsize, const char *p)
{
    if (dtype < N_COMMON && common[dtype].get)
        return common[dtype].get(view, p);
    switch (dtype) {
    case SHMVIEW_CHAR:
    case SHMVIEW_BYTES:
        return load_bytes(p, itemsize);
    case SHMVIEW_PASCAL:
        return load_pascal(p, itemsize);
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        return load_complex(dtype, p);
    default:
        return load_converted(dtype, itemsize, p);
    }
}

static void store_native(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, VALUE value)
{
    if (dtype < N_COMMON && common[dtype].set) {
        common[dtype].set(view, p, value);
        return;
    }
    switch (dtype) {
    case SHMVIEW_CHAR:
    case SHMVIEW_BYTES:
        store_bytes(view, p, itemsize, value, dtype == SHMVIEW_CHAR);
        break;
    case SHMVIEW_PASCAL:
        store_pascal(view, p, itemsize, value);
        break;
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        store_complex(view, dtype, p, value);
        break;
    default:
        store_converted(view, dtype, itemsize, p, value);
    }
}

#define SWAPPED_MAX 32

/* Each of its one or two numbers backwards. */
static void swap_bytes(uint32_t dtype, uint32_t itemsize, const char *from, char *to)
{
    uint32_t parts = dtype == SHMVIEW_COMPLEX64 || dtype == SHMVIEW_COMPLEX128 ? 2 : 1;
    uint32_t n = itemsize / parts;
    for (uint32_t part = 0; part < parts; part++)
        for (uint32_t i = 0; i < n; i++)
            to[part * n + i] = from[part * n + n - 1 - i];
}

VALUE item_load(struct view *view, uint32_t dtype, uint32_t itemsize, const char *p)
{
    char native[SWAPPED_MAX];
    if (!(dtype & SHMVIEW_SWAPPED))
        return load_native(view, dtype, itemsize, p);
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    swap_bytes(dtype, itemsize, p, native);
    return load_native(view, dtype, itemsize, native);
}

void item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, VALUE value)
{
    char native[SWAPPED_MAX];
    if (!(dtype & SHMVIEW_SWAPPED)) {
        store_native(view, dtype, itemsize, p, value);
        return;
    }
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    store_native(view, dtype, itemsize, native, value);
    swap_bytes(dtype, itemsize, native, p);
}

static VALUE get_any(struct view *view, const char *p)
{
    return item_load(view, view->v.dtype, view->v.itemsize, p);
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
